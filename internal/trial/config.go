// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"io"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// Files is where the attempt's files go; a bundle.Writer is one.
type Files interface {
	// Create begins a file, named by a slash-separated relative path; any bytes may
	// stand in a segment.
	Create(name string) (io.WriteCloser, error)
}

// Config is all that one attempt needs.
type Config struct {
	Environment runtime.Environment
	RuntimeType string
	Run         *manifest.RunRecord
	Task        *manifest.Task
	Row         bundle.PlanRow
	Epoch       int
	Attempt     int
	// StoreUUID and Worker become labels.
	StoreUUID string
	Worker    string
	Version   string // of the program, for env.yaml
	// AgentFiles is the unpacked directory of agent.files, empty without; it arrives in
	// the workdir as AgentFilesName.
	AgentFiles     string
	AgentFilesName string
	// Secrets are the values of agent.secrets. They reach the agent and are redacted
	// from everything that is stored.
	Secrets map[string]string
	// TaskSecrets are values of secrets that the task names. They reach the programs that the
	// task means them for, and are redacted likewise.
	TaskSecrets map[string]string
	Files       Files
	Log         zerolog.Logger
	// OnPhase is told when a phase begins; may be nil.
	OnPhase func(phase string)
	// OnOpen is told when the sandbox is open; may be nil.
	OnOpen func(*Live)
	// Keep leaves the sandbox, for so long and without its processes, to people who want
	// to look into it, in the place of removing it. A runtime whose sandboxes are no
	// [runtime.Keeper] removes it all the same. Defaults to 0: nothing is kept.
	Keep time.Duration
	// Earlier makes this an attempt without setup and agent, which grades once more what
	// that one left; nil without.
	Earlier *Earlier
	// Early is a failure that came before the attempt could begin; nil without. It becomes
	// the outcome, and Environment and Task may be nil then.
	Early *EarlyFailure
	// Spoiled says what of ours may have kept the programs from doing what they would have
	// done, nil for nothing. It is asked before anything but a pass counts; trouble of ours
	// takes that verdict's place. May be nil.
	Spoiled func() error
	// TeardownTimeout bounds Close, which goes on although the attempt was cancelled.
	// Defaults to 2 minutes.
	TeardownTimeout time.Duration
}

// SecretValues are what may stand in no record.
func (c *Config) SecretValues() []string {
	return slices.Concat(slices.Collect(maps.Values(c.Secrets)), slices.Collect(maps.Values(c.TaskSecrets)))
}

// Defaults of what neither run nor task says.
const (
	DefaultAgentTimeout     = 30 * time.Minute
	DefaultSetupTimeout     = 10 * time.Minute
	DefaultGradeTimeout     = 10 * time.Minute
	DefaultProvisionTimeout = 10 * time.Minute
	DefaultBuildTimeout     = 10 * time.Minute
	defaultTeardownTimeout  = 2 * time.Minute
)

// EarlyFailure is trouble before provisioning: the pack can't be had, the runtime can't
// be prepared.
type EarlyFailure struct {
	Ending Ending
	Err    error
}

// Report is what became of an attempt.
type Report struct {
	Ending  Ending
	Outcome bundle.Outcome
	Grade   bundle.Grade
	Metrics bundle.Metrics
	// Permanent: trying again can't help.
	Permanent bool
	// Capacity: there was no room; try again later, uncharged.
	Capacity bool
	// TeardownErr is what could not be removed. It never changes the outcome.
	TeardownErr error
}
