// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/google/go-cmp/cmp"

	"github.com/tidemill/tidemill/runtime"
)

func contains(s, sub string) bool { return strings.Contains(s, sub) }

func cutPrefix(s, prefix string) (string, bool) { return strings.CutPrefix(s, prefix) }

func TestAnImageThatIsMissingIsPulledOnce(t *testing.T) {
	api, reg := newEngine(t), newRegistry(t)
	ref, id := reg.put(t, "a/b:1", "one")
	removeAfter(t, api, ref)
	s := newStore(t, api)

	got, err := s.Ensure(within(t), runtime.Image{Ref: ref})
	if err != nil {
		t.Fatal(err)
	}
	want := Image{
		ID: id, Ref: ref, RepoDigest: got.RepoDigest, Origin: Pulled, Size: 3, Platform: got.Platform,
		Workdir: "/srv", User: "7:8", Env: []string{"A=b"}, Entrypoint: []string{"/e"}, Cmd: []string{"c"},
		Volumes: []string{"/v1", "/v2"}, tagged: got.tagged,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Image{})); diff != "" {
		t.Errorf("image (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(got.RepoDigest, reg.host+"/a/b@sha256:") || !strings.HasPrefix(got.Platform, "linux/") {
		t.Errorf("repo digest %q, platform %q", got.RepoDigest, got.Platform)
	}
	again, err := s.Ensure(within(t), runtime.Image{Ref: ref, PullPolicy: PullNever})
	if err != nil || again.Origin != Present || again.ID != id {
		t.Errorf("second time: %+v, %v; want the same image, present", again, err)
	}
	for _, name := range []string{id, got.RepoDigest} {
		if byID, err := s.Ensure(within(t), runtime.Image{Ref: name}); err != nil || byID.ID != id || byID.Origin != Present {
			t.Errorf("%s: %+v, %v; want the same image, present", name, byID, err)
		}
	}
	if n := api.pulls.Load(); n != 1 {
		t.Errorf("%d pulls; want 1", n)
	}
}

