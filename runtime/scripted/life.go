// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tidemill/tidemill/runtime"
)

// Variables of Spec.Env that hold the scripts of Open and Close.
const (
	OpenVar  = "SCRIPT_OPEN"
	CloseVar = "SCRIPT_CLOSE"
)

// life carries out the scripts of Prepare, Open and Close.
type life struct {
	rt   *Runtime
	name string
	box  *box
}

func (l life) scope() scope {
	s := scope{rt: l.rt, name: l.name, box: l.box}
	if l.box != nil {
		s.attempt = l.box.spec.Labels.Attempt
	}
	return s
}

// failure is a script's "fail".
type failure struct {
	stage     string
	permanent bool
	err       error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// badScript is a script that can't be read: trying again won't help.
type badScript struct{ err error }

func (e *badScript) Error() string { return e.err.Error() }
func (e *badScript) Unwrap() error { return e.err }

// play reads and carries out a script of Prepare or Close, where "fail" has no stage.
func (l life) play(ctx context.Context, text string) error { return l.perform(ctx, text, endWords) }

func (l life) open(ctx context.Context, text string) error { return l.perform(ctx, text, openWords) }

func (l life) perform(ctx context.Context, text string, own words[life]) error {
	texts, err := list(text)
	if err != nil {
		return &badScript{err}
	}
	steps, err := readAll(texts, own)
	if err != nil {
		return &badScript{err}
	}
	return play(ctx, steps, l)
}

func fails(f *failure) step[life] { return func(context.Context, life) error { return f } }

var endWords = words[life]{
	"fail": func(rest string) (step[life], error) {
		text, err := literal(rest)
		return fails(&failure{err: errors.New(cmp.Or(text, "it was to fail"))}), err
	},
	"capacity": capacity,
}

var openWords = words[life]{
	"fail":           func(rest string) (step[life], error) { return fail(rest, false) },
	"fail-permanent": func(rest string) (step[life], error) { return fail(rest, true) },
	"fail-times": func(rest string) (step[life], error) {
		count, inner := word(rest)
		n, err := number(count)
		if err != nil {
			return nil, err
		}
		do, err := fail(inner, false)
		return func(ctx context.Context, on life) error {
			if on.rt.cfg.Provider.count(on.name+"\x00fail-times "+rest) > n {
				return nil
			}
			return do(ctx, on)
		}, err
	},
	"capacity": capacity,
	"missing": func(rest string) (step[life], error) {
		text, err := literal(rest)
		return func(_ context.Context, on life) error {
			on.box.mu.Lock()
			defer on.box.mu.Unlock()
			on.box.missing = append(on.box.missing, text)
			return nil
		}, err
	},
	"service-oom": func(rest string) (step[life], error) {
		args, err := fields(rest, 1)
		if err != nil {
			return nil, err
		}
		return evidence[life](args[0], func(e *runtime.ServiceEvidence) { e.OOMKilled = true }), nil
	},
	"service-exit": func(rest string) (step[life], error) {
		return counted(rest, func(e *runtime.ServiceEvidence, n int) { e.ExitCode = &n })
	},
	"service-restarts": func(rest string) (step[life], error) {
		return counted(rest, func(e *runtime.ServiceEvidence, n int) { e.Restarts = n })
	},
	"lose-sandbox": func(rest string) (step[life], error) {
		_, err := fields(rest, 0)
		return func(_ context.Context, on life) error { on.box.end(runtime.ErrLost); return nil }, err
	},
}

func counted(rest string, change func(*runtime.ServiceEvidence, int)) (step[life], error) {
	args, err := fields(rest, 2)
	if err != nil {
		return nil, err
	}
	n, err := number(args[1])
	return evidence[life](args[0], func(e *runtime.ServiceEvidence) { change(e, n) }), err
}

func fail(rest string, permanent bool) (step[life], error) {
	stage, text, err := field(rest)
	if err != nil {
		return nil, fmt.Errorf("want a stage and a text: %w", err)
	}
	text, err = literal(text)
	return fails(&failure{stage, permanent, errors.New(cmp.Or(text, "it was to fail"))}), err
}

func capacity(rest string) (step[life], error) {
	text, err := literal(rest)
	return fails(&failure{err: fmt.Errorf("%s: %w", cmp.Or(text, "the provider is full"), runtime.ErrCapacity)}), err
}
