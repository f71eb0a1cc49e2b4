// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/runtime"
)

// unique makes the digest of a context this test's own.
func unique(t testing.TB) string { return fmt.Sprintf("%s %d", t.Name(), time.Now().UnixNano()) }

func TestABuildIsMadeOnceForItsInput(t *testing.T) {
	api := newEngine(t)
	s := newStore(t, api)
	id := unique(t)
	files := map[string]string{
		"Dockerfile": "FROM scratch\nCOPY . /\nWORKDIR /app\nUSER 7\nENV A=b\nCMD [\"/run\"]\n",
		"id":         id, "!run": "#!/bin/sh\n", "link": "-> run", "empty/": "",
	}
	first, err := s.Ensure(within(t), runtime.Image{BuildContext: tree(t, files)})
	if err != nil {
		t.Fatal(err)
	}
	removeAfter(t, api, first.ID)
	if first.Origin != Built || first.Workdir != "/app" || first.User != "7" || !strings.HasPrefix(first.Ref, Repository+":") ||
		"sha256:"+strings.TrimPrefix(first.Ref, Repository+":") != first.BuildDigest {
		t.Errorf("built: %+v", first)
	}
	info, err := api.ImageInspect(within(t), first.ID)
	if err != nil || info.Config.Labels[LabelManaged] != "true" || info.Config.Labels[LabelBuild] != first.BuildDigest {
		t.Errorf("labels %v, %v", info.Config.Labels, err)
	}
	// The same files elsewhere, written later, by another worker.
	second, err := newStore(t, api).Ensure(within(t), runtime.Image{BuildContext: tree(t, files)})
	if err != nil || second.ID != first.ID || second.Origin != Present {
		t.Errorf("again: %+v, %v; want %s, present", second, err, first.ID)
	}
	files["id"] = id + "2"
	third, err := s.Ensure(within(t), runtime.Image{BuildContext: tree(t, files)})
	if err != nil || third.ID == first.ID || third.Origin != Built {
		t.Errorf("another content: %+v, %v; want another image, built", third, err)
	}
	removeAfter(t, api, third.ID)
	if n := api.builds.Load(); n != 2 {
		t.Errorf("%d builds; want 2", n)
	}
}

// A tag of ours on an image that isn't ours is not what it says.
func TestATagAloneIsNoProof(t *testing.T) {
	api := newEngine(t)
	s := newStore(t, api)
	want := runtime.Image{BuildContext: tree(t, map[string]string{"Dockerfile": "FROM scratch\nCOPY id /\n", "id": unique(t)})}
	bc, err := s.openContext(want.BuildContext, "")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := bc.digest(within(t))
	if err != nil {
		t.Fatal(err)
	}
	tag := Repository + ":" + digest
	if err := api.ImageTag(within(t), testenv.BoxImage(t, api.Client), tag); err != nil {
		t.Fatal(err)
	}
	removeAfter(t, api, tag)
	if got, err := s.Ensure(within(t), want); err != nil || got.Origin != Built || got.Ref != tag {
		t.Errorf("%+v, %v; want it built", got, err)
	}
}

func TestManyWaitForOneBuildAndFewRunAtATime(t *testing.T) {
	api := newEngine(t)
	const dirs, each, atATime = 5, 4, 2
	s := newStore(t, api, func(c *Config) { c.Builds = atATime })
	var first atomic.Bool
	api.beforeBuild = func(context.Context) error {
		if first.CompareAndSwap(false, true) {
			if !poll(func() bool { return api.runningBuilds() == atATime }) {
				t.Error("the second build doesn't run beside the first")
			}
		}
		return nil
	}
	var wg sync.WaitGroup
	var built sync.Map
	for i := range dirs {
		dir := tree(t, map[string]string{"Dockerfile": "FROM scratch\nCOPY id /\n", "id": fmt.Sprint(unique(t), i)})
		for range each {
			wg.Go(func() {
				img, err := s.Ensure(within(t), runtime.Image{BuildContext: dir})
				if err != nil {
					t.Error(err)
					return
				}
				built.Store(img.ID, true)
			})
		}
	}
	wg.Wait()
	built.Range(func(id, _ any) bool { removeAfter(t, api, id.(string)); return true })
	if n := api.builds.Load(); n != dirs {
		t.Errorf("%d builds; want %d", n, dirs)
	}
	if api.most != atATime {
		t.Errorf("%d builds ran at a time; want %d", api.most, atATime)
	}
}

// box is a Dockerfile from the box image; %s is its reference.
func boxFile(t testing.TB, api *engine, lines string) map[string]string {
	return map[string]string{
		"Dockerfile": "FROM " + testenv.BoxImage(t, api.Client) + "\nCOPY id /id\n" + lines + "\n", "id": unique(t),
	}
}

