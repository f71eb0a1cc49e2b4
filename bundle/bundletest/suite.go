// SPDX-License-Identifier: Apache-2.0

package bundletest

import (
	"cmp"
	"testing"

	"github.com/tidemill/tidemill/bundle"
)

// Harness tells the suite how to get stores, and what this kind can't be asked for.
type Harness struct {
	// Open returns an empty store that shares no objects with any other. The suite
	// closes it when the test ends.
	Open func(t *testing.T) bundle.Store
	// Second returns another value for the objects of a store that Open returned, as
	// another process would have it. Nil when there can't be one.
	Second func(t *testing.T, first bundle.Store) bundle.Store

	// InMemory: objects are held in memory, so streaming can't be frugal.
	InMemory bool
	// RaceRounds is how many keys are raced for. Default 20.
	RaceRounds int
	// ListKeys is how many objects a large listing has. Default 1100: more than a
	// page of an S3 listing.
	ListKeys int
	// StreamBytes is the size of the large object. Default 64 MiB.
	StreamBytes int64
}

func (h Harness) withDefaults() Harness {
	h.RaceRounds = cmp.Or(h.RaceRounds, 20)
	h.ListKeys = cmp.Or(h.ListKeys, 1100)
	h.StreamBytes = cmp.Or(h.StreamBytes, 64<<20)
	return h
}

func (h Harness) open(t *testing.T) bundle.Store {
	t.Helper()
	s := h.Open(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// handles returns one store as seen by several processes, or once where that can't be.
func (h Harness) handles(t *testing.T) []bundle.Store {
	t.Helper()
	first := h.open(t)
	if h.Second == nil {
		return []bundle.Store{first}
	}
	second := h.Second(t, first)
	t.Cleanup(func() {
		if err := second.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return []bundle.Store{first, second}
}

// Run checks a store against the contract.
func Run(t *testing.T, h Harness) {
	h = h.withDefaults()
	for _, c := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"Keys/Accepted", testKeysAccepted},
		{"Keys/Refused", testKeysRefused},
		{"Keys/RefusedPrefixes", testPrefixesRefused},
		{"Create/New", testCreateNew},
		{"Create/Exists", testCreateExists},
		{"Create/AfterDelete", testCreateAfterDelete},
		{"Create/Race", testCreateRace},
		{"Create/SelfTest", testSelfTest},
		{"Create/KeepsNoReference", testCreateKeepsNoReference},
		{"Swap/Unchanged", testSwap},
		{"Swap/Changed", testSwapChanged},
		{"Swap/Gone", testSwapGone},
		{"Swap/SameContentIsAnotherVersion", testSwapABA},
		{"Swap/Race", testSwapRace},
		{"Swap/LosesNoCount", testSwapCounter},
		{"Put/Replaces", testPutReplaces},
		{"Put/NeverAMixture", testPutNeverAMixture},
		{"Put/WrongSize", testPutWrongSize},
		{"Put/ReaderFails", testPutReaderFails},
		{"Put/Unseekable", testPutUnseekable},
		{"Put/FromWhereItStands", testPutFromWhereItStands},
		{"Put/Empty", testPutEmpty},
		{"Put/Stream", testPutStream},
		{"TakeDir/Takes", testTakeDir},
		{"TakeDir/Beside", testTakeDirBeside},
		{"TakeDir/Refused", testTakeDirRefused},
		{"Get/Info", testGetInfo},
		{"Get/NotFound", testNotFound},
		{"Get/SurvivesReplacement", testGetSurvivesReplacement},
		{"GetRange/Edges", testGetRange},
		{"List/Prefixes", testListPrefixes},
		{"List/Empty", testListEmpty},
		{"List/Dirs", testListDirs},
		{"List/EarlyBreak", testListEarlyBreak},
		{"List/NoLeftovers", testListNoLeftovers},
		{"List/Many", testListMany},
		{"List/DuringWrites", testListDuringWrites},
		{"Delete/Twice", testDeleteTwice},
		{"Context/Cancelled", testCancelled},
		{"URL", testURL},
		{"Close/Twice", testClose},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, h) })
	}
}
