// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/tidemill/tidemill/bundle"
)

// Op names a call of a store.
type Op string

// The calls.
const (
	OpCreate   Op = "create"
	OpSwap     Op = "swap"
	OpPut      Op = "put"
	OpGet      Op = "get"
	OpGetRange Op = "get_range"
	OpList     Op = "list"
	OpDelete   Op = "delete"
)

// Fault is a misbehaviour, and the calls that it befalls.
type Fault struct {
	// Op that it befalls; empty means any.
	Op Op
	// Key: part of the keys, or prefixes of listings, that it befalls.
	Key string
	// After lets that many matching calls pass first.
	After int
	// Times is how many calls it befalls then; 0 means all.
	Times int
	// Do is what happens.
	Do Action
	// Hit, if set, is called at the start of each call that the fault befalls, so that
	// a test can wait for it.
	Hit func(op Op, key string)
}

// Action is what a fault does to a call.
type Action struct {
	kind kind
	err  error
	n    int64
}

type kind int

const (
	kindFail kind = iota + 1
	kindStall
	kindDropAnswer
	kindLie
	kindCut
)

// Fail makes the call return an error without any effect: [bundle.ErrUnavailable],
// [bundle.ErrNoSpace] or what a test is about.
func Fail(err error) Action { return Action{kind: kindFail, err: err} }

// Pass lets the call through untouched, for a fault that only reports hits.
func Pass() Action { return Action{} }

// Stall makes the call wait until its context ends, without any effect.
func Stall() Action { return Action{kind: kindStall} }

// DropAnswer lets the call take effect and returns [bundle.ErrUnavailable] all the
// same.
func DropAnswer() Action { return Action{kind: kindDropAnswer} }

// Lie makes Create overwrite what is there and say that it was absent, Swap overwrite
// whatever the version is, and Get say that nothing is there.
func Lie() Action { return Action{kind: kindLie} }

// Cut ends the readers of Get and GetRange after n bytes with
// [io.ErrUnexpectedEOF], and a listing after n entries with [bundle.ErrUnavailable].
func Cut(n int64) Action { return Action{kind: kindCut, n: n} }

// Faulty is a store that misbehaves on request, and behaves like the one it wraps
// otherwise.
type Faulty struct {
	bundle.Store

	mu     sync.Mutex
	faults []*injected
	calls  map[Op]int
}

type injected struct {
	Fault
	seen int
}

var _ bundle.Store = (*Faulty)(nil)

// NewFaulty wraps a store.
func NewFaulty(s bundle.Store) *Faulty { return &Faulty{Store: s, calls: map[Op]int{}} }

// Inject adds a fault and returns a function that takes it away. Of several that match
// a call the first counts.
func (f *Faulty) Inject(fault Fault) (remove func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	in := &injected{Fault: fault}
	f.faults = append(f.faults, in)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.faults = slices.DeleteFunc(f.faults, func(other *injected) bool { return other == in })
	}
}

// Calls returns how often an op was called, whatever came of it.
func (f *Faulty) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// next counts a call and returns what shall befall it.
func (f *Faulty) next(op Op, key string) Action {
	f.mu.Lock()
	f.calls[op]++
	var hit *injected
	for _, in := range f.faults {
		if in.Op != "" && in.Op != op || !strings.Contains(key, in.Key) {
			continue
		}
		in.seen++
		if in.seen > in.After && (in.Times == 0 || in.seen <= in.After+in.Times) {
			hit = in
			break
		}
	}
	f.mu.Unlock()
	if hit == nil {
		return Action{}
	}
	if hit.Hit != nil {
		hit.Hit(op, key)
	}
	return hit.Do
}

// before does what befalls a call ahead of its effect.
func (a Action) before(ctx context.Context, op Op, key string) error {
	switch a.kind {
	case kindFail:
		return fmt.Errorf("%s %s: %w", op, key, a.err)
	case kindStall:
		<-ctx.Done()
		return fmt.Errorf("%s %s: %w", op, key, ctx.Err())
	}
	return nil
}

