// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/tidemill/tidemill/internal/testenv"
)

// harbour is an engine on which runs of this test leave things, beside other people's.
type harbour struct {
	*testing.T
	cli   *client.Client
	image string
	dir   string // with run files and a pack
}

func newHarbour(t *testing.T) *harbour {
	t.Helper()
	cli := testenv.Docker(t)
	h := &harbour{T: t, cli: cli, image: testenv.BusyboxImage(t, cli), dir: t.TempDir()}
	const grade = `mkdir -p "$TIDEMILL_LOGS_DIR/verifier"; echo 1 >"$TIDEMILL_LOGS_DIR/verifier/reward.txt"`
	h.write("pack/pack.yaml", `version: 1
kind: dataset
name: box
dataset: {path: tasks.jsonl, id_field: id}
agent_fields: [question]
instruction: "{{.question}}"
grade: {command: [sh, -c, '`+grade+`']}
`)
	h.write("pack/tasks.jsonl", `{"id": "one", "question": "1 + 1"}`+"\n")
	for name, agent := range map[string]string{"stuck": "sleep " + stuckFor, "quick": "true"} {
		h.write(name+".yaml", `version: 1
name: `+name+`
packs: [./pack]
agent: {name: `+name+`, command: [sh, -c, "`+agent+`"]}
runtime: {type: docker, image: "`+h.image+`"}
network_policy: full_internet
`)
	}
	return h
}

// stuckFor is how long the agent of stuck.yaml sleeps, by which it is found.
const stuckFor = "98765"

func (h *harbour) write(name, text string) {
	h.Helper()
	path := filepath.Join(h.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		h.Fatal(err)
	}
}

// boat is a process of ours.
type boat struct {
	*exec.Cmd
	out   bytes.Buffer
	ended chan struct{}
}

func (h *harbour) start(args ...string) *boat {
	h.Helper()
	b := &boat{Cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	b.Dir, b.Stdout, b.Stderr = h.dir, &b.out, &b.out
	if err := b.Start(); err != nil {
		h.Fatal(err)
	}
	go func() {
		defer close(b.ended)
		_ = b.Wait() // its exit code is looked at
	}()
	h.Cleanup(func() {
		_ = b.Process.Kill()
		<-b.ended
	})
	return b
}

// end sends a signal and returns the exit code, -1 for a death by it.
func (h *harbour) end(b *boat, sig syscall.Signal) int {
	h.Helper()
	if err := b.Process.Signal(sig); err != nil {
		h.Fatal(err)
	}
	return h.await(b)
}

func (h *harbour) await(b *boat) int {
	h.Helper()
	select {
	case <-b.ended:
	case <-time.After(patience):
		h.Fatalf("%v is still there after %s", b.Args, patience)
	}
	return b.ProcessState.ExitCode()
}

func (h *harbour) run(code int, args ...string) string {
	h.Helper()
	b := h.start(args...)
	if got := h.await(b); got != code {
		h.Fatalf("%v ended with %d, want %d:\n%s", args, got, code, &b.out)
	}
	return b.out.String()
}

// until asks until the answer is yes: the engine and other processes can tell us in no
// other way.
func (h *harbour) until(what string, yes func() bool) {
	h.Helper()
	// Nothing to wait for: the engine and other processes are asked.
	for end := time.Now().Add(patience); !yes(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatalf("%s: not so after %s", what, patience)
		}
	}
}

// midTrial waits until the agent of a run's only trial works, and returns its container.
func (h *harbour) midTrial(run string, b *boat) string {
	h.Helper()
	var id string
	h.until("an agent of "+run+" works", func() bool {
		select {
		case <-b.ended:
			h.Fatalf("it ended before:\n%s", &b.out)
		default:
		}
		for _, id = range h.containers("run", run) {
			top, err := h.cli.ContainerTop(h.Context(), id, nil)
			if err == nil && strings.Contains(fmt.Sprint(top.Processes), stuckFor) {
				return true
			}
		}
		return false
	})
	return id
}