func TestBuildsThatFail(t *testing.T) {
	api := newEngine(t)
	mark := fmt.Sprint("mark-", time.Now().UnixNano())
	box := func(lines string) func(testing.TB) map[string]string {
		return func(t testing.TB) map[string]string { return boxFile(t, api, lines) }
	}
	files := func(m map[string]string) func(testing.TB) map[string]string {
		return func(testing.TB) map[string]string { return m }
	}
	for name, row := range map[string]struct {
		files     func(testing.TB) map[string]string
		edit      func(*runtime.Image)
		permanent bool
		texts     []string
		log       string
		code      int
	}{
		"a step that fails": {
			files: box(`RUN ["/box", "print", "so", "far", "+", "exit", "7"]`),
			texts: []string{"step 3/", `RUN ["/box"`, "7"}, log: "so far", code: 7,
		},
		"a file that isn't there": {files: box("COPY none /none"), permanent: true, texts: []string{"step 3/", "COPY none", "none"}},
		"a bad Dockerfile": {
			files: files(map[string]string{"Dockerfile": "FROM scratch\nDANCE\n"}), permanent: true, texts: []string{"DANCE"},
		},
		"BuildKit needed": {
			files: box(`RUN --mount=type=cache,target=/c ["/box", "exit", "0"]`), permanent: true, texts: []string{"BuildKit", "build the image yourself"},
		},
		"no Dockerfile":     {files: files(map[string]string{"x": ""}), permanent: true, texts: []string{"no Dockerfile"}},
		"an outer one":      {files: files(nil), edit: func(i *runtime.Image) { i.Dockerfile = "../Dockerfile" }, permanent: true, texts: []string{"outside"}},
		"no such directory": {files: files(nil), edit: func(i *runtime.Image) { i.BuildContext += "/none" }, permanent: true, texts: []string{"no such directory"}},
		"a base that isn't there": {
			files:     files(map[string]string{"Dockerfile": "FROM tidemill-test/none:1\n"}),
			edit:      func(i *runtime.Image) { i.PullPolicy = PullNever },
			permanent: true, texts: []string{"base image tidemill-test/none:1", "never"},
		},
		"a slow one": {
			files: box(`RUN ["/box", "print", "` + mark + `", "+", "hold"]`), edit: func(i *runtime.Image) { i.BuildTimeout = 3 * time.Second },
			texts: []string{"took longer than 3s", "step 3/", "hold"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, api)
			want := runtime.Image{BuildContext: tree(t, row.files(t))}
			if row.edit != nil {
				row.edit(&want)
			}
			tidyAfter(t, s)
			_, err := s.Ensure(within(t), want)
			e := wantError(t, err, row.permanent, append(row.texts, "build of "+want.BuildContext)...)
			if !strings.Contains(string(e.Log), row.log) || e.Code != row.code {
				t.Errorf("log %q, code %d; want %q and %d", e.Log, e.Code, row.log, row.code)
			}
		})
	}
	eventually(t, "no container of a build is left", func() bool {
		list, err := api.ContainerList(within(t), container.ListOptions{All: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if strings.Contains(c.Command, mark) {
				return false
			}
		}
		return true
	})
}

// A build that fails is tried twice, then its failure is told without trying.
func TestABuildThatKeepsFailingIsGivenUp(t *testing.T) {
	api := newEngine(t)
	s := newStore(t, api)
	want := runtime.Image{BuildContext: tree(t, boxFile(t, api, `RUN ["/box", "exit", "1"]`))}
	for i, permanent := range []bool{false, true, true} {
		_, err := s.Ensure(within(t), want)
		wantError(t, err, permanent, "step 3/")
		if got, most := api.builds.Load(), int64(min(i+1, 2)); got != most {
			t.Errorf("after %d calls %d builds; want %d", i+1, got, most)
		}
	}
}

// tidyAfter removes what failed builds left for another try.
func tidyAfter(t testing.TB, s *Store) {
	t.Cleanup(func() {
		for _, f := range s.failed {
			if err := s.tidy(t.Context(), f.made); err != nil {
				t.Error(err)
			}
		}
	})
}

