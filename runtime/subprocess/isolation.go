// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/subprocess/internal/nest"
)

// Main is the hook for programs that make a [Runtime]: they call it first thing in main,
// in tests in TestMain. Sandboxes get their namespaces from a helper process that is this
// same program, executed again; in that process Main does the helping and never returns.
// In all others it returns at once.
func Main() { nest.Main() }

// Isolation says whether sandboxes get namespaces of their own.
type Isolation string

// The isolations. A run can choose under runtime.options.isolation.
const (
	// Auto isolates where the kernel allows it. [runtime.Properties] says whether it does.
	Auto Isolation = "auto"
	// None starts commands plainly.
	None Isolation = "none"
	// Required refuses to do without.
	Required Isolation = "required"
)

var isolations = []Isolation{Auto, None, Required}

func (i Isolation) check() error {
	if slices.Contains(isolations, i) {
		return nil
	}
	return fmt.Errorf("isolation %q: want auto, none or required", i)
}

// wardens keeps a nest.Warden: a dead one is replaced.
type wardens struct {
	cfg    nest.Config
	mu     sync.Mutex
	now    *nest.Warden
	closed bool
}

func (w *wardens) get(ctx context.Context) (*nest.Warden, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errRuntimeClosed
	}
	if w.now != nil {
		select {
		case <-w.now.Lost():
			_ = w.now.Close() // it is dead, and so is what it had
			w.now = nil
		default:
			return w.now, nil
		}
	}
	var err error
	w.now, err = nest.Start(ctx, w.cfg)
	return w.now, err
}

func (w *wardens) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.now == nil {
		return nil
	}
	err := w.now.Close()
	w.now = nil
	return err
}

var errNone = errors.New("isolation is none")

// isolate finds out what this machine allows. No hook is an error of the program, and not
// of the machine: abilities refuses to go on without.
func (r *Runtime) isolate() nest.Report {
	if r.cfg.Isolation == None {
		return nest.Report{Nests: errNone}
	}
	r.hide = nest.Hidden(append(nest.DefaultHide(), r.cfg.Hide...)...)
	w, err := r.wardens.get(context.Background())
	if err != nil {
		return nest.Report{Nests: err}
	}
	report := w.Probe(context.Background(), r.view(nil))
	if report.Nests != nil {
		_ = r.wardens.close() // nobody needs it
	}
	return report
}

// view is what sandboxes see of the host's files. Runs that ask for the same share one.
func (r *Runtime) view(visible []string) *nest.View {
	key := strings.Join(visible, "\x00")
	r.viewing.Lock()
	defer r.viewing.Unlock()
	v := r.views[key]
	if v == nil {
		shown := nest.Show(r.cfg.Path, r.hide, visible)
		v = &nest.View{Root: r.cfg.Root, Hide: r.hide, Show: shown.Paths, Links: shown.Links}
		if r.views == nil {
			r.views = map[string]*nest.View{}
		}
		r.views[key] = v
	}
	return v
}

// abilities are what can be enforced, with nests or without.
type abilities struct {
	nested   bool
	policies []runtime.NetworkPolicy
	limits   []string         // by the YAML key of runtime.Resources
	why      map[string]error // what is missing, by feature or key
}

func (r *Runtime) abilities(isolation Isolation) (abilities, error) {
	report := nest.Report{Nests: errNone}
	switch {
	case isolation != None:
		report = r.probed()
	case r.cfg.Isolation == Required:
		return abilities{}, fmt.Errorf("%w (this worker requires isolation)", refuse("options.isolation", string(None)))
	}
	if errors.Is(report.Nests, nest.ErrNoHook) {
		return abilities{}, errors.New("this program doesn't call subprocess.Main first thing in main: without it only isolation none is possible")
	}
	if report.Nests != nil {
		if isolation == Required {
			return abilities{}, fmt.Errorf("%w (%w)", refuse("options.isolation", string(Required)), report.Nests)
		}
		return abilities{policies: policies, why: map[string]error{
			"no_internet": report.Nests, "memory": report.Nests, "pids": report.Nests,
			"disk": report.Nests, "files": report.Nests, "shm": report.Nests,
		}}, nil
	}
	if isolation == Required && report.Hides != nil {
		return abilities{}, fmt.Errorf("%w (%w)", refuse("options.isolation", string(Required)), report.Hides)
	}
	a := abilities{nested: true, policies: slices.Clone(policies), why: map[string]error{}}
	if a.why["no_internet"] = report.Offline; report.Offline == nil {
		a.policies = append(a.policies, runtime.NoInternet)
	}
	for _, limit := range []struct {
		key string
		err error
	}{{"memory", report.Memory}, {"pids", report.Pids}, {"disk", report.Disk}, {"files", nil}, {"shm", nil}} {
		if a.why[limit.key] = limit.err; limit.err == nil {
			a.limits = append(a.limits, limit.key)
		}
	}
	return a, nil
}
