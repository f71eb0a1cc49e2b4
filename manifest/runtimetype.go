// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// RuntimeType is what can be known of a type of runtime without one: enough to check a run
// file where none can be opened.
type RuntimeType struct {
	Name   string
	Images ImageUse
	// Options are the keys of runtime.options with the words that each may have. Those of
	// a key without words are for the runtime to check, and so is everything where Options
	// is nil.
	Options map[string][]string
	// Lacks are the keys of runtime.resources that it has on no machine.
	Lacks []string
}

// ImageUse says whether sandboxes of a runtime are made from images.
type ImageUse int

// The zero value asks for nothing.
const (
	ImagesOptional ImageUse = iota
	ImagesNeeded
	ImagesNone
)

// runtimeNames are the known types, as messages list them.
func (o LoadOptions) runtimeNames() []string {
	names := make([]string, len(o.Runtimes))
	for i, t := range o.Runtimes {
		names[i] = t.Name
	}
	return names
}

// runtimeType returns what is known of a type; of an unknown one that is nothing.
func (o LoadOptions) runtimeType(name string) RuntimeType {
	for _, t := range o.Runtimes {
		if t.Name == name {
			return t
		}
	}
	return RuntimeType{Name: name}
}

// lacksImage reports whether a run leaves it to its tasks to name the image that its
// runtime can't do without.
func (o LoadOptions) lacksImage(r *Run) bool {
	return r.Runtime.Image == "" && o.runtimeType(r.Runtime.Type).Images == ImagesNeeded
}

// checkRuntimeType checks what a run says of its runtime against what is known of the type.
func checkRuntimeType(d *decoder, r *Run, o LoadOptions, packs packsSeen) {
	if len(o.Runtimes) == 0 {
		d.word("runtime.type", r.Runtime.Type, typeName, 32)
		return
	}
	oneOf(d, "runtime.type", r.Runtime.Type, o.runtimeNames())
	kind := o.runtimeType(r.Runtime.Type)
	switch {
	case kind.Images == ImagesNone && r.Runtime.Image != "":
		d.problem("runtime.image", "runtime "+kind.Name+" has no images", "leave it out, or use another runtime.type, such as docker")
	case o.lacksImage(r) && packs.dataset != "":
		d.problem("runtime.image", "is missing: runtime "+kind.Name+" needs an image, and the tasks of "+packs.dataset+" name none",
			"write for example image: python:3.12-slim")
	}
	checkRuntimeOptions(d, r.Runtime.Options, kind)
	checkLacks(d, r.Runtime.Resources, kind)
}

// checkLacks refuses resources that a runtime has nowhere: no other machine would help.
func checkLacks(d *decoder, res Resources, kind RuntimeType) {
	for _, ask := range []struct {
		key   string
		given bool
		what  string
	}{
		{"cpus", res.CPUs > 0, "limit CPUs"},
		{"gpus", res.GPUs > 0, "hand out GPUs"},
		{"gpu_types", len(res.GPUTypes) > 0, "choose GPUs by their model"},
	} {
		if ask.given && slices.Contains(kind.Lacks, ask.key) {
			d.problem("runtime.resources."+ask.key, "runtime "+kind.Name+" can't "+ask.what+", on any machine", "leave it out, or use another runtime.type")
		}
	}
}

func checkRuntimeOptions(d *decoder, given map[string]any, kind RuntimeType) {
	if kind.Options == nil {
		return
	}
	known := slices.Sorted(maps.Keys(kind.Options))
	for _, key := range slices.Sorted(maps.Keys(given)) {
		entry := join("runtime.options", key)
		words, ok := kind.Options[key]
		if !ok && len(known) == 0 {
			d.problem(entry, "runtime "+kind.Name+" has no options", "leave it out")
		} else if !ok {
			d.problem(entry, "runtime "+kind.Name+" has no such option", suggest(key, known))
		} else if word, isText := given[key].(string); isText && words != nil {
			oneOf(d, entry, word, words)
		} else if words != nil && given[key] != nil {
			d.problem(entry, fmt.Sprintf("is %v", given[key]), "use one of "+strings.Join(words, ", "))
		}
	}
}
