// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/queue"
)

// What this worker lacks another one may have. So it leaves the trial to others, uncharged,
// and asks for no more of its run for a while: a trial that is handed back comes before all
// others, and would be back at once.

// refuseFor is how long nothing of a run is asked for. The environment of a process doesn't
// change; but what the run's other trials need may be there.
const refuseFor = 10 * time.Minute

// refusals are the runs of which the worker takes nothing for now.
type refusals struct {
	mu   sync.Mutex
	list map[string]refusal // by run
}

type refusal struct {
	why   string
	until time.Time
}

func newRefusals() *refusals { return &refusals{list: map[string]refusal{}} }

// note refuses a run from now on. It reports whether that is new.
func (r *refusals) note(run, why string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
	_, had := r.list[run]
	r.list[run] = refusal{why, time.Now().Add(refuseFor)}
	return !had
}

// forget drops what is over. Call it with the lock held.
func (r *refusals) forget() {
	maps.DeleteFunc(r.list, func(_ string, f refusal) bool { return time.Now().After(f.until) })
}

// runs are those that are refused now, sorted.
func (r *refusals) runs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
	return slices.Sorted(maps.Keys(r.list))
}

// told is what others are told of them: those that were refused last, as many as fit.
func (r *refusals) told() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
	runs := slices.SortedFunc(maps.Keys(r.list), func(a, b string) int {
		return cmp.Or(r.list[b].until.Compare(r.list[a].until), cmp.Compare(a, b))
	})
	out := map[string]string{}
	for _, run := range runs[:min(len(runs), queue.MaxRefused)] {
		out[run] = r.list[run].why
	}
	return out
}

// refuse notes that nothing more of this run is to be had here.
func (wk *work) refuse(why string) {
	if wk.w.refusals.note(wk.keys.Run, why) {
		wk.log.Warn().Str("why", why).Msg("this worker leaves the run's trials to others")
	}
}

// agentLacks says what the worker lacks for the agent, "" for nothing.
func (wk *work) agentLacks() string {
	if wk.earlier != nil { // no agent runs
		return ""
	}
	_, missing := trial.SecretsFrom(wk.rec.Run.Agent.Secrets)
	return lacks(missing...)
}

func lacks(secrets ...string) string {
	if len(secrets) == 0 {
		return ""
	}
	return "has no " + strings.Join(secrets, ", ")
}

// noSecretError says that a secret isn't set here.
type noSecretError struct{ name, worker string }

func (e *noSecretError) Error() string {
	return "secret " + e.name + " is not set on worker " + e.worker + "; set it in the worker's environment"
}

// leftToOthers is the cause with which an attempt is stopped that this worker can't make.
type leftToOthers struct{ why string }

func (l *leftToOthers) Error() string { return l.why }

// Is has it treated like any attempt that another worker is to make.
func (l *leftToOthers) Is(target error) bool { return target == trial.ErrHandOver }
