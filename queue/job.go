// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxBody is the largest body a job may carry, in bytes. A body is a pointer
// into the plan, never the work itself.
const MaxBody = 1024

// ID names one release of one trial. It is what deduplication compares.
type ID struct {
	// Trial is the trial id, 32 lower-case hex characters in production; any
	// word of [A-Za-z0-9_-] is accepted.
	Trial string
	// Epoch counts deliberate re-runs of the trial and starts at 1.
	Epoch int
	// Release counts how often this trial and epoch was put in; it starts at 1
	// and grows with every purge, resume and retry.
	Release int
}

// String returns "<trial>.<epoch>.<release>".
func (id ID) String() string {
	return id.Trial + "." + strconv.Itoa(id.Epoch) + "." + strconv.Itoa(id.Release)
}

// ParseID reads what [ID.String] writes.
func ParseID(s string) (ID, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return ID{}, fmt.Errorf("job id %q: want <trial>.<epoch>.<release>", s)
	}
	id := ID{Trial: parts[0]}
	for i, into := range []*int{&id.Epoch, &id.Release} {
		n, err := strconv.Atoi(parts[i+1])
		if err != nil {
			return ID{}, fmt.Errorf("job id %q: %q is not a number", s, parts[i+1])
		}
		// One job, one spelling: deduplication compares the text.
		if strconv.Itoa(n) != parts[i+1] {
			return ID{}, fmt.Errorf("job id %q: %q: want the number as it is written: %d", s, parts[i+1], n)
		}
		*into = n
	}
	if err := id.Validate(); err != nil {
		return ID{}, err
	}
	return id, nil
}

// isToken says whether s is one or more of A-Z a-z 0-9 _ -. It is asked for each job of
// a run, which a regular expression is slow at.
func isToken(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return s != ""
}

// Validate reports the first thing that is wrong with the id.
func (id ID) Validate() error {
	switch {
	case !isToken(id.Trial):
		return fmt.Errorf("job id: trial %q: want one or more of A-Z a-z 0-9 _ -", id.Trial)
	case id.Epoch < 1:
		return fmt.Errorf("job id %s: epoch %d: want 1 or more", id.Trial, id.Epoch)
	case id.Release < 1:
		return fmt.Errorf("job id %s: release %d: want 1 or more", id.Trial, id.Release)
	}
	return nil
}

// Job is one thing to do. Which run it belongs to decides where it waits: see
// [Run].
type Job struct {
	ID
	// Run is the run that the job belongs to. It has been opened before.
	Run string
	// Body is opaque to the queue; [MaxBody] bytes at most.
	Body []byte
}

// Validate reports the first thing that is wrong with the job.
func (j Job) Validate() error {
	if err := j.ID.Validate(); err != nil {
		return err
	}
	if len(j.Body) > MaxBody {
		return fmt.Errorf("job %s: body of %d bytes: want %d at most", j.ID, len(j.Body), MaxBody)
	}
	return nil
}

// CheckJobs returns the jobs, each completed with the run's id, or the first
// thing that is wrong with any of them, as an [ErrInvalid].
func CheckJobs(run string, jobs []Job) ([]Job, error) {
	checked := slices.Clone(jobs)
	for i := range checked {
		j := &checked[i]
		if j.Run == "" {
			j.Run = run
		}
		if j.Run != run {
			return nil, fmt.Errorf("%w: job %s is of run %q: want run %q or none", ErrInvalid, j.ID, j.Run, run)
		}
		if err := j.Validate(); err != nil {
			return nil, fmt.Errorf("%w: run %s: %w", ErrInvalid, run, err)
		}
	}
	return checked, nil
}

// Class names what a run needs of a worker: words of [a-z0-9]+, sorted, without
// repeats, joined by "-", for example "docker-gpu". A worker only ever sees runs
// of the classes that it serves.
type Class string

var wordRE = regexp.MustCompile(`^[a-z0-9]+$`)

// NewClass sorts the needs, drops repeats and joins them. Without needs, or with
// a need that is not [a-z0-9]+, it returns an error.
func NewClass(needs ...string) (Class, error) {
	if len(needs) == 0 {
		return "", fmt.Errorf("class: no needs given; want at least a runtime type")
	}
	words := slices.Clone(needs)
	slices.Sort(words)
	words = slices.Compact(words)
	for _, w := range words {
		if !wordRE.MatchString(w) {
			return "", fmt.Errorf("class: need %q: want one or more of a-z 0-9", w)
		}
	}
	return Class(strings.Join(words, "-")), nil
}

// ServedBy reports whether a worker that offers these needs can serve the class.
func (c Class) ServedBy(offered ...string) bool {
	for w := range strings.SplitSeq(string(c), "-") {
		if !slices.Contains(offered, w) {
			return false
		}
	}
	return c != ""
}

// Validate reports whether the class is one that [NewClass] could have made.
func (c Class) Validate() error {
	words := strings.Split(string(c), "-")
	made, err := NewClass(words...)
	if err != nil {
		return err
	}
	if made != c {
		return fmt.Errorf("class %q: want its words sorted and without repeats: %q", c, made)
	}
	return nil
}
