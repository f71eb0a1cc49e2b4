// SPDX-License-Identifier: Apache-2.0

package images

import (
	"slices"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
)

// Origin says how an image came to be on the engine.
type Origin string

// The origins.
const (
	Present Origin = "present" // it was there
	Pulled  Origin = "pulled"
	Built   Origin = "built"
)

// Image is an image that is on the engine.
type Image struct {
	// ID is the engine's own name, "sha256:…". Sandboxes are made from it, because a
	// tag may move.
	ID string `json:"id" yaml:"id"`
	// Ref is the reference that was asked for, or the tag of a build.
	Ref string `json:"ref" yaml:"ref"`
	// RepoDigest is "name@sha256:…" where a registry knows the image.
	RepoDigest string `json:"repo_digest,omitempty" yaml:"repo_digest,omitempty"`
	Origin     Origin `json:"origin" yaml:"origin"`
	// BuildDigest is the digest of the build's input, "sha256:…".
	BuildDigest string `json:"build_digest,omitempty" yaml:"build_digest,omitempty"`
	// Size is what the engine says, in bytes; layers may be shared with other images.
	Size     int64  `json:"size" yaml:"size"`
	Platform string `json:"platform" yaml:"platform"` // "linux/amd64"

	// What the image says about programs.
	Workdir    string   `json:"workdir,omitempty" yaml:"workdir,omitempty"`
	User       string   `json:"user,omitempty" yaml:"user,omitempty"`
	Env        []string `json:"-" yaml:"-"`
	Entrypoint []string `json:"entrypoint,omitempty" yaml:"entrypoint,omitempty,flow"`
	Cmd        []string `json:"cmd,omitempty" yaml:"cmd,omitempty,flow"`
	// Volumes are the paths for which the engine makes volumes, sorted.
	Volumes []string `json:"volumes,omitempty" yaml:"volumes,omitempty,flow"`

	tagged time.Time // when it was tagged last
}

// describe takes from the engine's answer what is needed.
func describe(ref string, info image.InspectResponse) Image {
	img := Image{
		ID: info.ID, Ref: ref, RepoDigest: repoDigest(ref, info.RepoDigests),
		Size: info.Size, Platform: info.Os + "/" + info.Architecture,
		tagged: info.Metadata.LastTagTime,
	}
	if info.Variant != "" {
		img.Platform += "/" + info.Variant
	}
	if c := info.Config; c != nil {
		img.Workdir, img.User, img.Env = c.WorkingDir, c.User, slices.Clone(c.Env)
		img.Entrypoint, img.Cmd = slices.Clone(c.Entrypoint), slices.Clone(c.Cmd)
		for v := range c.Volumes {
			img.Volumes = append(img.Volumes, v)
		}
		slices.Sort(img.Volumes)
	}
	return img
}

// repoDigest chooses, of the names by which registries know an image, the one in the
// repository that was asked for.
func repoDigest(ref string, digests []string) string {
	asked, err := reference.ParseNormalizedNamed(ref)
	for _, d := range digests {
		named, perr := reference.ParseNormalizedNamed(d)
		if err == nil && perr == nil && named.Name() == asked.Name() {
			return d
		}
	}
	if len(digests) > 0 {
		return digests[0]
	}
	return ""
}
