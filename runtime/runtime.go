// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"io"
	"time"
)

// Runtime provides sandboxes of one kind. All methods may be called from many
// goroutines at once.
type Runtime interface {
	// Type is the word under runtime.type in a run file.
	Type() string
	// Properties declares what is enforced here, on this machine, as tested at
	// start.
	Properties() Properties
	// Prepare does what a run needs once per worker, so that Open is quick. It
	// refuses what it can't enforce with an [UnsupportedError].
	Prepare(ctx context.Context, spec RunSpec) (Environment, error)
	// List returns everything of ours that exists, in any state, also what this
	// process did not create. A runtime may only know of its own machine.
	List(ctx context.Context) ([]Resource, error)
	// Destroy removes one resource by its handle, never by its name. A resource
	// that is gone already is no error.
	Destroy(ctx context.Context, h Handle) error
	Close() error
}

// Environment is what a worker keeps for a run.
type Environment interface {
	// Open provisions a sandbox and returns when it is ready. A failure is a
	// [ProvisionError] and nothing is left behind. If ctx ends in the middle, what
	// was created is removed all the same.
	Open(ctx context.Context, spec Spec) (Sandbox, error)
	// Close gives back what Prepare made. Sandboxes are closed before.
	Close(ctx context.Context) error
}

// Sandbox is the isolated place in which one attempt runs. Its methods may be
// called from several goroutines; commands may run side by side.
type Sandbox interface {
	// Name is the resource name: Spec.Name or the generated one.
	Name() string
	Handle() Handle
	// Path returns where a place is, as programs in the runner service see it.
	Path(p Place) string

	// Exec runs a program to its end. A non-zero exit, a signal and an elapsed
	// Command.Timeout are results. When Timeout or ctx ends, every process of the
	// command that can be told apart is killed before Exec returns. Errors are a
	// [StartError], [ErrLost] when the sandbox died under us, ctx's cause, or
	// trouble of the runtime.
	Exec(ctx context.Context, cmd Command) (Exit, error)
	// EndProcesses kills every process that earlier commands left running and
	// returns when none is alive. The sandbox stays usable.
	EndProcesses(ctx context.Context) error
	// SetPhase switches to the phase's network policy. Open leaves the sandbox in
	// the Setup phase.
	SetPhase(ctx context.Context, p Phase) error

	// CopyIn unpacks a tar stream into a place. Entries are relative, regular
	// files, directories and symlinks that stay inside; anything else is a
	// [PathError] and the copy stops.
	CopyIn(ctx context.Context, p Place, r io.Reader, opts CopyOptions) error
	// CopyOut returns a tar stream of what path, relative to the place, names: a
	// file or a directory with all that is below it. Entries are named relative to the
	// place, whatever path was. Symlinks are passed on as
	// symlinks and never followed, path itself included; devices, fifos and sockets
	// are left out. Limits are enforced before bytes are sent; the report of what
	// was left out is complete once the stream has been read to its end. A path that
	// doesn't exist is [ErrNotExist]. p may be [Root].
	CopyOut(ctx context.Context, p Place, path string, limits CopyLimits) (*Copy, error)

	// Endpoint returns host:port at which the worker reaches a port of a service.
	Endpoint(ctx context.Context, service string, port int) (string, error)
	// Evidence collects logs and ends of the services; tail is in lines, 0 means
	// all. It is best effort: what it could not get is said in the evidence.
	Evidence(ctx context.Context, tail int) (Evidence, error)
	// Alive tells a dead sandbox from a failed program: nil, [ErrLost], or an error
	// when nobody knows.
	Alive(ctx context.Context) error
	// Close destroys the sandbox. It is safe after anything and any number of times.
	// It reports what it could not remove.
	Close(ctx context.Context) error
}

// Ingress is an optional ability of a [Sandbox]: to let programs inside reach
// something of the worker's (a model gateway), whatever the network policy says.
type Ingress interface {
	// Ingress returns a listener whose connections come from inside the sandbox, and
	// the base URL that programs inside use. Closing the sandbox closes it.
	Ingress(ctx context.Context, name string) (Listener, error)
}

// Command is one program to run.
type Command struct {
	Service string   // "" is the runner service
	Argv    []string // verbatim, no shell; Argv[0] is looked up in the sandbox's PATH
	// Env adds to Spec.Env; nothing else is inherited but what the runtime documents
	// (PATH, HOME, and the like).
	Env map[string]string
	// Dir is relative to the workdir, or absolute as programs inside see it.
	Dir    string
	User   string // "" is the user of the phase
	Stdin  io.Reader
	Stdout io.Writer // nil discards; written to by one goroutine at a time
	Stderr io.Writer // likewise; may be equal to Stdout
	// Timeout ends the command; 0 means that only ctx does.
	Timeout time.Duration
}

// Resource kinds that a program can use up.
const (
	OutOfMemory = "memory"
	OutOfPids   = "pids"
	OutOfDisk   = "disk"
)

// Exit is how a program ended.
type Exit struct {
	// Code is the exit code as it is; a death by signal n is 128+n.
	Code int
	// Signal is the name of the signal that killed it ("SIGKILL"), else empty.
	Signal string
	// TimedOut: Command.Timeout elapsed and the program was killed for it.
	TimedOut bool
	// Exhausted names the resource limit of the sandbox that the program ran into
	// ([OutOfMemory], …), else empty.
	Exhausted string
}

// OK reports a plain success.
func (e Exit) OK() bool { return e.Code == 0 && e.Signal == "" && !e.TimedOut }

// Properties declares what a runtime enforces.
type Properties struct {
	Policies []NetworkPolicy
	// Limits that bind, by the YAML key of [Resources]: "memory", "pids", ….
	Limits []string
	// Users: commands can run as another user than the worker's.
	Users bool
	// Images: sandboxes are made from images.
	Images bool
	// Services: stacks of several services.
	Services bool
	// OwnProcesses: no process outlives its sandbox, setsid children included.
	OwnProcesses bool
	// HidesHost: home, data directory and sockets of the worker can't be seen from
	// inside.
	HidesHost bool
	// Remote: sandboxes run on another machine.
	Remote bool
	// Unprotected says in sentences what this runtime does not protect from.
	Unprotected []string
}

// Handle is what a provider calls a resource: path, container id, sandbox id. It
// is the only thing that destroys.
type Handle struct {
	Runtime string `json:"runtime" yaml:"runtime"`
	Kind    string `json:"kind" yaml:"kind"` // workdir, container, network, volume, sandbox, …
	ID      string `json:"id" yaml:"id"`
	// Proof is what shows that ID still names the thing that was created, where the
	// provider may reuse ids (an inode and birth time); opaque.
	Proof string `json:"proof,omitempty" yaml:"proof,omitempty"`
}

// Resource is something of ours that exists.
type Resource struct {
	Handle  Handle
	Name    string
	Labels  Labels
	Created time.Time
	// Live: its creator was seen to be alive (same machine only).
	Live bool
	// Kept: its owner left it on purpose, see [Keeper]. It is nobody's leftover before
	// Labels.ExpiresAt.
	Kept bool
}

// ServiceEvidence is what one service left.
type ServiceEvidence struct {
	Service   string
	Log       []byte
	Truncated bool // the log was cut to the tail
	ExitCode  *int
	OOMKilled bool
	Restarts  int
}

// Evidence is what a sandbox knows about itself.
type Evidence struct {
	Services []ServiceEvidence
	// Missing says in sentences what could not be collected.
	Missing []string
}
