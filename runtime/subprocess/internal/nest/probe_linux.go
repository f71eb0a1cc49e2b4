// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ProbePrefix begins the name of the directory that a probe makes for itself. What a
// crash left of one may be removed.
const ProbePrefix = "@probe-"

// Probe opens nests and finds out what holds in them. Whatever must fail inside is done
// outside as well, where it must succeed: a test that can't fail proves nothing.
func (w *Warden) Probe(ctx context.Context, view *View) Report {
	p, err := w.newProbe(view)
	if err != nil {
		return failed(fmt.Errorf("probe: %w", err))
	}
	defer p.close()
	var r Report
	r.Nests = p.with(ctx, func(s *Spec) { s.Offline = true }, func(n *Nest) error {
		inside, err := n.Look(ctx, p.look)
		if err != nil {
			return err
		}
		outside, err := w.Look(ctx, p.look)
		if err != nil {
			return err
		}
		r.Hides, r.Offline = p.hides(inside, outside), p.offline(inside, outside)
		return n.End(ctx)
	})
	if r.Nests != nil {
		return failed(r.Nests)
	}
	r.Memory = p.with(ctx, func(s *Spec) { s.Memory = 64 << 20 }, p.grouped)
	r.Pids = p.with(ctx, func(s *Spec) { s.Pids = 64 }, p.grouped)
	r.Disk = p.with(ctx, func(s *Spec) { s.Disk = 64 << 10 }, overfill)
	return r
}

// probe is what there is to find, or not to.
type probe struct {
	warden    *Warden
	spec      Spec
	top       string
	listeners []net.Listener
	look      Look
}

func (w *Warden) newProbe(view *View) (_ *probe, err error) {
	p := &probe{warden: w}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.top, err = os.MkdirTemp(view.Root, ProbePrefix); err != nil {
		return nil, err
	}
	name := filepath.Base(p.top)
	p.spec = Spec{
		Name: "probe" + strings.TrimPrefix(name, ProbePrefix), View: view,
		Dirs: []string{filepath.Join(p.top, "own")}, Tmp: filepath.Join(p.top, "own", "tmp"),
	}
	if err := os.MkdirAll(p.spec.Tmp, 0o700); err != nil {
		return nil, err
	}
	canary, mine := filepath.Join(p.top, "canary"), filepath.Join(p.spec.Dirs[0], "mine")
	for _, file := range []string{canary, mine} {
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			return nil, err
		}
	}
	sock := filepath.Join(p.top, "s")
	if len(sock) > 100 { // what an address can hold
		sock = ""
	}
	for _, l := range [][2]string{{"tcp", "127.0.0.1:0"}, {"unix", "@tidemill-" + name}, {"unix", sock}} {
		if l[1] == "" {
			continue
		}
		ln, err := net.Listen(l[0], l[1])
		if err != nil {
			return nil, err
		}
		p.listeners = append(p.listeners, ln)
		p.look.Dial = append(p.look.Dial, l[0]+":"+ln.Addr().String())
	}
	p.look.Read = []string{mine, canary}
	p.look.Write = []string{mine, canary}
	for _, file := range []string{"/etc/passwd", "/etc/hostname", "/proc/sys/kernel/core_pattern"} {
		if unix.Access(file, unix.W_OK) == nil { // who can't do it outside needn't be kept from it
			p.look.Write = append(p.look.Write, file)
		}
	}
	return p, nil
}

func (p *probe) close() {
	for _, l := range p.listeners {
		l.Close()
	}
	_ = os.RemoveAll(p.top)
}

func (p *probe) with(ctx context.Context, edit func(*Spec), do func(*Nest) error) error {
	spec := p.spec
	edit(&spec)
	n, err := p.warden.Open(ctx, spec)
	if err != nil {
		return err
	}
	err = do(n)
	return errors.Join(err, n.Close(context.WithoutCancel(ctx)))
}

// hides judges what can be read and written.
func (p *probe) hides(in, out Seen) error {
	if err := errors.Join(in.Read[0], in.Write[0]); err != nil {
		return fmt.Errorf("the nest's own files can't be used: %w", err)
	}
	for i, path := range p.look.Read[1:] {
		if out.Read[i+1] != nil {
			return fmt.Errorf("the test proves nothing: %s can't be read outside either: %w", path, out.Read[i+1])
		}
		if in.Read[i+1] == nil {
			return fmt.Errorf("%s can be read inside", path)
		}
	}
	for i, path := range p.look.Write[1:] {
		if in.Write[i+1] == nil {
			return fmt.Errorf("%s can be written to inside", path)
		}
		if path == p.look.Read[1] && out.Write[i+1] != nil {
			return fmt.Errorf("the test proves nothing: %s can't be written to outside either: %w", path, out.Write[i+1])
		}
	}
	return nil
}

// offline judges what can be dialed.
func (p *probe) offline(in, out Seen) error {
	for i, target := range p.look.Dial {
		if out.Dial[i] != nil {
			return fmt.Errorf("the test proves nothing: %s can't be reached outside either: %w", target, out.Dial[i])
		}
		if in.Dial[i] == nil {
			return fmt.Errorf("%s can be reached inside", target)
		}
	}
	return nil
}

// grouped checks that the nest's processes are where the limit is.
func (p *probe) grouped(*Nest) error {
	found := slices.ContainsFunc(p.warden.Groups(p.spec.Name), func(dir string) bool {
		procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		return err == nil && len(procs) > 0
	})
	if !found {
		return errors.New("the nest is not in its control group")
	}
	return nil
}

// overfill writes more than the disk holds.
func overfill(n *Nest) error {
	fd, err := unix.Openat(int(n.Dirs()[0].Fd()), "big", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("the disk can't be written to: %w", err)
	}
	f := os.NewFile(uintptr(fd), "big")
	defer f.Close()
	if _, err := f.Write(make([]byte, 256<<10)); !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("a disk of 64 KiB takes 256 KiB (error %v)", err)
	}
	return nil
}
