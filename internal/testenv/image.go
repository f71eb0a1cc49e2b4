// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
)

// TestImageLabel is on every image that tests make; its value is the digest of what the
// image was made from.
const TestImageLabel = "dev.tidemill.test"

// staleAfter is how long an image of other inputs is left alone: another checkout may
// use it.
const staleAfter = 24 * time.Hour

// testImage is an image that is made here when it isn't there. Its tag has the digest
// of its inputs, so one that was made from others is not taken for it.
type testImage struct {
	repository string // "tidemill-test/NAME"
	version    string // put before the digest in the tag; may be empty
	inputs     []string
	changes    []string // Dockerfile instructions
	// files writes the root file system.
	files func(ctx context.Context, w io.Writer) error
}

func (ti testImage) digest() string {
	h := sha256.New()
	for _, in := range append(ti.inputs, ti.changes...) {
		fmt.Fprintf(h, "%d\n%s\n", len(in), in)
	}
	return hex.EncodeToString(h.Sum(nil))
}

const tagDigits = 16

func (ti testImage) ref() string { return ti.tagPrefix() + ti.digest()[:tagDigits] }

func (ti testImage) tagPrefix() string {
	if ti.version == "" {
		return ti.repository + ":"
	}
	return ti.repository + ":" + ti.version + "-"
}

// isTag reports whether a tag is one that ref could have returned.
func (ti testImage) isTag(tag string) bool {
	digits, ok := strings.CutPrefix(tag, ti.tagPrefix())
	return ok && len(digits) == tagDigits
}

// ensure makes the image when it is missing. One process of all that run tests makes
// it; the others wait for it.
func (ti testImage) ensure(t testing.TB, cli *client.Client) string {
	t.Helper()
	ctx, ref := t.Context(), ti.ref()
	if _, err := cli.ImageInspect(ctx, ref); err == nil {
		return ref
	} else if !cerrdefs.IsNotFound(err) {
		t.Fatalf("test image %s: %v", ref, err)
	}
	unlock := lock(t, ref, syscall.LOCK_EX)
	defer unlock()
	if _, err := cli.ImageInspect(ctx, ref); err == nil {
		return ref
	}
	if err := ti.make(ctx, cli, ref); err != nil {
		RequireOrFail(t, fmt.Sprintf("the image %s, which can't be made here: %v", ref, err))
	}
	ti.sweep(ctx, cli)
	return ref
}

func (ti testImage) make(ctx context.Context, cli *client.Client, ref string) error {
	pr, pw := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := ti.files(ctx, pw)
		pw.CloseWithError(err)
		written <- err
	}()
	changes := append([]string{fmt.Sprintf("LABEL %s=%s", TestImageLabel, ti.digest())}, ti.changes...)
	body, err := cli.ImageImport(ctx, image.ImportSource{Source: pr, SourceName: "-"}, ref, image.ImportOptions{Changes: changes})
	if err == nil {
		err = streamEnd(body)
		body.Close()
	}
	pr.CloseWithError(io.ErrClosedPipe)
	if werr := <-written; werr != nil && !errors.Is(werr, io.ErrClosedPipe) {
		return werr
	}
	return err
}

// streamEnd reads the engine's progress and returns the error in it.
func streamEnd(r io.Reader) error {
	dec := json.NewDecoder(r)
	for {
		var m struct {
			Error string `json:"error"`
		}
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if m.Error != "" {
			return errors.New(m.Error)
		}
	}
}

// sweep removes images of the same kind that were made from other inputs, long ago, and
// that nothing uses: the engine refuses to remove others.
func (ti testImage) sweep(ctx context.Context, cli *client.Client) {
	list, err := cli.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(
		filters.Arg("reference", ti.repository), filters.Arg("label", TestImageLabel))})
	if err != nil {
		return // the next one that makes an image tries again
	}
	for _, sum := range list {
		old := time.Since(time.Unix(sum.Created, 0)) > staleAfter
		named := slices.ContainsFunc(sum.RepoTags, func(tag string) bool { return !ti.isTag(tag) })
		if !old || named || sum.Labels[TestImageLabel] == ti.digest() {
			continue
		}
		_, _ = cli.ImageRemove(ctx, sum.ID, image.RemoveOptions{})
	}
}

// lock takes a lock that is shared with all test processes of this user, and returns
// the call that gives it back.
func lock(t testing.TB, name string, how int) func() {
	t.Helper()
	f, err := lockFile(name)
	if err == nil {
		err = flock(f, how)
	}
	if err != nil {
		t.Fatalf("lock for %s: %v", name, err)
	}
	return func() { _ = f.Close() } // closing gives the lock back
}

func lockFile(name string) (*os.File, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("tidemill-test-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	plain := strings.NewReplacer("/", "-", ":", "-", "@", "-").Replace(name)
	return os.OpenFile(filepath.Join(dir, plain+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
}

// flock waits through signals: the Go runtime's own interrupt system calls.
func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// treeWriter writes a root file system as tar. The first error stays.
type treeWriter struct {
	tw  *tar.Writer
	err error
}

func newTree(w io.Writer) *treeWriter { return &treeWriter{tw: tar.NewWriter(w)} }

func (w *treeWriter) entry(h *tar.Header, data []byte) {
	if w.err != nil {
		return
	}
	h.Size = int64(len(data))
	if w.err = w.tw.WriteHeader(h); w.err == nil {
		_, w.err = w.tw.Write(data)
	}
}

func (w *treeWriter) dir(name string, mode int64) {
	w.entry(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode}, nil)
}

func (w *treeWriter) file(name string, mode int64, data []byte) {
	w.entry(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, data)
}

func (w *treeWriter) link(name, target string) {
	w.entry(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

// users writes what names root, two ordinary users and nobody.
func (w *treeWriter) users(shell string) {
	w.dir("etc", 0o755)
	w.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:"+shell+"\n"+
		TestUser+":x:1000:1000::/home/"+TestUser+":"+shell+"\n"+
		OtherTestUser+":x:1001:1001::/home/"+OtherTestUser+":"+shell+"\n"+
		"nobody:x:65534:65534:nobody:/:"+shell+"\n"))
	w.file("etc/group", 0o644, []byte("root:x:0:\n"+TestUser+":x:1000:\n"+OtherTestUser+":x:1001:\nnogroup:x:65534:\n"))
	w.dir("root", 0o700)
	w.dir("home", 0o755)
	w.entry(&tar.Header{Typeflag: tar.TypeDir, Name: "home/" + TestUser + "/", Mode: 0o755, Uid: 1000, Gid: 1000}, nil)
	w.entry(&tar.Header{Typeflag: tar.TypeDir, Name: "home/" + OtherTestUser + "/", Mode: 0o755, Uid: 1001, Gid: 1001}, nil)
	w.dir("tmp", 0o1777)
}

func (w *treeWriter) close() error {
	if w.err != nil {
		return w.err
	}
	return w.tw.Close()
}

// Ordinary users of the test images, with the user ids 1000 and 1001.
const (
	TestUser      = "agent"
	OtherTestUser = "other"
)
