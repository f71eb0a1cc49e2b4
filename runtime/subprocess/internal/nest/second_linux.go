// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"fmt"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// second is another thread of a nest: in all of its namespaces but the network. Without
// root nobody can go back into the host's network who has left it, so somebody has to
// stay there.
type second struct {
	work  chan func()
	ended chan struct{}
}

func newSecond(init int, g *group) (*second, error) {
	s := &second{work: make(chan func()), ended: make(chan struct{})}
	ready := make(chan error)
	go func() {
		defer close(s.ended)
		goruntime.LockOSThread() // for good: the thread ends with the goroutine
		err := s.enter(init, g)
		ready <- err
		if err != nil {
			return
		}
		for f := range s.work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		<-s.ended
		return nil, err
	}
	return s, nil
}

func (s *second) enter(init int, g *group) error {
	if err := g.join(); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	const flags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if err := unix.Setns(init, flags); err != nil {
		return fmt.Errorf("enter the nest a second time: %w", err)
	}
	return dropPrivileges()
}

// do runs f there.
func (s *second) do(f func()) {
	done := make(chan struct{})
	s.work <- func() { defer close(done); f() }
	<-done
}

func (s *second) end() {
	close(s.work)
	<-s.ended
}