func TestAlwaysSeesThatATagMoved(t *testing.T) {
	api, reg := newEngine(t), newRegistry(t)
	ref, first := reg.put(t, "moving:1", "one")
	s := newStore(t, api)
	removeAfter(t, api, ref, first)
	if _, err := s.Ensure(within(t), runtime.Image{Ref: ref}); err != nil {
		t.Fatal(err)
	}
	_, second := reg.put(t, "moving:1", "two")
	for _, row := range []struct{ policy, want string }{{PullAuto, first}, {PullNever, first}, {PullAlways, second}, {PullAuto, second}} {
		got, err := s.Ensure(within(t), runtime.Image{Ref: ref, PullPolicy: row.policy})
		if err != nil || got.ID != row.want {
			t.Errorf("%s: %s, %v; want %s", row.policy, got.ID, err, row.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	api, reg := newEngine(t), newRegistry(t)
	reg.put(t, "there:1", "x")
	s := newStore(t, api)
	for name, row := range map[string]struct {
		image runtime.Image
		texts []string
	}{
		"never, and missing": {
			runtime.Image{Ref: reg.host + "/there:1", PullPolicy: PullNever},
			[]string{reg.host + "/there:1", "never", "pull_policy: auto"},
		},
		"no such tag":         {runtime.Image{Ref: reg.host + "/there:2"}, []string{"/there:2", "check name and tag"}},
		"no such repository":  {runtime.Image{Ref: reg.host + "/none:1"}, []string{"/none:1", "check"}},
		"an id":               {runtime.Image{Ref: "sha256:" + strings.Repeat("ab", 32)}, []string{"an id can't be pulled"}},
		"no reference at all": {runtime.Image{Ref: "Not A Reference"}, []string{"Not A Reference", "python:3.12-slim"}},
		"unknown policy":      {runtime.Image{Ref: "x", PullPolicy: "sometimes"}, []string{`"sometimes"`, "auto, always or never"}},
		"nothing":             {runtime.Image{}, []string{"neither"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Ensure(within(t), row.image)
			wantError(t, err, true, row.texts...)
			if errors.Is(err, runtime.ErrCapacity) {
				t.Error("it counts as capacity")
			}
		})
	}
}

// faulty answers the first n requests for manifests in its way.
func (s *registryServer) faulty(n int, answer answer) {
	s.set(func() {
		s.before = func(w http.ResponseWriter, _ *http.Request, manifest int) bool {
			if manifest > n {
				return false
			}
			answer(w, s.quit)
			return true
		}
	})
}

// answer is a registry's way to fail; quit is closed when the test ends.
type answer func(w http.ResponseWriter, quit <-chan struct{})

func tooMany(w http.ResponseWriter, _ <-chan struct{}) {
	refuse(w, http.StatusTooManyRequests, "TOOMANYREQUESTS", "You have reached your pull rate limit")
}

func unavailable(w http.ResponseWriter, _ <-chan struct{}) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

func cut(http.ResponseWriter, <-chan struct{}) { panic(http.ErrAbortHandler) }

// stall waits for ever: engines of this age don't hang up when their caller does.
func stall(_ http.ResponseWriter, quit <-chan struct{}) { <-quit }

const forEver = 1 << 30

func TestPassingTroubleIsTriedAgain(t *testing.T) {
	api := newEngine(t)
	for name, answer := range map[string]answer{
		"too many requests": tooMany, "unavailable": unavailable, "cut": cut, "stalled": stall,
	} {
		t.Run(name, func(t *testing.T) {
			reg := newRegistry(t)
			ref, id := reg.put(t, "flaky:1", name)
			removeAfter(t, api, ref)
			reg.faulty(2, answer)
			s := newStore(t, api, func(c *Config) {
				c.PullTries = 10
				if name == "stalled" {
					c.PullStall = 300 * time.Millisecond
				}
			})
			got, err := s.Ensure(within(t), runtime.Image{Ref: ref})
			if err != nil || got.ID != id || got.Origin != Pulled {
				t.Fatalf("%+v, %v; want %s, pulled", got, err, id)
			}
			if n := reg.manifestsAsked(); n < 3 {
				t.Errorf("%d requests for manifests; want the 2 that failed and more", n)
			}
		})
	}
}

func TestTroubleThatStays(t *testing.T) {
	api := newEngine(t)
	for name, row := range map[string]struct {
		answer   answer
		edit     func(*Config)
		capacity bool
		texts    []string
		pulls    int64
	}{
		"too many requests": {tooMany, func(c *Config) { c.PullTries = 3 }, true, []string{"tried 3 times", "limits pulls"}, 3},
		"unavailable":       {unavailable, func(c *Config) { c.PullTries = 2 }, false, []string{"tried 2 times"}, 2},
		"stalled": {
			stall, func(c *Config) { c.PullTries, c.PullStall = 2, 50*time.Millisecond },
			false,
			[]string{"tried 2 times", "said nothing for 50ms"},
			2,
		},
		"out of time": {stall, func(c *Config) { c.PullTimeout = 50 * time.Millisecond }, false, []string{"took longer than 50ms"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			reg := newRegistry(t)
			ref, _ := reg.put(t, "dead:1", name)
			reg.faulty(forEver, row.answer)
			before := api.pulls.Load()
			_, err := newStore(t, api, row.edit).Ensure(within(t), runtime.Image{Ref: ref})
			wantError(t, err, false, append(row.texts, ref)...)
			if got := errors.Is(err, runtime.ErrCapacity); got != row.capacity {
				t.Errorf("capacity is %v; want %v: %v", got, row.capacity, err)
			}
			if got := api.pulls.Load() - before; got != row.pulls {
				t.Errorf("%d tries; want %d", got, row.pulls)
			}
		})
	}
}

func TestManyWaitForOnePull(t *testing.T) {
	api, reg := newEngine(t), newRegistry(t)
	alone, _ := reg.put(t, "lonely:latest", "y")
	ref, id := reg.put(t, "popular:latest", "x")
	removeAfter(t, api, ref, alone)
	s := newStore(t, api)
	if _, err := s.Ensure(within(t), runtime.Image{Ref: alone}); err != nil {
		t.Fatal(err)
	}
	one := reg.manifestsAsked() // how many requests the engine makes for a pull
	const n = 32
	gate := make(chan struct{})
	api.beforePull = func(context.Context) error { <-gate; return nil }

	var wg sync.WaitGroup
	ids := make([]string, n)
	for i := range n {
		wg.Go(func() {
			// Two names for one thing are one pull.
			name := ref
			if i%2 == 0 {
				name = strings.TrimSuffix(ref, ":latest")
			}
			img, err := s.Ensure(within(t), runtime.Image{Ref: name})
			if err != nil || img.Origin != Pulled {
				t.Errorf("%+v, %v", img, err)
			}
			ids[i] = img.ID
		})
	}
	eventually(t, "all wait", func() bool { return s.flights.waitingFor("pull "+ref) == n })
	close(gate)
	wg.Wait()
	if slices.ContainsFunc(ids, func(got string) bool { return got != id }) {
		t.Errorf("ids %v; want %s each", ids, id)
	}
	if pulls, asked := api.pulls.Load()-1, reg.manifestsAsked()-one; pulls != 1 || asked != one {
		t.Errorf("%d pulls and %d requests for manifests; want 1 and %d", pulls, asked, one)
	}
}

func (fs *flights) waitingFor(key string) int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fl := fs.running[key]; fl != nil {
		return fl.waiting
	}
	return 0
}

// Who asked first may leave; the pull is everybody's.
func TestThePullOutlivesTheFirstWhoAsked(t *testing.T) {
	api, reg := newEngine(t), newRegistry(t)
	ref, id := reg.put(t, "shared:1", "x")
	removeAfter(t, api, ref)
	s := newStore(t, api)
	gate := make(chan struct{})
	api.beforePull = func(ctx context.Context) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	gone := errors.New("the first one left")
	first, leave := context.WithCancelCause(within(t))
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.Ensure(first, runtime.Image{Ref: ref}); !errors.Is(err, gone) {
			t.Errorf("who left got %v; want the cause", err)
		}
	})
	eventually(t, "the first waits", func() bool { return s.flights.waitingFor("pull "+ref) == 1 })
	wg.Go(func() {
		if img, err := s.Ensure(within(t), runtime.Image{Ref: ref}); err != nil || img.ID != id {
			t.Errorf("who stayed got %+v, %v", img, err)
		}
	})
	eventually(t, "both wait", func() bool { return s.flights.waitingFor("pull "+ref) == 2 })
	leave(gone)
	eventually(t, "one waits", func() bool { return s.flights.waitingFor("pull "+ref) == 1 })
	close(gate)
	wg.Wait()
	if n := api.pulls.Load(); n != 1 {
		t.Errorf("%d pulls; want 1", n)
	}
}