func label(key, value string) filters.Args {
	return filters.NewArgs(filters.Arg("label", "dev.tidemill."+key+"="+value))
}

func (h *harbour) containers(key, value string) (ids []string) {
	h.Helper()
	list, err := h.cli.ContainerList(h.Context(), container.ListOptions{All: true, Filters: label(key, value)})
	if err != nil {
		h.Fatal(err)
	}
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

// left is what the engine has of a run.
func (h *harbour) left(run string) (left []string) {
	h.Helper()
	for _, id := range h.containers("run", run) {
		left = append(left, "container "+id)
	}
	networks, err := h.cli.NetworkList(h.Context(), network.ListOptions{Filters: label("run", run)})
	volumes, verr := h.cli.VolumeList(h.Context(), volume.ListOptions{Filters: label("run", run)})
	if err := errors.Join(err, verr); err != nil {
		h.Fatal(err)
	}
	for _, n := range networks {
		left = append(left, "network "+n.ID)
	}
	for _, v := range volumes.Volumes {
		left = append(left, "volume "+v.Name)
	}
	return left
}

func (h *harbour) nothingLeft(run, data string) {
	h.Helper()
	for _, l := range h.left(run) {
		h.Errorf("left behind: %s", l)
	}
	if records, _ := filepath.Glob(filepath.Join(data, ".tidemill", "work", "@docker", "boxes", "*")); len(records) > 0 {
		h.Errorf("left behind: %v", records)
	}
	if spool, _ := filepath.Glob(filepath.Join(data, ".tidemill", "worker", "spool", "*")); len(spool) > 0 {
		h.Errorf("left behind: %v", spool)
	}
}

// plant makes a container of somebody else's, which is removed at the test's end, and
// returns its id.
func (h *harbour) plant(labels map[string]string) string {
	h.Helper()
	made, err := h.cli.ContainerCreate(h.Context(), &container.Config{Image: h.image, Cmd: []string{"true"}, Labels: labels}, nil, nil, nil, "")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.cli.ContainerRemove(ctx, made.ID, container.RemoveOptions{Force: true}); err != nil {
			h.Errorf("somebody else's container: %v", err)
		}
	})
	return made.ID
}

// others are what no sweep of ours may touch: somebody's container, and that of another
// store, whose owner is dead and which has expired.
func (h *harbour) others() []string {
	return []string{
		h.plant(nil),
		h.plant(map[string]string{
			"dev.tidemill.managed": "docker", "dev.tidemill.store": "another-" + rand.Text(), "dev.tidemill.run": "r",
			"dev.tidemill.trial": "t", "dev.tidemill.name": "t", "dev.tidemill.nonce": rand.Text(), "dev.tidemill.host": "none",
			"dev.tidemill.expires_at": "2026-01-01T00:00:00Z",
		}),
	}
}

func (h *harbour) stillThere(ids ...string) {
	h.Helper()
	for _, id := range ids {
		if _, err := h.cli.ContainerInspect(h.Context(), id); cerrdefs.IsNotFound(err) {
			h.Errorf("container %s, which is somebody else's, is gone", id)
		} else if err != nil {
			h.Fatal(err)
		}
	}
}

func runID(name string) string { return name + "-" + strings.ToLower(rand.Text()[:10]) }

