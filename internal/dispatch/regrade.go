// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"maps"
	"slices"

	"github.com/tidemill/tidemill/bundle"
)

// Args of a regrade, beside its epochs.
const (
	argPacks  = "packs"  // {sha256 in the plan: sha256 of the pack that grades}
	argSelect = "select" // what a person asked for, in words
)

// RegradeArgs are the args of a control record that puts trials back to be graded once
// more. packs has only those packs in whose place another one grades; selection is what a
// person asked for, by which the same command is known again.
func RegradeArgs(packs map[string]string, selection []string) map[string]any {
	args := map[string]any{argSelect: toAny(selection)}
	if len(packs) > 0 {
		list := make(map[string]any, len(packs))
		for old, sum := range packs {
			list[old] = sum
		}
		args[argPacks] = list
	}
	return args
}

func toAny(words []string) []any {
	list := make([]any, len(words))
	for i, w := range words {
		list[i] = w
	}
	return list
}

// GradingPack is the sha256 of the pack that grades trials of a pack by this decision.
func GradingPack(c bundle.Control, pack string) string {
	packs, _ := c.Args[argPacks].(map[string]any)
	if sum, ok := packs[pack].(string); ok {
		return sum
	}
	return pack
}

// SamePacks reports whether a regrade has its trials graded by these packs.
func SamePacks(c bundle.Control, packs map[string]string) bool {
	listed, _ := c.Args[argPacks].(map[string]any)
	got := map[string]string{}
	for old, sum := range listed {
		got[old], _ = sum.(string)
	}
	return maps.Equal(got, packs)
}

// SameSelection reports whether a decision is of the same kind and for the same words.
func SameSelection(c bundle.Control, kind string, selection []string) bool {
	listed, _ := c.Args[argSelect].([]any)
	return c.Kind == kind && slices.Equal(listed, toAny(selection))
}
