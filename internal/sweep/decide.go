// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"fmt"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// Lease is what is known of the lease of a resource's trial.
type Lease int

// What may be known.
const (
	// Unknown: nobody was asked, or could tell.
	Unknown Lease = iota
	// Free: nobody holds it.
	Free
	// Makers: the worker that made the resource holds it.
	Makers
	// Others: another worker holds it, so the maker's attempt is over.
	Others
)

// Facts are what a decision is made from, beside the resource.
type Facts struct {
	// Store is ours.
	Store string
	Now   time.Time
	// MinAge is how old a thing must be to go. 0 is any age.
	MinAge time.Duration
	// Alone: whoever makes such things needs a lock that we hold, so that what doesn't
	// live belongs to a dead process.
	Alone bool
	Lease Lease
}

// Verdict says what becomes of a resource.
type Verdict struct {
	Goes bool
	// Why in words, for people.
	Why string
	// Ask: it stays only because the lease is unknown.
	Ask bool
}

// Decide is the rule.
func Decide(r runtime.Resource, f Facts) Verdict {
	stays := func(format string, args ...any) Verdict { return Verdict{Why: fmt.Sprintf(format, args...)} }
	goes := func(format string, args ...any) Verdict {
		return Verdict{Goes: true, Why: fmt.Sprintf(format, args...)}
	}
	l := r.Labels
	expired := !l.ExpiresAt.IsZero() && !f.Now.Before(l.ExpiresAt)
	switch {
	case f.Store == "" || l.Store != f.Store:
		return stays("it belongs to another store")
	case r.Live:
		return stays("its maker lives")
	case r.Kept && !expired:
		return stays("it is kept%s", until(l.ExpiresAt))
	case f.MinAge > 0 && r.Created.IsZero() && !expired:
		return stays("nobody knows how old it is")
	case f.MinAge > 0 && !r.Created.IsZero() && f.Now.Sub(r.Created) < f.MinAge:
		return stays("it is younger than %s", f.MinAge)
	case expired && r.Kept:
		return goes("it was kept until %s", stamp(l.ExpiresAt))
	case expired:
		return goes("it expired at %s", stamp(l.ExpiresAt))
	case f.Alone:
		return goes("its maker is gone")
	case l.Run == "" || l.Trial == "":
		return stays("it is of no trial that could have a lease%s", until(l.ExpiresAt))
	}
	switch f.Lease {
	case Free:
		return goes("nobody holds its trial's lease")
	case Others:
		return goes("another worker holds its trial's lease")
	case Makers:
		return stays("its maker holds its trial's lease")
	}
	v := stays("its maker is gone, but nobody can say who holds its trial's lease%s", until(l.ExpiresAt))
	v.Ask = true
	return v
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", until " + stamp(t)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
