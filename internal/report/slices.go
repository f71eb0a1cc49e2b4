// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
)

// What a slice is called for tasks that name none. A task without tags or expected
// failure modes is in no slice of these.
const (
	unknownType           = "unknown"
	unspecifiedComplexity = "unspecified"
)

// slicing groups tasks by what their pack says of them, as metadata_slices.json does.
type slicing struct {
	types, complexities, tags, modes map[string]*group
}

func newSlicing() *slicing {
	return &slicing{map[string]*group{}, map[string]*group{}, map[string]*group{}, map[string]*group{}}
}

func (s *slicing) add(t *taskSums, meta Meta) {
	into(s.types, cmp.Or(meta.BenchmarkType, unknownType), t)
	into(s.complexities, cmp.Or(meta.Complexity, unspecifiedComplexity), t)
	for _, tag := range meta.Tags {
		into(s.tags, tag, t)
	}
	for _, mode := range meta.ExpectedFailureModes {
		into(s.modes, mode, t)
	}
}

func into(groups map[string]*group, name string, t *taskSums) {
	g := groups[name]
	if g == nil {
		g = newGroup()
		groups[name] = g
	}
	g.add(t)
}

// Slices is metadata_slices.json.
type Slices struct {
	ByBenchmarkType       map[string]Core `json:"by_benchmark_type"`
	ByComplexity          map[string]Core `json:"by_complexity"`
	ByTag                 map[string]Core `json:"by_tag"`
	ByExpectedFailureMode map[string]Core `json:"by_expected_failure_mode"`
}

func (s *slicing) result() Slices {
	return Slices{cores(s.types), cores(s.complexities), cores(s.tags), cores(s.modes)}
}

func cores(groups map[string]*group) map[string]Core {
	out := make(map[string]Core, len(groups))
	for name, g := range groups {
		out[name] = g.core()
	}
	return out
}
