// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"time"
)

// NetworkPolicy says what a sandbox may reach. It means the same in every runtime.
type NetworkPolicy string

// The three policies.
const (
	// FullInternet: no restriction.
	FullInternet NetworkPolicy = "full_internet"
	// NoInternet: no internet, no host, no metadata address, no other trial, no
	// DNS tunnel.
	NoInternet NetworkPolicy = "no_internet"
	// LimitedInternet: HTTP and HTTPS to the hosts of an allow list, nothing else.
	LimitedInternet NetworkPolicy = "limited_internet"
)

// Phase is a part of a trial with its own user, environment and network policy.
type Phase string

// The phases in which commands run.
const (
	Setup Phase = "setup"
	Agent Phase = "agent"
	Grade Phase = "grade"
)

// Network is a policy with what it needs.
type Network struct {
	Policy NetworkPolicy `json:"policy" yaml:"policy"`
	// Allow is the list of hosts for LimitedInternet: exact names or "*.suffix".
	Allow []string `json:"allow,omitempty" yaml:"allow,omitempty"`
}

// Resources are upper bounds. Zero means: none asked for.
type Resources struct {
	CPUs   float64 `json:"cpus,omitempty" yaml:"cpus,omitempty"`     // cores
	Memory int64   `json:"memory,omitempty" yaml:"memory,omitempty"` // bytes
	Disk   int64   `json:"disk,omitempty" yaml:"disk,omitempty"`     // bytes
	Pids   int64   `json:"pids,omitempty" yaml:"pids,omitempty"`
	Files  int64   `json:"files,omitempty" yaml:"files,omitempty"` // open files
	Shm    int64   `json:"shm,omitempty" yaml:"shm,omitempty"`     // bytes
	GPUs   int     `json:"gpus,omitempty" yaml:"gpus,omitempty"`
	// GPUTypes are acceptable models; empty means any.
	GPUTypes []string `json:"gpu_types,omitempty" yaml:"gpu_types,omitempty"`
}

// Image says what a sandbox is made from. Runtimes without images refuse one.
type Image struct {
	// Ref is a reference such as "python:3.12-slim".
	Ref string `json:"ref,omitempty"`
	// BuildContext is a directory on the worker with a Dockerfile, built where Ref
	// is empty.
	BuildContext string        `json:"build_context,omitempty"`
	Dockerfile   string        `json:"dockerfile,omitempty"` // relative to the context
	BuildTimeout time.Duration `json:"build_timeout,omitempty"`
	// PullPolicy is auto (default), always or never.
	PullPolicy string `json:"pull_policy,omitempty"`
}

// Labels tell whose a resource is. Every runtime attaches them to all that it
// creates, as far as its provider can hold labels.
type Labels struct {
	Store      string    `json:"store"` // store uuid
	Run        string    `json:"run"`
	Task       string    `json:"task"`
	TrialIndex int       `json:"trial_index"`
	Trial      string    `json:"trial"`
	Attempt    int       `json:"attempt"`
	Worker     string    `json:"worker"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
}

// RunSpec is what Prepare needs: all that the trials of a run share.
type RunSpec struct {
	Run       string
	Store     string
	Worker    string
	Images    []Image   // to be pulled or built ahead; Open takes others too
	Network   []Network // every policy that is known ahead; Open refuses others
	Resources Resources
	Users     []string // every user that is known ahead
	Services  []Service
	// Stack is the path of a stack definition (a Compose file) on the worker, and
	// StackInputs the values of its variables. Empty for a single box.
	Stack       string
	StackInputs map[string]string
	// Options are the runtime's own, as written under runtime.options.
	Options map[string]any
}

// Isolation says how long a service lives.
type Isolation string

// The isolations of a service.
const (
	Ephemeral Isolation = "ephemeral" // new for each attempt
	Reset     Isolation = "reset"     // kept over attempts, reset by a recipe
	Shared    Isolation = "shared"    // once per worker and run
)

// Service is one container of a stack. A single box has none: its only service
// has the empty name.
type Service struct {
	Name      string
	Image     Image
	Isolation Isolation
	Resources Resources
}

// Spec is one sandbox.
type Spec struct {
	// Name is the trial id; empty asks for a generated name.
	Name   string
	Labels Labels
	Image  Image
	// Workdir is where commands run, absolute inside the sandbox; it is made where it is
	// missing, and belongs to the agent's user then. Empty is the image's, or the runtime's.
	// Runtimes without images refuse one.
	Workdir string
	// Services of a stack; Runner is the one where commands run by default.
	Services []Service
	Runner   string
	// Users by phase; a missing entry is the runtime's default user.
	Users map[Phase]string
	// Network by phase; a missing entry is Network[Agent], and where that is missing
	// Open refuses.
	Network   map[Phase]Network
	Resources Resources
	// Env is given to every command of the sandbox, before Command.Env.
	Env map[string]string
	// ReadyTimeout bounds provisioning until everything is ready. 0 is the
	// runtime's default.
	ReadyTimeout time.Duration
}

// NetworkFor returns the network of a phase by the rule of [Spec.Network].
func (s Spec) NetworkFor(p Phase) (Network, bool) {
	if n, ok := s.Network[p]; ok {
		return n, true
	}
	n, ok := s.Network[Agent]
	return n, ok
}

var nameRE = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,99}$`)

// CheckName accepts what every provider accepts as a resource name:
// [a-zA-Z0-9][a-zA-Z0-9_.-]{1,99}, without two dots in a row.
func CheckName(name string) error {
	if !nameRE.MatchString(name) {
		return fmt.Errorf("sandbox name %q: want [a-zA-Z0-9][a-zA-Z0-9_.-]{1,99}", name)
	}
	for i := 1; i < len(name); i++ {
		if name[i] == '.' && name[i-1] == '.' {
			return fmt.Errorf("sandbox name %q: two dots in a row are not allowed", name)
		}
	}
	return nil
}

// NewName returns "tm-" and 12 random hex characters.
func NewName() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return "tm-" + hex.EncodeToString(b[:])
}
