// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/internal/testenv"
	"github.com/tidemill/tidemill/runtime"
)

// alone is an engine that shows only the images of this test: others build here too.
type alone struct {
	*engine
	mu  sync.Mutex
	ids []string
}

func (a *alone) ImageList(ctx context.Context, opts image.ListOptions) ([]image.Summary, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list, err := a.engine.ImageList(ctx, opts)
	return slices.DeleteFunc(list, func(s image.Summary) bool { return !slices.Contains(a.ids, s.ID) }), err
}

func (a *alone) see(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids = append(a.ids, id)
}

func (a *alone) has(t testing.TB, id string) bool {
	t.Helper()
	_, err := a.ImageInspect(within(t), id)
	if err != nil && !cerrdefs.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

const mib = 1 << 20

// buildOf builds an image of a MiB.
func buildOf(t testing.TB, api *alone, s *Store) (Image, runtime.Image) {
	t.Helper()
	want := runtime.Image{BuildContext: tree(t, map[string]string{
		"Dockerfile": "FROM scratch\nCOPY data /data\n", "data": unique(t) + strings.Repeat("x", mib),
	})}
	img, err := s.Ensure(within(t), want)
	if err != nil {
		t.Fatal(err)
	}
	removeAfter(t, api, img.ID)
	api.see(img.ID)
	return img, want
}

func TestTheBudgetTakesWhatWasUsedLongestAgo(t *testing.T) {
	api := &alone{engine: newEngine(t)}
	// Trimmed by hand, so that the test knows when; Grace lets every use be noted.
	s := newStore(t, api, func(c *Config) { c.Grace = time.Nanosecond })
	var all []Image
	var wants []runtime.Image
	for range 4 {
		img, want := buildOf(t, api, s)
		all, wants = append(all, img), append(wants, want)
	}
	if removed, err := s.Trim(within(t)); err != nil || len(removed) != 0 {
		t.Fatalf("without a budget: %v, %v", removed, err)
	}
	// The first is used again, which makes the second the one for whom it is longest.
	if again, err := s.Ensure(within(t), wants[0]); err != nil || again.Origin != Present {
		t.Fatalf("%+v, %v", again, err)
	}
	s.cfg.Budget = 2*mib + mib/2
	removed, err := s.Trim(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{all[1].ID, all[2].ID}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	for i, want := range []bool{true, false, false, true} {
		if api.has(t, all[i].ID) != want {
			t.Errorf("image %d is there: %v; want %v", i, !want, want)
		}
	}
	// A build trims on its own, and spares its result.
	s.cfg.Budget = 1
	last, _ := buildOf(t, api, s)
	if api.has(t, all[0].ID) || api.has(t, all[3].ID) || !api.has(t, last.ID) {
		t.Error("after a build the older ones should be gone, and the new one there")
	}
}

func TestTheBudgetSparesWhatIsUsedOrNotOurs(t *testing.T) {
	engine := newEngine(t)
	for name, use := range map[string]func(t *testing.T, api *alone, s *Store, img Image, want runtime.Image){
		"by a container that never ran": func(t *testing.T, api *alone, _ *Store, img Image, _ runtime.Image) {
			c, err := api.ContainerCreate(within(t), &container.Config{Image: img.ID, Cmd: []string{"/x"}}, nil, nil, nil, "")
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.WithoutCancel(t.Context())
			t.Cleanup(func() {
				if err := api.ContainerRemove(ctx, c.ID, container.RemoveOptions{}); err != nil {
					t.Error(err)
				}
			})
		},
		"by a run": func(t *testing.T, _ *alone, s *Store, img Image, want runtime.Image) {
			run := s.Run()
			t.Cleanup(run.Close)
			if got, err := run.Ensure(within(t), want); err != nil || got.ID != img.ID {
				t.Fatalf("%+v, %v", got, err)
			}
		},
		"under a name of somebody's": func(t *testing.T, api *alone, _ *Store, img Image, _ runtime.Image) {
			const name = "tidemill-test/mine:1"
			if err := api.ImageTag(within(t), img.ID, name); err != nil {
				t.Fatal(err)
			}
			removeAfter(t, api, name)
		},
		"a moment ago": func(_ *testing.T, _ *alone, s *Store, _ Image, _ runtime.Image) { s.cfg.Grace = time.Hour },
		"by the image of another build": func(t *testing.T, api *alone, s *Store, img Image, _ runtime.Image) {
			child, err := s.Ensure(within(t), runtime.Image{BuildContext: tree(t, map[string]string{
				"Dockerfile": "FROM " + img.Ref + "\nCOPY id /id\n", "id": unique(t),
			})})
			if err != nil {
				t.Fatal(err)
			}
			removeAfter(t, api, child.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := &alone{engine: engine}
			s := newStore(t, api, func(c *Config) { c.Grace = time.Nanosecond })
			img, want := buildOf(t, api, s)
			foreign := testenv.BoxImage(t, engine.Client)
			if info, err := api.ImageInspect(within(t), foreign); err != nil {
				t.Fatal(err)
			} else {
				api.see(info.ID)
			}
			use(t, api, s, img, want)
			s.cfg.Budget = 1
			removed, err := s.Trim(within(t))
			if err != nil || len(removed) != 0 || !api.has(t, img.ID) || !api.has(t, foreign) {
				t.Errorf("removed %v, %v; want nothing", removed, err)
			}
		})
	}
}

func TestTaken(t *testing.T) {
	image := func(id string, ours bool, size int64, layers ...string) candidate {
		return candidate{id: id, ours: ours, size: size, chain: chain(layers)}
	}
	for name, row := range map[string]struct {
		all  []candidate
		want int64
	}{
		"nothing":                   {nil, 0},
		"others only":               {[]candidate{image("a", false, 5, "x")}, 0},
		"ours alone":                {[]candidate{image("a", true, 5, "x")}, 5},
		"ours on another's":         {[]candidate{image("a", true, 7, "x", "y", "z"), image("b", false, 5, "x", "y"), image("c", false, 1, "x")}, 2},
		"ours on ours":              {[]candidate{image("a", true, 7, "x", "y"), image("b", true, 5, "x")}, 7},
		"two with the same layers":  {[]candidate{image("a", true, 7, "x"), image("b", true, 7, "x")}, 7},
		"the same layer, elsewhere": {[]candidate{image("a", true, 7, "y", "x"), image("b", false, 5, "x")}, 7},
		"no layers":                 {[]candidate{image("a", true, 0)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := taken(row.all); got != row.want {
				t.Errorf("taken = %d; want %d", got, row.want)
			}
		})
	}
}

func TestARunKeepsToOneImage(t *testing.T) {
	api, reg := newEngine(t), newRegistry(t)
	ref, first := reg.put(t, "tag:1", unique(t))
	s := newStore(t, api)
	run := s.Run()
	want := runtime.Image{Ref: ref, PullPolicy: PullAlways}
	ensure := func() Image {
		t.Helper()
		img, err := run.Ensure(within(t), want)
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	before := ensure()
	if before.ID != first || before.Origin != Pulled || !s.isHeld(first) {
		t.Fatalf("%+v", before)
	}
	_, second := reg.put(t, "tag:1", unique(t))
	if again := ensure(); again.ID != first || api.pulls.Load() != 1 {
		t.Errorf("after the tag moved: %s in %d pulls; want %s still, in 1", again.ID, api.pulls.Load(), first)
	}
	// Even where somebody removed it.
	if _, err := api.ImageRemove(within(t), first, image.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	got := ensure()
	removeAfter(t, api, before.RepoDigest, ref, first)
	if diff := cmp.Diff(before, got, cmp.AllowUnexported(Image{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".tagged" }, cmp.Ignore())); diff != "" {
		t.Errorf("after it was removed (-before +now):\n%s", diff)
	}
	run.Close()
	run.Close()
	if s.isHeld(first) {
		t.Error("it is held after the run's end")
	}
	if next, err := s.Run().Ensure(within(t), want); err != nil || next.ID != second {
		t.Errorf("another run: %+v, %v; want %s", next, err, second)
	}
	removeAfter(t, api, ref)
}

func TestARunRebuildsWhatWasRemoved(t *testing.T) {
	api := &alone{engine: newEngine(t)}
	s := newStore(t, api)
	_, want := buildOf(t, api, s)
	run := s.Run()
	defer run.Close()
	img, err := run.Ensure(within(t), want)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.ImageRemove(within(t), img.ID, image.RemoveOptions{PruneChildren: true}); err != nil {
		t.Fatal(err)
	}
	again, err := run.Ensure(within(t), want)
	if err != nil {
		t.Fatal(err)
	}
	removeAfter(t, api, again.ID)
	if again.BuildDigest != img.BuildDigest || !s.isHeld(again.ID) {
		t.Errorf("%+v; want it built again", again)
	}
	if s.isHeld(img.ID) != (again.ID == img.ID) {
		t.Error("what was removed is held still")
	}
}

func TestTroubleOfTheEngineIsToldOnce(t *testing.T) {
	api := newEngine(t)
	broken := errors.New("the disk is on fire")
	api.beforeBuild = func(context.Context) error { return broken }
	s := newStore(t, api)
	_, err := s.Ensure(within(t), runtime.Image{BuildContext: tree(t, map[string]string{"Dockerfile": "FROM scratch\n", "id": unique(t)})})
	wantError(t, err, false, broken.Error())
	if n := strings.Count(err.Error(), broken.Error()); n != 1 {
		t.Errorf("it is told %d times: %v", n, err)
	}
}