func TestThePullEndsWithTheLastWhoWaits(t *testing.T) {
	api, reg := newEngine(t), newRegistry(t)
	ref, _ := reg.put(t, "slow:1", "x")
	began := make(chan struct{}, 9)
	reg.faulty(forEver, func(w http.ResponseWriter, quit <-chan struct{}) {
		began <- struct{}{}
		stall(w, quit)
	})
	s := newStore(t, api)
	ctx, cancel := context.WithCancelCause(within(t))
	stopped := errors.New("stopped")
	go func() { <-began; cancel(stopped) }()
	if _, err := s.Ensure(ctx, runtime.Image{Ref: ref}); !errors.Is(err, stopped) {
		t.Errorf("error %v; want the context's cause", err)
	}
	if n := s.flights.waitingFor("pull " + ref); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// talking is an engine that pulls slowly, but says so.
type talking struct {
	API
	every time.Duration
	words int
}

func (e talking) ImagePull(ctx context.Context, _ string, _ image.PullOptions) (io.ReadCloser, error) {
	pr, pw := io.Pipe()
	go func() {
		for range e.words {
			select {
			case <-time.After(e.every):
			case <-ctx.Done():
				pw.CloseWithError(ctx.Err())
				return
			}
			_, _ = io.WriteString(pw, `{"status":"Downloading"}`)
		}
		pw.Close()
	}()
	return pr, nil
}

func TestASlowPullThatGoesOnIsNotStalled(t *testing.T) {
	named, err := reference.ParseNormalizedNamed("slow:1")
	if err != nil {
		t.Fatal(err)
	}
	for every, want := range map[time.Duration]error{4 * time.Minute: nil, 6 * time.Minute: errStalled} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t, talking{every: every, words: 5}, func(c *Config) { c.PullStall = 5 * time.Minute })
			if err := s.pullOnce(t.Context(), named, ""); !errors.Is(err, want) {
				t.Errorf("a word every %v: %v; want %v", every, err, want)
			}
		})
	}
}

func TestATagWithADigestIsTheDigest(t *testing.T) {
	api, reg := newEngine(t), newRegistry(t)
	ref, id := reg.put(t, "both:1", unique(t))
	digest := digestOf(reg.manifests["both:1"])
	reg.put(t, "both:1", unique(t)) // the tag moved
	removeAfter(t, api, id)
	s := newStore(t, api)
	for _, origin := range []Origin{Pulled, Present} {
		got, err := s.Ensure(within(t), runtime.Image{Ref: ref + "@" + digest})
		if err != nil || got.ID != id || got.Origin != origin {
			t.Errorf("%+v, %v; want %s, %s", got, err, id, origin)
		}
	}
}