// after does what befalls a call behind its effect.
func (a Action) after(err error, op Op, key string) error {
	if a.kind == kindDropAnswer && err == nil {
		return fmt.Errorf("%s %s: answer lost: %w", op, key, bundle.ErrUnavailable)
	}
	return err
}

// Create implements [bundle.Store].
func (f *Faulty) Create(ctx context.Context, key string, body []byte) (bundle.Version, error) {
	a := f.next(OpCreate, key)
	if err := a.before(ctx, OpCreate, key); err != nil {
		return "", err
	}
	if a.kind == kindLie {
		return f.overwrite(ctx, key, body)
	}
	v, err := f.Store.Create(ctx, key, body)
	return v, a.after(err, OpCreate, key)
}

// Swap implements [bundle.Store].
func (f *Faulty) Swap(ctx context.Context, key string, old bundle.Version, body []byte) (bundle.Version, error) {
	a := f.next(OpSwap, key)
	if err := a.before(ctx, OpSwap, key); err != nil {
		return "", err
	}
	if a.kind == kindLie {
		return f.overwrite(ctx, key, body)
	}
	v, err := f.Store.Swap(ctx, key, old, body)
	return v, a.after(err, OpSwap, key)
}

func (f *Faulty) overwrite(ctx context.Context, key string, body []byte) (bundle.Version, error) {
	if err := f.Store.Put(ctx, key, strings.NewReader(string(body)), int64(len(body))); err != nil {
		return "", err
	}
	r, info, err := f.Store.Get(ctx, key)
	if err != nil {
		return "", err
	}
	return info.Version, r.Close()
}

// Put implements [bundle.Store].
func (f *Faulty) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	a := f.next(OpPut, key)
	if err := a.before(ctx, OpPut, key); err != nil {
		return err
	}
	return a.after(f.Store.Put(ctx, key, r, size), OpPut, key)
}

// Get implements [bundle.Store].
func (f *Faulty) Get(ctx context.Context, key string) (io.ReadCloser, bundle.Info, error) {
	a := f.next(OpGet, key)
	err := a.before(ctx, OpGet, key)
	if err == nil && a.kind == kindLie {
		err = fmt.Errorf("get %s: %w", key, bundle.ErrNotFound)
	}
	if err != nil {
		return nil, bundle.Info{}, err
	}
	r, info, err := f.Store.Get(ctx, key)
	r, err = a.cut(r, err, OpGet, key)
	return r, info, err
}

// GetRange implements [bundle.Store].
func (f *Faulty) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	a := f.next(OpGetRange, key)
	if err := a.before(ctx, OpGetRange, key); err != nil {
		return nil, err
	}
	r, err := f.Store.GetRange(ctx, key, off, n)
	return a.cut(r, err, OpGetRange, key)
}

// cut shortens a reader, or closes one whose answer is lost.
func (a Action) cut(r io.ReadCloser, err error, op Op, key string) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	if err := a.after(nil, op, key); err != nil {
		_ = r.Close()
		return nil, err
	}
	if a.kind != kindCut {
		return r, nil
	}
	return &cutReader{ReadCloser: r, left: a.n}, nil
}

type cutReader struct {
	io.ReadCloser
	left int64
}

func (c *cutReader) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.ReadCloser.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// List implements [bundle.Store].
func (f *Faulty) List(ctx context.Context, prefix string) iter.Seq2[bundle.Info, error] {
	return func(yield func(bundle.Info, error) bool) {
		a := f.next(OpList, prefix)
		if err := a.before(ctx, OpList, prefix); err != nil {
			yield(bundle.Info{}, err)
			return
		}
		n := int64(0)
		for info, err := range f.Store.List(ctx, prefix) {
			if a.kind == kindCut && n == a.n {
				yield(bundle.Info{}, fmt.Errorf("list %s: %w", prefix, bundle.ErrUnavailable))
				return
			}
			n++
			if !yield(info, err) {
				return
			}
		}
	}
}

// Delete implements [bundle.Store].
func (f *Faulty) Delete(ctx context.Context, key string) error {
	a := f.next(OpDelete, key)
	if err := a.before(ctx, OpDelete, key); err != nil {
		return err
	}
	return a.after(f.Store.Delete(ctx, key), OpDelete, key)
}