// What the steps of a build made goes when nothing can come of it any more.
func TestBuildsLeaveNothingBehind(t *testing.T) {
	api := newEngine(t)
	const label = "dev.tidemill.test.left"
	mark := fmt.Sprint(time.Now().UnixNano())
	left := func() (n int) {
		list, err := api.ImageList(within(t), image.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label+"="+mark))})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	s := newStore(t, api)
	failing := boxFile(t, api, "LABEL "+label+"="+mark+"\n"+`RUN ["/box", "exit", "1"]`)
	bad := runtime.Image{BuildContext: tree(t, failing)}
	for i, want := range []int{1, 0} {
		if _, err := s.Ensure(within(t), bad); err == nil {
			t.Fatal("it was built")
		}
		if n := left(); n != want {
			t.Errorf("after failure %d there are %d images of its steps; want %d", i+1, n, want)
		}
	}
	stages := boxFile(t, api, "LABEL "+label+"="+mark+"\nFROM scratch\nCOPY --from=0 /id /id")
	img, err := s.Ensure(within(t), runtime.Image{BuildContext: tree(t, stages)})
	if err != nil {
		t.Fatal(err)
	}
	removeAfter(t, api, img.ID)
	if n := left(); n != 0 {
		t.Errorf("after a build there are %d images of its first stage; want none", n)
	}
}

func TestABuildEndsWithItsCaller(t *testing.T) {
	api := newEngine(t)
	s := newStore(t, api)
	mark := fmt.Sprint("mark-", time.Now().UnixNano())
	want := runtime.Image{BuildContext: tree(t, boxFile(t, api, `RUN ["/box", "print", "`+mark+`", "+", "hold"]`))}
	ctx, cancel := context.WithCancelCause(within(t))
	stopped := errors.New("stopped")
	running := func() bool {
		list, err := api.ContainerList(within(t), container.ListOptions{})
		return err == nil && slices.ContainsFunc(list, func(c container.Summary) bool { return strings.Contains(c.Command, mark) })
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if !poll(running) {
			t.Error("the step never ran")
		}
		cancel(stopped)
	})
	defer wg.Wait()
	if _, err := s.Ensure(ctx, want); !errors.Is(err, stopped) {
		t.Errorf("error %v; want the context's cause", err)
	}
	if len(s.builds) != 0 {
		t.Error("the build's place was not given back")
	}
	eventually(t, "the step ends", func() bool { return !running() })
}

// Base images are pulled like any others: with credentials, and again after trouble.
func TestBasesArePulledAhead(t *testing.T) {
	api, reg := newEngine(t), newRegistry(t)
	base, _ := reg.put(t, "base:1", unique(t))
	removeAfter(t, api, base)
	reg.faulty(2, unavailable)
	s := newStore(t, api, func(c *Config) { c.PullTries = 10 })
	img, err := s.Ensure(within(t), runtime.Image{BuildContext: tree(t, map[string]string{
		"Dockerfile": "ARG BASE=" + base + "\nFROM ${BASE} AS b\nFROM scratch\nCOPY --from=b /content /\n",
	})})
	if err != nil {
		t.Fatal(err)
	}
	removeAfter(t, api, img.ID)

	limitedBase, _ := reg.put(t, "limited:1", unique(t))
	reg.faulty(forEver, tooMany)
	_, err = newStore(t, api, func(c *Config) { c.PullTries = 2 }).Ensure(within(t), runtime.Image{BuildContext: tree(t, map[string]string{
		"Dockerfile": "FROM " + limitedBase + "\n",
	})})
	wantError(t, err, false, "base image "+limitedBase)
	if !errors.Is(err, runtime.ErrCapacity) {
		t.Errorf("no capacity: %v", err)
	}
}

func TestAContextThatChangesIsNotBuilt(t *testing.T) {
	api := newEngine(t)
	s := newStore(t, api)
	files := map[string]string{"Dockerfile": "FROM scratch\nCOPY id /\n", "id": unique(t)}
	dir := tree(t, files)
	bc, err := s.openContext(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.build(within(t), "build of "+dir, bc, strings.Repeat("0", 64), patience)
	wantError(t, err, false, "changed while it was read")
	if _, err := api.ImageInspect(within(t), Repository+":"+strings.Repeat("0", 64)); err == nil {
		t.Error("it was built all the same")
	}
}

// A base that has no name is nobody's leftover.
func TestABaseWithoutANameStays(t *testing.T) {
	api := newEngine(t)
	var rootfs bytes.Buffer
	tw := tar.NewWriter(&rootfs)
	if err := errors.Join(tw.WriteHeader(&tar.Header{Name: unique(t), Typeflag: tar.TypeReg, Mode: 0o644}), tw.Close()); err != nil {
		t.Fatal(err)
	}
	body, err := api.ImageImport(within(t), image.ImportSource{Source: &rootfs, SourceName: "-"}, "", image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	var answer struct{ Status string }
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	base := answer.Status
	removeAfter(t, api, base)
	_, err = newStore(t, api).Ensure(within(t), runtime.Image{BuildContext: tree(t, map[string]string{
		"Dockerfile": "FROM " + strings.TrimPrefix(base, "sha256:") + "\nCOPY none /\n",
	})})
	wantError(t, err, true, "COPY none")
	if _, err := api.ImageInspect(within(t), base); err != nil {
		t.Errorf("the base is gone: %v", err)
	}
}
