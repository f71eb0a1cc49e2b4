// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/docker/docker/api/types/container"

	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

// toolPath is where our tool is in every box. It is directly below the root, because a
// program that is root inside can rename a directory in which something is mounted, but
// not the thing that is mounted.
const toolPath = "/.tidemill-box"

// tools hands out the tool. Where the engine sees our files it is mounted, read-only, so
// that no program inside can change it; else it is put in, before the start and again
// before each use.
type tools struct {
	dir    string
	engine *engine

	mu    sync.Mutex
	seen  *bool // the engine sees our files; nil before it was tried
	files map[string]string
}

// platformArch takes "amd64" out of "linux/amd64" and "linux/arm64/v8".
func platformArch(platform string) string {
	parts := strings.Split(platform, "/")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// file writes the tool for an architecture, and returns its path; empty where the engine
// is known not to see it.
func (t *tools) file(arch string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen != nil && !*t.seen {
		return "", nil
	}
	if path, ok := t.files[arch]; ok {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	elf, err := boxtool.ELF(arch)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(elf)
	path := filepath.Join(t.dir, "box-"+arch+"-"+hex.EncodeToString(sum[:8]))
	if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, elf) {
		if err := writeTool(path, elf); err != nil {
			return "", fmt.Errorf("the tool for the boxes: %w", err)
		}
	}
	if t.files == nil {
		t.files = map[string]string{}
	}
	t.files[arch] = path
	return path, nil
}

// writeTool puts the file there in one step: other workers may be about to mount it.
func writeTool(path string, elf []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "box-*.new")
	if err != nil {
		return err
	}
	_, err = f.Write(elf)
	err = errors.Join(err, f.Chmod(0o755), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// unseen notes that the engine doesn't see our files.
func (t *tools) unseen() {
	no := false
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = &no
}

// isUnseen reads the error of a create with a file to mount.
func isUnseen(err error) bool {
	return strings.Contains(err.Error(), "bind source path does not exist") || strings.Contains(err.Error(), "invalid mount config")
}

// check looks, once, whether what the engine mounted is what we wrote: it may be another
// file of that path, on another machine.
func (t *tools) check(ctx context.Context, id, arch string) (same bool, err error) {
	t.mu.Lock()
	seen := t.seen
	t.mu.Unlock()
	if seen != nil {
		return *seen, nil
	}
	elf, err := boxtool.ELF(arch)
	if err != nil {
		return false, err
	}
	data, err := t.engine.readFile(ctx, id, toolPath, int64(len(elf))+1)
	if err != nil && !isGone(err) {
		return false, err
	}
	same = bytes.Equal(data, elf)
	t.mu.Lock()
	t.seen = &same
	t.mu.Unlock()
	return same, nil
}

// put puts the tool into a container.
func (t *tools) put(ctx context.Context, id, arch string) error {
	elf, err := boxtool.ELF(arch)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	err = errors.Join(
		w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(toolPath, "/"), Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(elf))}),
		second(w.Write(elf)), w.Close(),
	)
	if err != nil {
		return err
	}
	return t.engine.putArchive(ctx, id, &buf)
}

func second[T any](_ T, err error) error { return err }

// putArchive unpacks a tar stream at the container's root. How long that takes depends on
// how much it is, so what is watched is that it goes on.
func (e *engine) putArchive(ctx context.Context, id string, r io.Reader) error {
	const what = "put files into the container"
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := newIdle(e.long, func() { cancel(&stalledError{what, e.long}) })
	defer idle.stop()
	err := e.CopyToContainer(ctx, id, "/", idle.reader(r), container.CopyToContainerOptions{})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return e.explain(what, err)
}

// readFile reads a small file of a container; a longer one is cut.
func (e *engine) readFile(ctx context.Context, id, path string, limit int64) ([]byte, error) {
	return slow(ctx, e, "read "+path+" of the container", func(ctx context.Context) ([]byte, error) {
		in, _, err := e.CopyFromContainer(ctx, id, path)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		r := tar.NewReader(in)
		h, err := r.Next()
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("%s is no regular file", path)
		}
		return io.ReadAll(io.LimitReader(r, limit))
	})
}

// lstat asks what is at a path of a container; symlinks on the way are followed by the
// engine, so whoever doesn't trust the way asks for each part.
func (e *engine) lstat(ctx context.Context, id, path string) (container.PathStat, error) {
	return quick(ctx, e, "look at "+path, func(ctx context.Context) (container.PathStat, error) {
		return e.ContainerStatPath(ctx, id, path)
	})
}
