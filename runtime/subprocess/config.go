// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Config is how a [Runtime] is set up. Zero fields mean their defaults.
type Config struct {
	// Root is the directory that holds the sandboxes. It is made, for this user only,
	// where it is missing; its parent must exist. Required.
	Root string
	// Store is the uuid of the store that sandboxes are made for. Only what belongs to
	// it is listed, destroyed or taken over. Required.
	Store string
	// Isolation says whether sandboxes get namespaces of their own; a run can choose
	// otherwise, unless it is None here. Default [Auto]. All but [None] need [Main].
	Isolation Isolation
	// Hide are directories that sandboxes with namespaces don't see, beyond home
	// directories, /run and each other: the data directory, caches. One that holds Root
	// may be among them.
	Hide []string
	// Cgroup is a directory of a cgroup version 2 hierarchy below which the groups for
	// limits are made. Default: the worker's own group, or its parent.
	Cgroup string
	// KillGrace is how long a command whose timeout elapsed has between SIGTERM and
	// SIGKILL. Default 0: SIGKILL at once. A cancelled command gets no grace.
	KillGrace time.Duration
	// KillTimeout is how long to wait for killed processes to be gone before that is
	// an error. Default 10 s.
	KillTimeout time.Duration
	// OutputGrace is how long output is read on after a command ended while one of its
	// children keeps its streams open. What the command itself wrote is read in any
	// case. Default 100 ms.
	OutputGrace time.Duration
	// CloseTimeout is the time that Sandbox.Close has, whatever its context says.
	// Default 1 min.
	CloseTimeout time.Duration
	// Path is the PATH of the commands. Default: the worker's own, and where that is
	// empty the usual directories.
	Path string
	// SkippedCap is how many entries a copy's report of what it left out names; all
	// are counted. Default 1000.
	SkippedCap int
}

const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// WithDefaults returns a completed copy.
func (c Config) WithDefaults() Config {
	c.Isolation = cmp.Or(c.Isolation, Auto)
	c.KillTimeout = cmp.Or(c.KillTimeout, 10*time.Second)
	c.OutputGrace = cmp.Or(c.OutputGrace, 100*time.Millisecond)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, time.Minute)
	c.Path = cmp.Or(c.Path, os.Getenv("PATH"), usualPath)
	c.SkippedCap = cmp.Or(c.SkippedCap, 1000)
	return c
}

// Validate reports everything that is wrong with a completed configuration.
func (c Config) Validate() error {
	var errs []error
	if c.Root == "" {
		errs = append(errs, errors.New("subprocess root is empty: want a directory for the sandboxes"))
	}
	if c.Store == "" {
		errs = append(errs, errors.New("subprocess store is empty: want the uuid of the store"))
	}
	if err := c.Isolation.check(); err != nil {
		errs = append(errs, fmt.Errorf("subprocess %w", err))
	}
	for _, dir := range c.Hide {
		if !filepath.IsAbs(dir) {
			errs = append(errs, fmt.Errorf("subprocess hides %q: want an absolute path", dir))
		}
	}
	if c.KillGrace < 0 {
		errs = append(errs, fmt.Errorf("subprocess kill grace is %v: want 0 or more", c.KillGrace))
	}
	if c.SkippedCap < 0 {
		errs = append(errs, fmt.Errorf("subprocess skipped cap is %d: want 1 or more", c.SkippedCap))
	}
	for name, d := range map[string]time.Duration{
		"close timeout": c.CloseTimeout, "kill timeout": c.KillTimeout, "output grace": c.OutputGrace,
	} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("subprocess %s is %v: want more than 0", name, d))
		}
	}
	return errors.Join(errs...)
}
