// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"reflect"
	"slices"
	"strings"
)

// keyPaths lists the keys of a struct and of those below it, as paths. What is below a
// list or a map has no fixed keys.
func keyPaths(t reflect.Type) []string {
	var paths []string
	for i, key := range fieldsOf(t) {
		if key == "" {
			continue
		}
		paths = append(paths, key)
		below := t.Field(i).Type
		if below.Kind() == reflect.Pointer {
			below = below.Elem()
		}
		if below.Kind() == reflect.Struct {
			for _, p := range keyPaths(below) {
				paths = append(paths, join(key, p))
			}
		}
	}
	return paths
}

// suggestKey returns what to say about a key that the struct at an entry doesn't have:
// the same key a level below, a similar one, the same key elsewhere in the file, or all
// that there are here.
func (d *decoder) suggestKey(word, entry string, t reflect.Type) string {
	if below := named(word, keyPaths(t), 1); len(below) > 0 {
		for i, path := range below {
			below[i] = join(entry, path)
		}
		return "did you mean " + orList(below) + "?"
	}
	fields := fieldsOf(t)
	if nearest(word, fields) == "" && d.root != nil {
		all := keyPaths(d.root)
		if slices.Contains(all, word) {
			return word + " stands at the top of the file"
		}
		if elsewhere := slices.Concat(named(word, all, 1), named(word, all, 2)); len(elsewhere) > 0 {
			return "did you mean " + orList(elsewhere) + "?"
		}
	}
	return suggest(word, fields)
}

// named returns the paths that end in a key and have so many keys before it.
func named(key string, paths []string, before int) []string {
	var found []string
	for _, p := range paths {
		if strings.HasSuffix(p, "."+key) && strings.Count(p, ".") == before {
			found = append(found, p)
		}
	}
	return found
}

func orList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
