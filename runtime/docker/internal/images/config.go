// SPDX-License-Identifier: Apache-2.0

package images

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"
)

// Config is how a [Store] is set up. Zero fields mean their defaults.
type Config struct {
	// DockerConfig is the directory with Docker's config.json, for credentials.
	// Default: the variable DOCKER_CONFIG, else .docker in the home directory.
	DockerConfig string
	// PullTimeout bounds a pull, all its tries together. Default 30 min.
	PullTimeout time.Duration
	// PullStall is how long the engine may say nothing in a pull before the try counts
	// as failed. Default 5 min.
	PullStall time.Duration
	// PullTries is how often a pull is tried. Default 5.
	PullTries int
	// Backoff is the longest wait before the second try; it doubles from try to try up
	// to MaxBackoff. Defaults 1 s and 30 s.
	Backoff, MaxBackoff time.Duration
	// BuildTimeout bounds a build whose image names no timeout. Default 10 min.
	BuildTimeout time.Duration
	// Builds is how many builds run at a time. Default 2.
	Builds int
	// ContextBytes and ContextEntries bound a build context after .dockerignore.
	// Defaults 4 GiB and 200000.
	ContextBytes   int64
	ContextEntries int
	// LogTail is how many bytes from the end of a build's log a failure keeps. Default
	// 64 KiB.
	LogTail int
	// FailureMemory is how long a build that can't succeed isn't tried again. Default
	// 10 min.
	FailureMemory time.Duration
	// Budget is how many bytes the images that were built here may take, together.
	// After a build those are removed whose last use is longest ago, until the rest
	// fits. Default 0: nothing is removed.
	Budget int64
	// Grace is how long after its last use an image is safe from removal. Default
	// 15 min.
	Grace time.Duration
	// Report is told of trouble that fails nobody: an image that could not be removed.
	// Default: nobody is told.
	Report func(error)
}

// WithDefaults returns a completed copy.
func (c Config) WithDefaults() Config {
	c.DockerConfig = cmp.Or(c.DockerConfig, os.Getenv("DOCKER_CONFIG"))
	c.PullTimeout = cmp.Or(c.PullTimeout, 30*time.Minute)
	c.PullStall = cmp.Or(c.PullStall, 5*time.Minute)
	c.PullTries = cmp.Or(c.PullTries, 5)
	c.Backoff = cmp.Or(c.Backoff, time.Second)
	c.MaxBackoff = cmp.Or(c.MaxBackoff, max(30*time.Second, c.Backoff))
	c.BuildTimeout = cmp.Or(c.BuildTimeout, 10*time.Minute)
	c.Builds = cmp.Or(c.Builds, 2)
	c.ContextBytes = cmp.Or(c.ContextBytes, 4<<30)
	c.ContextEntries = cmp.Or(c.ContextEntries, 200_000)
	c.LogTail = cmp.Or(c.LogTail, 64<<10)
	c.FailureMemory = cmp.Or(c.FailureMemory, 10*time.Minute)
	c.Grace = cmp.Or(c.Grace, 15*time.Minute)
	if c.Report == nil {
		c.Report = func(error) {}
	}
	return c
}

// Validate reports everything that is wrong with a completed configuration.
func (c Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		d    time.Duration
	}{
		{"pull timeout", c.PullTimeout},
		{"pull stall", c.PullStall},
		{"backoff", c.Backoff},
		{"longest backoff", c.MaxBackoff},
		{"build timeout", c.BuildTimeout},
		{"failure memory", c.FailureMemory},
		{"grace", c.Grace},
	} {
		if f.d <= 0 {
			errs = append(errs, fmt.Errorf("docker images: %s is %v: want more than 0", f.name, f.d))
		}
	}
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"pull tries", int64(c.PullTries)},
		{"builds", int64(c.Builds)},
		{"context bytes", c.ContextBytes},
		{"context entries", int64(c.ContextEntries)},
		{"log tail", int64(c.LogTail)},
	} {
		if f.n <= 0 {
			errs = append(errs, fmt.Errorf("docker images: %s is %d: want 1 or more", f.name, f.n))
		}
	}
	if c.MaxBackoff < c.Backoff {
		errs = append(errs, fmt.Errorf("docker images: longest backoff %v is shorter than backoff %v", c.MaxBackoff, c.Backoff))
	}
	if c.Budget < 0 {
		errs = append(errs, fmt.Errorf("docker images: budget is %d: want 0 for none, or more", c.Budget))
	}
	return errors.Join(errs...)
}
