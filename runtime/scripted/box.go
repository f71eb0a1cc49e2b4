// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"context"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// box is a sandbox as its provider has it, whoever holds it.
type box struct {
	id      string
	name    string
	spec    runtime.Spec
	owner   *Runtime // under mu; nil when it was kept
	created time.Time
	fs      *memfs

	// ctx lives as long as the box; its cause is ErrLost or ErrClosed.
	ctx context.Context
	end context.CancelCauseFunc

	mu       sync.Mutex
	kept     bool
	phase    runtime.Phase
	lastPID  int
	procs    map[int]*proc
	evidence map[string]*runtime.ServiceEvidence
	missing  []string
	doors    map[string]*door     // ingress by host
	servers  map[endpoint]*server // what "serve" started
}

// proc is a command, or a process that a command left behind.
type proc struct {
	pid, group int
	left       bool // left behind: EndProcesses ends it
	daemon     bool // in a session of its own: survives its command's death
	cancel     context.CancelCauseFunc
	done       chan struct{}
}

func newBox(owner *Runtime, name string, spec runtime.Spec) *box {
	ctx, end := context.WithCancelCause(context.Background())
	b := &box{
		name: name, spec: spec, owner: owner, created: owner.cfg.Clock.Now(), fs: newMemfs(spec.Resources.Disk),
		ctx: ctx, end: end, phase: runtime.Setup, procs: map[int]*proc{}, evidence: map[string]*runtime.ServiceEvidence{},
		doors: map[string]*door{}, servers: map[endpoint]*server{},
	}
	// Of an empty file system, with a path that was checked.
	_, _ = b.fs.strict(b.path(runtime.Workdir), true)
	return b
}

// path returns where a place is.
func (b *box) path(p runtime.Place) string {
	switch {
	case p == runtime.Root:
		return "/"
	case p == runtime.Workdir && b.spec.Workdir != "":
		return path.Clean(b.spec.Workdir)
	}
	return places[p]
}

func (b *box) handle() runtime.Handle {
	return runtime.Handle{Runtime: Type, Kind: "sandbox", ID: b.id}
}

// begin enters a process. Its group is its own id unless it is left behind by another.
func (b *box) begin(parent *proc, daemon bool, cancel context.CancelCauseFunc) *proc {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lastPID++
	p := &proc{pid: b.lastPID, group: b.lastPID, left: parent != nil, daemon: daemon, cancel: cancel, done: make(chan struct{})}
	if parent != nil && !daemon {
		p.group = parent.group
	}
	b.procs[p.pid] = p
	return p
}

// finish is called by the process itself, as the last thing that it does.
func (b *box) finish(p *proc) {
	b.mu.Lock()
	delete(b.procs, p.pid)
	b.mu.Unlock()
	close(p.done)
}

func (b *box) processCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.procs)
}

func (b *box) selected(which func(*proc) bool) []*proc {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*proc
	for _, p := range b.procs {
		if which(p) {
			out = append(out, p)
		}
	}
	return out
}

// kill ends processes and waits for them.
func (b *box) kill(ctx context.Context, which func(*proc) bool) error {
	procs := b.selected(which)
	for _, p := range procs {
		p.cancel(errKilled)
	}
	return wait(ctx, procs)
}

// await waits until all that ran in an ended box is gone.
func (b *box) await(ctx context.Context) error {
	b.shut()
	return wait(ctx, b.selected(func(*proc) bool { return true }))
}

// shut ends what listens.
func (b *box) shut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.doors {
		_ = d.Close()
	}
	for _, s := range b.servers {
		s.stop()
	}
	clear(b.doors)
	clear(b.servers)
}

func wait(ctx context.Context, procs []*proc) error {
	for _, p := range procs {
		select {
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("process %d doesn't end: %w", p.pid, context.Cause(ctx))
		}
	}
	return nil
}

// about returns the evidence of a service, to be changed under b.mu.
func (b *box) about(service string) *runtime.ServiceEvidence {
	if b.evidence[service] == nil {
		b.evidence[service] = &runtime.ServiceEvidence{Service: service}
	}
	return b.evidence[service]
}
