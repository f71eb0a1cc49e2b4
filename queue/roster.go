// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"time"
)

// PresenceTTL is how long a [Roster] keeps what a worker announced, and a claim, that is
// not renewed. Renew about every third of that.
const PresenceTTL = 30 * time.Second

// Roster is what a queue may offer beside the contract: it tells who works, and has one of
// many processes do what only one should. All of it is for people and for comfort: nothing
// that has to hold may depend on it, and it may be forgotten at any moment.
//
// The laws of [Queue] about contexts, goroutines and a broker that is away hold here too.
type Roster interface {
	// Announce puts a worker on the roster, or replaces what it announced before. The
	// broker sets the time.
	Announce(ctx context.Context, p Presence) error
	// Withdraw takes a worker off the roster. One that isn't there is no error.
	Withdraw(ctx context.Context, worker string) error
	// Workers returns who is on the roster, sorted by name.
	Workers(ctx context.Context) ([]Presence, error)
	// Claim reports whether a holder may do what only one should, for the next
	// [PresenceTTL]; the same holder may claim again, and others may when it doesn't. For
	// a moment two may believe that they do. what is a word of [A-Za-z0-9_-], and holder
	// the name of a worker, or one like it.
	Claim(ctx context.Context, what, holder string) (bool, error)
	// Unclaim ends a claim of a holder, if it has it.
	Unclaim(ctx context.Context, what, holder string) error
}

// Presence is what a worker says of itself.
type Presence struct {
	// Worker is its name as in [Request].
	Worker string   `json:"worker"`
	Pool   string   `json:"pool"`
	Offers []string `json:"offers"`
	Slots  int      `json:"slots"`
	// Busy slots have a job.
	Busy    int       `json:"busy"`
	Version string    `json:"version,omitempty"`
	Since   time.Time `json:"since"`
	// Draining workers take no more jobs.
	Draining bool `json:"draining,omitempty"`
	// Holds say why it takes no more for now, one sentence each.
	Holds []string `json:"holds,omitempty"`
	// Refuses says, by run, what keeps it from taking that run's trials, as in "has no
	// OPENAI_API_KEY". It names the first [MaxRefused] of them at most.
	Refuses map[string]string `json:"refuses,omitempty"`
	// Running are jobs that it works on, the oldest first, and the first [MaxRunning] of
	// them at most.
	Running []Running `json:"running"`
	// Ended counts, by run, what ended since the worker began. Runs of which nothing ended
	// for a while may be left out.
	Ended map[string]Tally `json:"ended,omitempty"`
	// At is when it was announced, by the broker's clock.
	At time.Time `json:"at"`
}

// MaxRunning is how many running jobs a presence names, and MaxRefused how many runs it
// refuses.
const (
	MaxRunning = 256
	MaxRefused = 64
)

// Running is a job that a worker works on.
type Running struct {
	Run        string    `json:"run_id"`
	TaskID     string    `json:"task_id"`
	TrialIndex int       `json:"trial_index"`
	TrialID    string    `json:"trial_id"`
	Attempt    int       `json:"attempt"`
	Phase      string    `json:"phase"`
	Since      time.Time `json:"since"`
}

// Tally counts attempts that ended by themselves.
type Tally struct {
	// Ended is all of them, but for those that found no room.
	Ended int `json:"ended"`
	// Infra are those that failed for want of infrastructure.
	Infra int `json:"infra"`
}

// Validate reports the first field that is wrong.
func (p Presence) Validate() error {
	switch {
	case !isHostName(p.Worker):
		return fmt.Errorf("presence: worker %q: want one or more of A-Z a-z 0-9 . _ -", p.Worker)
	case len(p.Running) > MaxRunning:
		return fmt.Errorf("presence of worker %s: %d running jobs: want %d at most", p.Worker, len(p.Running), MaxRunning)
	case len(p.Refuses) > MaxRefused:
		return fmt.Errorf("presence of worker %s: %d refused runs: want %d at most", p.Worker, len(p.Refuses), MaxRefused)
	}
	return nil
}

// isHostName is [isToken] with dots, which names of machines have.
func isHostName(s string) bool {
	for i := range len(s) {
		if s[i] != '.' && !isToken(s[i:i+1]) {
			return false
		}
	}
	return s != "" && s[0] != '.' && s[len(s)-1] != '.'
}

// CheckClaim reports what is wrong with the words of a claim.
func CheckClaim(what, holder string) error {
	switch {
	case !isToken(what):
		return fmt.Errorf("%w: claim %q: want one or more of A-Z a-z 0-9 _ -", ErrInvalid, what)
	case !isHostName(holder):
		return fmt.Errorf("%w: claim %s: holder %q: want one or more of A-Z a-z 0-9 . _ -", ErrInvalid, what, holder)
	}
	return nil
}
