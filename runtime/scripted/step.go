// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

var (
	errTimedOut = errors.New("the command's timeout elapsed")
	errKilled   = errors.New("killed")
	errBudget   = errors.New("the budget for closing is used up")
	errNotReady = errors.New("not ready in time")
)

// scope is whose script it is that runs.
type scope struct {
	rt      *Runtime
	name    string // the sandbox's
	attempt int
	box     *box // nil in Prepare
}

type scoped interface{ scope() scope }

// step is an instruction that was read and can be carried out, for a command or for
// an Open or Close.
type step[T scoped] func(ctx context.Context, on T) error

// words reads the rest of an instruction by its first word.
type words[T scoped] map[string]func(rest string) (step[T], error)

// read reads one instruction: what all scripts share, or one of the given words.
func read[T scoped](text string, own words[T]) (step[T], error) {
	first, rest := word(text)
	parse, ok := own[first]
	if isShared(first) {
		parse, ok = func(rest string) (step[T], error) { return shared(first, rest, own) }, true
	}
	if !ok {
		known := slices.Sorted(maps.Keys(own))
		known = append(known, sharedWords...)
		slices.Sort(known)
		return nil, fmt.Errorf("unknown instruction %q, want one of %s", text, strings.Join(known, ", "))
	}
	s, err := parse(rest)
	if err != nil {
		return nil, wrap(text, err)
	}
	return s, nil
}

func wrap(text string, err error) error {
	return fmt.Errorf("instruction %q: %w", text, err)
}

// sharedWords are known in all scripts.
var sharedWords = []string{"block", "first", "log", "on-attempt", "signal", "sleep"}

func isShared(word string) bool { return slices.Contains(sharedWords, word) }

func shared[T scoped](first, rest string, own words[T]) (step[T], error) {
	switch first {
	case "first", "on-attempt":
		count, inner := word(rest)
		n, err := number(count)
		if err != nil {
			return nil, err
		}
		do, err := read(inner, own)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, on T) error {
			s := on.scope()
			if first == "first" && s.rt.cfg.Provider.count(s.name+"\x00"+rest) > n || first == "on-attempt" && s.attempt != n {
				return nil
			}
			return do(ctx, on)
		}, nil
	case "sleep":
		d, err := duration(rest)
		return func(ctx context.Context, on T) error { return sleep(ctx, on.scope().rt.cfg.Clock, d) }, err
	case "block":
		args, err := fields(rest, 1)
		return func(ctx context.Context, on T) error {
			return on.scope().rt.cfg.Control.block(ctx, on.scope().name, args[0])
		}, err
	case "signal":
		args, err := fields(rest, 1)
		return func(_ context.Context, on T) error {
			on.scope().rt.cfg.Control.reach(on.scope().name, args[0])
			return nil
		}, err
	case "log":
		service, text, err := field(rest)
		if err != nil {
			return nil, err
		}
		text, err = literal(text)
		return evidence[T](service, func(e *runtime.ServiceEvidence) { e.Log = append(e.Log, text+"\n"...) }), err
	default:
		return nil, fmt.Errorf("%s is none of the shared instructions", first)
	}
}

// evidence changes what there is to say about a service; "-" is the one without a
// name.
func evidence[T scoped](service string, change func(*runtime.ServiceEvidence)) step[T] {
	return func(_ context.Context, on T) error {
		b := on.scope().box
		if b == nil {
			return nil
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		change(b.about(strings.TrimPrefix(service, "-")))
		return nil
	}
}

// readAll reads instructions.
func readAll[T scoped](texts []string, own words[T]) ([]step[T], error) {
	var out []step[T]
	for _, text := range texts {
		s, err := read(text, own)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// play carries steps out until one fails or ctx ends.
func play[T scoped](ctx context.Context, steps []step[T], on T) error {
	for _, s := range steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s(ctx, on); err != nil {
			return err
		}
	}
	return nil
}
