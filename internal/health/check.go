// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Reason is why a process isn't live, or isn't ready.
type Reason struct {
	// Check is what was looked at, one word.
	Check  string `json:"check"`
	Detail string `json:"detail"`
}

// Check asks something outside of the process whether it answers.
type Check struct {
	Name string
	Ask  func(ctx context.Context) error
}

const (
	// checkTimeout bounds one question. Supervisors wait a few seconds at most.
	checkTimeout = 2 * time.Second
	// checkAge is how old an answer may be: several supervisors ask, and each question
	// costs a request somewhere.
	checkAge = 5 * time.Second
)

// checker asks, and remembers the answer for a while.
type checker struct {
	Check
	mu    sync.Mutex // held while it asks: one question at a time
	asked time.Time
	err   error
}

func (c *checker) answer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked.IsZero() && time.Since(c.asked) < checkAge {
		return c.err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := c.Ask(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s: %w", checkTimeout, err)
	}
	c.asked, c.err = time.Now(), err
	return err
}

// askAll returns the reasons of those that say no. They are asked at the same time.
func askAll(ctx context.Context, checks []*checker) []Reason {
	answers := make([]error, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() { answers[i] = c.answer(ctx) })
	}
	wg.Wait()
	var reasons []Reason
	for i, err := range answers {
		if err != nil {
			reasons = append(reasons, Reason{checks[i].Name, err.Error()})
		}
	}
	return reasons
}