// Whatever ends tidemill run in the middle of a trial: after the next sweep the engine has
// nothing of it, and all that others have there.
func TestLeftoversOnDocker(t *testing.T) {
	for _, c := range []struct {
		name string
		end  syscall.Signal
		code int
		// at once: it takes its things along when it goes.
		atOnce bool
		sweep  func(h *harbour, data string)
	}{
		{"asked to end", syscall.SIGTERM, 4, true, func(*harbour, string) {}},
		{"killed, then gc", syscall.SIGKILL, -1, false, func(h *harbour, data string) {
			before := h.run(0, "tidemill", "gc", "--data", data, "--runtime", "docker", "--older-than", "0s", "--dry-run")
			if !strings.Contains(before, "would go") {
				h.Errorf("a dry run says:\n%s", before)
			}
			h.run(0, "tidemill", "gc", "--data", data, "--runtime", "docker", "--older-than", "0s")
		}},
		// What Go does with a panic that nobody catches is what it does with this signal: it
		// prints the goroutines and ends with 2. No deferred call runs.
		{"panicked, then another run", syscall.SIGQUIT, 2, false, func(h *harbour, data string) {
			h.run(0, "tidemill", "run", "--data", data, "quick.yaml")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHarbour(t)
			others := h.others()
			neighbour, mine := runID("neighbour"), runID("mine")
			data, far := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "far")
			nb := h.start("tidemill", "run", "--data", far, "--run-id", neighbour, "--drain-timeout", "0s", "stuck.yaml")
			others = append(others, h.midTrial(neighbour, nb))
			b := h.start("tidemill", "run", "--data", data, "--run-id", mine, "--drain-timeout", "0s", "stuck.yaml")
			h.midTrial(mine, b)

			if code := h.end(b, c.end); code != c.code {
				t.Fatalf("it ended with %d, want %d:\n%s", code, c.code, &b.out)
			}
			if left := h.left(mine); (len(left) == 0) != c.atOnce || !c.atOnce && len(left) < 2 {
				t.Errorf("when it has ended %v is left", left)
			}
			c.sweep(h, data)
			h.nothingLeft(mine, data)
			h.stillThere(others...)

			if code := h.end(nb, syscall.SIGTERM); code != 4 {
				t.Errorf("the neighbour ended with %d:\n%s", code, &nb.out)
			}
			h.nothingLeft(neighbour, far)
		})
	}
}

// On a fleet several workers of one store share an engine. What a dead one left goes when
// the queue says that its trial is not its any more, and what a living one has stays.
func TestLeftoversOfAWorkerOnDocker(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until a lease runs out; left out with -short")
	}
	t.Parallel()
	h := newHarbour(t)
	others := h.others()
	url := filepath.Join(h.dir, "url")
	nats := h.start("natsd", filepath.Join(h.dir, "nats"), url)
	h.until("the queue is up", func() bool { _, err := os.Stat(url); return err == nil })
	at, err := os.ReadFile(url)
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(h.dir, "store")
	worker := func(name string) (*boat, string) {
		dir := filepath.Join(h.dir, name)
		return h.start("tidemill", "worker", "--store", store, "--queue", string(at), "--work-dir", dir, "--slots", "1",
			"--runtimes", "docker", "--drain-timeout", "0s", "--sweep-interval", "1s"), dir
	}
	submit := func(run string) {
		h.run(0, "tidemill", "submit", "--store", store, "--queue", string(at), "--run-id", run, "stuck.yaml")
	}

	first, second := runID("first"), runID("second")
	submit(first)
	dead, deadDir := worker("dead")
	h.midTrial(first, dead)
	submit(second)
	living, livingDir := worker("living")
	others = append(others, h.midTrial(second, living))
	h.end(dead, syscall.SIGKILL)

	gc := []string{"tidemill", "gc", "--store", store, "--work-dir", deadDir, "--queue", string(at), "--runtime", "docker", "--older-than", "0s"}
	if out := h.run(0, gc...); !strings.Contains(out, "its maker holds its trial's lease") || len(h.left(first)) == 0 {
		t.Errorf("while the dead worker's lease lasts, gc said:\n%s", out)
	}
	h.until("the dead worker's lease has run out, and gc removes what it left", func() bool {
		h.run(0, gc...)
		return len(h.left(first)) == 0
	})
	h.nothingLeft(first, deadDir)
	h.stillThere(others...)

	if code := h.end(living, syscall.SIGTERM); code != 0 {
		t.Errorf("the living worker ended with %d:\n%s", code, &living.out)
	}
	h.nothingLeft(second, livingDir)
	h.end(nats, syscall.SIGTERM)
}
