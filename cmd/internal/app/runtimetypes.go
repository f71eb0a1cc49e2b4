// SPDX-License-Identifier: Apache-2.0

package app

import "github.com/tidemill/tidemill/manifest"

// RuntimeTypes are the types that a run file may name. They stand here as data, because who
// submits runs links no runtime; the registry's tests hold the two together.
var RuntimeTypes = []manifest.RuntimeType{
	{Name: "docker", Images: manifest.ImagesNeeded, Options: map[string][]string{}, Lacks: []string{"gpu_types"}},
	{Name: "scripted", Options: map[string][]string{"prepare": nil}},
	{Name: "subprocess", Images: manifest.ImagesNone, Options: map[string][]string{
		"isolation": {"auto", "none", "required"}, "visible": nil,
	}, Lacks: []string{"cpus", "gpus", "gpu_types"}},
}
