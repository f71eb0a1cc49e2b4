// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"crypto/sha256"
	"fmt"
)

// idSet finds a task id that stands in two packs of a run: their trials would have one
// id. Within a pack the manifest sees to it, so a run of one pack keeps no set.
type idSet struct {
	needed bool
	seen   map[[16]byte]string
}

func newIDSet(packs int) *idSet {
	return &idSet{needed: packs > 1, seen: map[[16]byte]string{}}
}

func (s *idSet) add(id, pack string) error {
	if !s.needed {
		return nil
	}
	sum := sha256.Sum256([]byte(id))
	key := [16]byte(sum[:16])
	if first, ok := s.seen[key]; ok {
		return fmt.Errorf("task %q stands in pack %s and in pack %s; select it from one of them", id, first, pack)
	}
	s.seen[key] = pack
	return nil
}
