// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"cmp"
	"slices"
)

// chunkKeys is how many keys a chunk has at most: few enough to move for each new one.
const chunkKeys = 512

// index holds keys in order, in chunks of which none is empty. To add or remove one costs
// about the same whether there are a thousand or a million.
type index struct{ chunks [][]string }

// seek returns where a key is, or would be: in the first chunk that doesn't end before it.
func (x *index) seek(key string) (chunk, at int, found bool) {
	chunk, _ = slices.BinarySearchFunc(x.chunks, key, func(c []string, key string) int { return cmp.Compare(c[len(c)-1], key) })
	if chunk == len(x.chunks) {
		return chunk, 0, false
	}
	at, found = slices.BinarySearch(x.chunks[chunk], key)
	return chunk, at, found
}

func (x *index) add(key string) {
	chunk, at, found := x.seek(key)
	switch {
	case found:
		return
	case len(x.chunks) == 0:
		x.chunks = [][]string{{key}}
		return
	case chunk == len(x.chunks): // behind all there are
		chunk--
		at = len(x.chunks[chunk])
	}
	c := slices.Insert(x.chunks[chunk], at, key)
	x.chunks[chunk] = c
	if len(c) <= chunkKeys {
		return
	}
	half := len(c) / 2
	if at == len(c)-1 {
		half = at // keys that come in order fill their chunks
	}
	x.chunks[chunk] = slices.Clip(c[:half])
	x.chunks = slices.Insert(x.chunks, chunk+1, slices.Clone(c[half:]))
}

func (x *index) remove(key string) {
	chunk, at, found := x.seek(key)
	if !found {
		return
	}
	c := slices.Delete(x.chunks[chunk], at, at+1)
	x.chunks[chunk] = c
	if len(c) == 0 {
		x.chunks = slices.Delete(x.chunks, chunk, chunk+1)
	}
}

// from calls f with each key that is not before a given one, in order, until f has enough.
func (x *index) from(key string, f func(key string) (more bool)) {
	chunk, at, _ := x.seek(key)
	for ; chunk < len(x.chunks); chunk++ {
		for _, k := range x.chunks[chunk][at:] {
			if !f(k) {
				return
			}
		}
		at = 0
	}
}
