// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/runtime"
)

// placeOf is the inverse of takeLog and takeWorkdir, for what an agent leaves: where a
// file of a bundle was. What stood elsewhere, or is the former grader's, has no place.
func placeOf(name string) (p runtime.Place, rest string, ok bool) {
	if rest, ok := strings.CutPrefix(name, "logs/"+string(runtime.AgentLogs)+"/"); ok {
		return runtime.AgentLogs, rest, true
	}
	if rest, ok := strings.CutPrefix(name, "artifacts/workdir/"); ok {
		return runtime.Workdir, rest, true
	}
	if strings.HasPrefix(name, "artifacts/"+collectedDir+"/") {
		return "", "", false // it was anywhere; see TaskRegradable
	}
	if rest, ok := strings.CutPrefix(name, "artifacts/"); ok {
		// What has a first segment that we use ourselves stands one level down.
		return runtime.Artifacts, strings.TrimPrefix(rest, "artifacts/"), true
	}
	return "", "", false
}

// leaving is a file that an agent left.
type leaving struct {
	entry      bundle.IndexEntry
	name       string // in its place
	executable bool
}

// leavings sorts the files of the earlier bundle by where they were.
func (a *attempt) leavings(ctx context.Context) (map[runtime.Place][]leaving, error) {
	executable, err := a.executables(ctx)
	if err != nil {
		return nil, err
	}
	places := map[runtime.Place][]leaving{}
	for _, e := range a.Earlier.Index.Files {
		real, err := e.RealName()
		if err != nil {
			return nil, &bundle.MismatchError{Path: e.Path, Problem: err.Error()}
		}
		if p, name, ok := placeOf(real); ok {
			places[p] = append(places[p], leaving{e, name, executable[real]})
		}
	}
	return places, nil
}

// executables are the files of the earlier bundle that could be run.
func (a *attempt) executables(ctx context.Context) (map[string]bool, error) {
	body, err := a.Earlier.read(ctx, artifactsFile)
	if body == nil || err != nil {
		return nil, err
	}
	var list artifactList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, &bundle.MismatchError{Path: artifactsFile, Problem: err.Error()}
	}
	found := map[string]bool{}
	for _, k := range list.Kept {
		if k.Executable {
			found[k.Path] = true
		}
	}
	return found, nil
}

// restore makes a sandbox hold what the earlier agent left, and the task's input.
func (a *attempt) restore(ctx context.Context) *failure {
	a.begin(PhaseRestore)
	if err := a.bringTask(ctx); err != nil {
		return a.trouble(ctx, PhaseRestore, err, InfraFailed)
	}
	places, err := a.leavings(ctx)
	if err != nil {
		return a.unread(ctx, err)
	}
	for _, p := range runtime.Places {
		if len(places[p]) == 0 {
			continue
		}
		read, err := a.bringBack(ctx, p, places[p])
		switch {
		case read != nil:
			return a.unread(ctx, read)
		case err != nil:
			return a.trouble(ctx, PhaseRestore, fmt.Errorf("place %s: %w", p, err), InfraFailed)
		}
	}
	return nil
}

// bringBack copies files into a place. read is what was wrong with the bundle, err what
// was wrong with the sandbox.
func (a *attempt) bringBack(ctx context.Context, p runtime.Place, files []leaving) (read, err error) {
	read, err = a.copyStream(ctx, p, runtime.CopyOptions{}, func(w io.Writer) error { return a.writeLeavings(ctx, w, files) })
	if errors.Is(read, errCopyEnded) {
		read = nil // the sandbox wanted no more: err says why
	}
	return read, err
}

func (a *attempt) writeLeavings(ctx context.Context, w io.Writer, files []leaving) error {
	tw := tar.NewWriter(w)
	made := map[string]bool{".": true}
	for _, f := range files {
		if err := writeDirs(tw, path.Dir(f.name), made); err != nil {
			return err
		}
		if err := a.writeLeaving(ctx, tw, f); err != nil {
			return err
		}
	}
	return tw.Close()
}

// writeDirs writes the directories on the way to a file, each once.
func writeDirs(tw *tar.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	if err := writeDirs(tw, path.Dir(dir), made); err != nil {
		return err
	}
	made[dir] = true
	return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755})
}

func (a *attempt) writeLeaving(ctx context.Context, tw *tar.Writer, f leaving) error {
	r, err := a.Earlier.Open(ctx, f.entry)
	if err != nil {
		return err
	}
	defer r.Close()
	mode := int64(0o644)
	if f.executable {
		mode = 0o755
	}
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: mode, Size: f.entry.Size}); err != nil {
		return err
	}
	_, err = io.Copy(tw, r)
	return err
}
