// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// someRuntimes are of every kind.
var someRuntimes = []RuntimeType{
	{Name: "boxes", Images: ImagesNeeded, Options: map[string][]string{}},
	{Name: "bare", Images: ImagesNone, Options: map[string][]string{"isolation": {"auto", "none"}, "visible": nil}, Lacks: []string{"cpus", "gpus", "gpu_types"}},
	{Name: "free"},
}

// What a run file says of its runtime is checked where the file is read, whatever runtimes
// that machine has.
func TestRuntimeTypes(t *testing.T) {
	files := map[string]string{"rows/pack.yaml": smallPack, "rows/rows.jsonl": `{"id": "a", "prompt": "x"}`}
	maps.Copy(files, small("tasks/one", nil))
	dir := write(t, files)
	file := filepath.Join(dir, "run.yaml")
	for _, test := range []struct{ name, packs, runtime, want string }{
		{"an image of the run", "[./rows]", "{type: boxes, image: x:1}", ""},
		{"tasks that may have images", "[tasks]", "{type: boxes}", ""},
		{"no image at all", "[tasks, ./rows]", "{type: boxes}", "runtime.image: is missing: runtime boxes needs an image, and the tasks of ./rows name none; write for example image: python:3.12-slim"},
		{"an empty image", "[./rows]", `{type: boxes, image: ""}`, "runtime.image: is missing: runtime boxes needs an image, and the tasks of ./rows name none; write for example image: python:3.12-slim"},
		{"a runtime without images", "[./rows]", "{type: bare}", ""},
		{"an image for nothing", "[./rows]", "{type: bare, image: x:1}", "runtime.image: runtime bare has no images; leave it out, or use another runtime.type, such as docker"},
		{"anything goes", "[./rows]", "{type: free, image: x:1, options: {a: b}}", ""},
		{"a slip", "[./rows]", "{type: boxs}", `runtime.type: "boxs" is not known here; did you mean boxes? Allowed: boxes, bare, free`},
		{"another word", "[./rows]", "{type: podman}", `runtime.type: "podman" is not known here; use one of boxes, bare, free`},
		{"options", "[./rows]", "{type: bare, options: {isolation: none, visible: [/a]}}", ""},
		{"a slip in an option", "[./rows]", "{type: bare, options: {isolaton: none}}", "runtime.options.isolaton: runtime bare has no such option; did you mean isolation?"},
		{"a slip in a word", "[./rows]", "{type: bare, options: {isolation: nome}}", `runtime.options.isolation: "nome" is not known here; did you mean none? Allowed: auto, none`},
		{"no word", "[./rows]", "{type: bare, options: {isolation: true}}", "runtime.options.isolation: is true; use one of auto, none"},
		{"what it has nowhere", "[./rows]", "{type: bare, resources: {gpus: 1}}", "runtime.resources.gpus: runtime bare can't hand out GPUs, on any machine; leave it out, or use another runtime.type"},
		{"none of what it has nowhere", "[./rows]", "{type: bare, resources: {gpus: 0, memory: 1GiB}}", ""},
		{"what it may have", "[./rows]", "{type: free, resources: {cpus: 2, gpus: 1, gpu_types: [h100]}}", ""},
		{"no options", "[./rows]", "{type: boxes, image: x:1, options: {isolation: none}}", "runtime.options.isolation: runtime boxes has no options; leave it out"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := "version: 1\nname: x\nagent: {name: nop}\npacks: " + test.packs + "\nnetwork_policy: full_internet\nruntime: " + test.runtime + "\n"
			_, err := Parse(file, []byte(text), LoadOptions{Runtimes: someRuntimes})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if test.want != "" {
				test.want = file + ":6: " + test.want
			}
			if got != test.want {
				t.Errorf("said %q\nwant %q", got, test.want)
			}
		})
	}
}

// Of Harbor tasks each says what its image is, so that only those without one are wrong,
// and only where nobody else says it.
func TestImagesOfHarborTasks(t *testing.T) {
	files := small("tasks/built", nil)
	maps.Copy(files, small("tasks/named", map[string]string{"task.toml": "[environment]\ndocker_image = \"x:1\"\n"}))
	maps.Copy(files, small("tasks/none", map[string]string{"task.toml": "[metadata]\na = 1\n[environment]\ncpus = 1\n"}))
	delete(files, "tasks/named/environment/Dockerfile")
	delete(files, "tasks/none/environment/Dockerfile")
	dir := filepath.Join(write(t, files), "tasks")
	for _, test := range []struct {
		runtime RuntimeConfig
		refused bool
	}{
		{RuntimeConfig{Type: "boxes"}, true},
		{RuntimeConfig{Type: "boxes", Image: "x:1"}, false},
		{RuntimeConfig{Type: "bare"}, false},
		{RuntimeConfig{Type: "free"}, false},
	} {
		run := &Run{Runtime: test.runtime}
		p, err := OpenPack(dir, run.PackOptions(LoadOptions{Runtimes: someRuntimes}))
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for ref, err := range p.Tasks(t.Context()) {
			if err != nil {
				said = append(said, ref.ID+": "+err.Error())
			}
		}
		want := ""
		if test.refused {
			want = "none: " + filepath.Join(dir, "none", "task.toml") + ":3: environment.docker_image: is missing: runtime boxes needs an image, " +
				"and there is no environment/Dockerfile and no runtime.image in the run file; name an image, write a Dockerfile, or " + leaveOut
		}
		if got := strings.Join(said, "\n"); got != want {
			t.Errorf("%+v: said %q\nwant %q", test.runtime, got, want)
		}
	}
}
