// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"encoding/json"
	"fmt"

	"github.com/tidemill/tidemill/bundle"
)

// agentUsage is usage.json.
type agentUsage struct {
	bundle.Usage
	Turns           int64    `json:"turns"`
	APICalls        int64    `json:"api_calls"`
	ToolCalls       int64    `json:"tool_calls"`
	ToolSuccessRate *float64 `json:"tool_success_rate"`
	StuckDetected   bool     `json:"stuck_detected"`
	CostUSD         *float64 `json:"cost_usd"` // nil: never priced
}

// What one trial can't pass honestly: with it sums over a million trials still fit.
const (
	maxCount   = 1e12
	maxCostUSD = 1e6
)

// parseUsage reads usage.json on top of what is known already; keys that it doesn't
// have stay as they are. Numbers that would make sums lie are refused.
func parseUsage(data []byte, known *agentUsage) (*agentUsage, error) {
	var u agentUsage
	if known != nil {
		u = *known
	}
	// Decoding writes through pointers, and known is to stay as it is.
	u.ToolSuccessRate, u.CostUSD = clone(u.ToolSuccessRate), clone(u.CostUSD)
	if err := json.Unmarshal(data, &u); err != nil {
		return known, fmt.Errorf("%s: %w", usageFile, err)
	}
	if err := u.check(); err != nil {
		return known, fmt.Errorf("%s: %w", usageFile, err)
	}
	return &u, nil
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

func (u *agentUsage) counts() []*int64 {
	return []*int64{
		&u.PromptTokens, &u.CompletionTokens, &u.ReasoningTokens, &u.CachedTokens,
		&u.CacheCreationInputTokens, &u.CacheReadInputTokens, &u.Turns, &u.APICalls, &u.ToolCalls,
	}
}

func (u *agentUsage) check() error {
	for _, n := range u.counts() {
		if *n < 0 || *n > maxCount {
			return fmt.Errorf("%d tokens, turns or calls: want a number from 0 to 1e12", *n)
		}
	}
	// Written so that a NaN is refused too.
	if c := u.CostUSD; c != nil && !(*c >= 0 && *c <= maxCostUSD) {
		return fmt.Errorf("cost_usd is %v: want a number from 0 to 1e6", *c)
	}
	if r := u.ToolSuccessRate; r != nil && !(*r >= 0 && *r <= 1) {
		return fmt.Errorf("tool_success_rate is %v: want a number from 0 to 1", *r)
	}
	return nil
}

// addUsage adds the usage of a step, and refuses a sum that can't be.
func (a *attempt) addUsage(step *agentUsage) {
	sum := *step
	if before := a.usage; before != nil {
		sum.ToolSuccessRate = meanRate(before, step)
		into := sum.counts()
		for i, n := range before.counts() {
			*into[i] += *n
		}
		sum.StuckDetected = before.StuckDetected || step.StuckDetected
		sum.CostUSD = addCost(before.CostUSD, step.CostUSD)
	}
	if err := sum.check(); err != nil {
		a.unreadable(usageFile, err)
		return
	}
	a.usage = &sum
	m := &a.metrics
	m.Usage, m.Turns, m.APICalls, m.ToolCalls = sum.Usage, sum.Turns, sum.APICalls, sum.ToolCalls
	m.ToolSuccessRate, m.StuckDetected, m.CostUSD = sum.ToolSuccessRate, sum.StuckDetected, sum.CostUSD
}

// addCost adds what is priced; nothing priced is nil and not 0.
func addCost(a, b *float64) *float64 {
	switch {
	case a == nil:
		return clone(b)
	case b == nil:
		return clone(a)
	}
	return new(*a + *b)
}

// meanRate weighs the rates of two steps by their calls.
func meanRate(a, b *agentUsage) *float64 {
	switch {
	case a.ToolSuccessRate == nil || a.ToolCalls == 0:
		return clone(b.ToolSuccessRate)
	case b.ToolSuccessRate == nil || b.ToolCalls == 0:
		return clone(a.ToolSuccessRate)
	}
	n, m := float64(a.ToolCalls), float64(b.ToolCalls)
	return new((*a.ToolSuccessRate*n + *b.ToolSuccessRate*m) / (n + m))
}
