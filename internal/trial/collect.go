// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tidemill/tidemill/runtime"
)

// Defaults of what is kept of a trial's files.
const (
	defaultArtifactBytes = 100 << 20
	defaultArtifacts     = 1000
	collectTimeout       = 5 * time.Minute
	// graderBytes and graderEntries are the room for the grader's own files.
	graderBytes   = 10 << 20
	graderEntries = 100
	// lateCollect is what evidence of a stopped attempt is worth.
	lateCollect = 30 * time.Second
)

const (
	reasonNoRoom = "larger than what is left of capture.max_artifact_bytes"
	// reasonNoMatch stands beside a pattern: there was nothing to collect.
	reasonNoMatch = "no file matches"
)

// collectStep takes what agent and grader left in the log directories, and what the task
// names elsewhere.
func (a *attempt) collectStep(ctx context.Context) *failure {
	return a.collect(ctx, func(ctx context.Context) error {
		if a.Earlier == nil { // whose numbers stand
			a.readReports(ctx)
		}
		if _, err := a.collectFrom(ctx, runtime.Logs, ".", nil, a.takeLog); err != nil {
			return err
		}
		return a.collectElsewhere(ctx)
	})
}

// collectWorkdir takes the files that run or task ask for.
func (a *attempt) collectWorkdir(ctx context.Context) *failure {
	globs := slices.Concat(a.Run.Run.Capture.Artifacts, a.Task.Artifacts)
	if len(globs) == 0 {
		return nil
	}
	return a.collect(ctx, func(ctx context.Context) error {
		w := newWanted(globs)
		for _, root := range globRoots(globs) {
			if _, err := a.collectFrom(ctx, runtime.Workdir, root, nil, w.take); err != nil {
				return err
			}
		}
		if a.artifacts.SkippedTotal > len(a.artifacts.Skipped) {
			return nil // what isn't listed may match
		}
		for _, g := range w.missed() {
			a.skip(runtime.Workdir, g, 0, reasonNoMatch)
		}
		return nil
	})
}

// collect changes the outcome only when the sandbox or our own disk fails.
func (a *attempt) collect(ctx context.Context, do func(context.Context) error) *failure {
	if a.dead {
		a.flag(FlagCollection)
		return nil
	}
	a.begin(PhaseCollect)
	bounded, cancel := beyond(ctx, collectTimeout, lateCollect)
	defer cancel()
	err := do(bounded)
	if err == nil {
		return nil
	}
	a.Log.Warn().Err(err).Msg("collection stopped early")
	a.flag(FlagCollection)
	switch {
	case errors.Is(err, errOurDisk):
		return &failure{ending: InfraFailed, phase: PhaseCollect, detail: err.Error()}
	case errors.Is(err, runtime.ErrLost), a.lost(bounded):
		a.dead = true
		return &failure{ending: SandboxLost, phase: PhaseCollect, detail: err.Error()}
	}
	return nil
}

// collectFrom copies files out and spends the room that is left. take names each file
// in the bundle; "" leaves it out silently. whole are further limits, where everything
// is taken that there is. found says that there was something.
func (a *attempt) collectFrom(ctx context.Context, p runtime.Place, root string, whole *runtime.CopyLimits, take func(string) string) (found bool, err error) {
	// 0 would be no limit.
	limits := runtime.CopyLimits{FileBytes: max(a.room.Bytes, 1)}
	if p == runtime.Logs {
		limits.FileBytes = max(limits.FileBytes, a.graderRoom.Bytes)
	}
	if whole != nil {
		limits.Bytes, limits.Entries = whole.Bytes, whole.Entries
	}
	c, err := a.box.CopyOut(ctx, p, root, limits)
	if errors.Is(err, runtime.ErrNotExist) {
		return false, nil
	}
	if odd, ok := errors.AsType[*runtime.PathError](err); ok {
		a.skip(p, root, 0, odd.Reason) // a program put something else there
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer c.Close()
	tr := tar.NewReader(c)
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return true, err
		}
		if hdr.Typeflag == tar.TypeDir {
			continue
		}
		name := path.Clean(hdr.Name)
		if err := a.keep(p, name, take(name), hdr, tr); err != nil {
			return true, err
		}
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		return true, err
	}
	list, total := c.Skipped()
	for _, s := range list {
		if take(path.Clean(s.Path)) != "" {
			if s.Bytes > limits.FileBytes {
				s.Reason = reasonNoRoom
			}
			a.skip(p, s.Path, s.Bytes, s.Reason)
		}
	}
	a.artifacts.SkippedTotal += total - len(list)
	return true, nil
}

// roomFor returns the limits that a file counts against. What the grader leaves beside its
// verdict has room of its own: an agent that floods the log directories must not crowd
// out what explains its score.
func (a *attempt) roomFor(p runtime.Place, name string) *runtime.CopyLimits {
	if p == runtime.Logs && strings.HasPrefix(name, string(runtime.Verdict)+"/") {
		return &a.graderRoom
	}
	return &a.room
}

// keep writes a file into the bundle, or says why it doesn't.
func (a *attempt) keep(p runtime.Place, name, dest string, hdr *tar.Header, r io.Reader) error {
	room := a.roomFor(p, name)
	switch {
	case dest == "":
		return nil
	case hdr.Typeflag != tar.TypeReg:
		a.skip(p, name, hdr.Size, "symlink to "+hdr.Linkname)
		return nil
	case room.Entries <= 0:
		a.skip(p, name, hdr.Size, "more files than capture.max_artifacts")
		return nil
	case hdr.Size > room.Bytes:
		a.skip(p, name, hdr.Size, reasonNoRoom)
		return nil
	}
	dest = a.redact.String(dest)
	n, err := a.writeFile(dest, r)
	switch {
	case errors.Is(err, errTaken):
		a.skip(p, name, hdr.Size, err.Error())
		return nil
	case err != nil:
		a.skip(p, name, hdr.Size, fmt.Sprintf("cut off after %d bytes: %v", n, err))
		return err
	}
	room.Entries--
	room.Bytes -= n
	a.artifacts.Kept = append(a.artifacts.Kept, artifact{Path: dest, Source: a.source(p, name), Bytes: n, Executable: hdr.Mode&0o111 != 0})
	return nil
}
