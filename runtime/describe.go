// SPDX-License-Identifier: Apache-2.0

package runtime

// Described is an optional ability of a [Sandbox]: to tell what became of what was asked
// for. A runtime whose sandboxes are made from images has it.
type Described interface {
	// Describe returns what was found out while the sandbox was opened. It asks nobody,
	// always answers the same, and may be called after anything, after Close too.
	Describe() Description
}

// Description is what a sandbox was made from, for records. What isn't known is empty.
type Description struct {
	// Images has an entry for each service, the runner service first.
	Images []ImageFacts `json:"images,omitempty" yaml:"images,omitempty"`
	// Networks that were made for this sandbox, or that it shares.
	Networks []NetworkFacts `json:"networks,omitempty" yaml:"networks,omitempty"`
}

// How an image came to be where the sandbox was made.
const (
	ImagePresent = "present" // it was there
	ImagePulled  = "pulled"  // fetched from a registry for this run
	ImageBuilt   = "built"   // made from a build context for this run
)

// ImageFacts say which image it really was: a tag may be another image tomorrow.
type ImageFacts struct {
	// Service is empty in a single box.
	Service string `json:"service,omitempty" yaml:"service,omitempty"`
	// Ref is the reference as it was asked for; empty for one that was built.
	Ref string `json:"ref,omitempty" yaml:"ref,omitempty"`
	// ID is what the engine calls it: "sha256:" and 64 hexadecimal characters.
	ID string `json:"id,omitempty" yaml:"id,omitempty"`
	// Digest is what a registry calls it: "name@sha256:…". Empty where no registry has it.
	Digest string `json:"digest,omitempty" yaml:"digest,omitempty"`
	// Origin is [ImagePresent], [ImagePulled] or [ImageBuilt].
	Origin string `json:"origin,omitempty" yaml:"origin,omitempty"`
	// Platform is "os/architecture".
	Platform string `json:"platform,omitempty" yaml:"platform,omitempty"`
}

// NetworkFacts are of one network of the provider's.
type NetworkFacts struct {
	Name string `json:"name" yaml:"name"`
	// Subnet in CIDR notation.
	Subnet string `json:"subnet,omitempty" yaml:"subnet,omitempty"`
}
