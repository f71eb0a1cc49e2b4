// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// Defaults of what is kept of a trial's files.
const (
	defaultArtifactBytes = 100 << 20
	defaultArtifacts     = 1000
	maxTrajectory        = 16 << 20 // larger ones are kept as they are and not translated
)

var errNotRegular = errors.New("not a regular file")

// artifactList is artifacts.json: what was kept, what was left out and why.
type artifactList struct {
	SchemaVersion int               `json:"schema_version"`
	Kept          []artifact        `json:"kept"`
	Skipped       []runtime.Skipped `json:"skipped"`
	SkippedTotal  int               `json:"skipped_total"`
}

type artifact struct {
	Path   string `json:"path"`   // in the bundle
	Source string `json:"source"` // place and path in the sandbox
	Bytes  int64  `json:"bytes"`
}

// readFile reads one small file out of the sandbox. Symlinks are not followed.
func (a *attempt) readFile(ctx context.Context, p runtime.Place, name string, limit int64) ([]byte, error) {
	c, err := a.box.CopyOut(ctx, p, name, runtime.CopyLimits{FileBytes: limit, Entries: 1})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	tr := tar.NewReader(c)
	hdr, err := tr.Next()
	if errors.Is(err, io.EOF) {
		if list, _ := c.Skipped(); len(list) > 0 {
			return nil, fmt.Errorf("%s: %w: %s", name, errNotRegular, list[0].Reason)
		}
		return nil, runtime.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	if hdr.Typeflag != tar.TypeReg {
		return nil, fmt.Errorf("%s: %w", name, errNotRegular)
	}
	data, err := io.ReadAll(io.LimitReader(tr, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: %w of %d bytes", name, runtime.ErrTooLarge, limit)
	}
	return data, nil
}

// collect takes what agent and grader left in the log directories, and the workdir
// files that run or task ask for. It changes the outcome only when the sandbox or our
// own disk fails.
func (a *attempt) collect(ctx context.Context) *failure {
	a.begin(PhaseCollect)
	if _, stop := stopped(ctx); stop || ctx.Err() != nil {
		// Evidence of a cancelled attempt is worth a moment, not more.
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	a.readReports(ctx)
	budget := runtime.CopyLimits{
		Bytes:   cmp.Or(int64(a.Run.Run.Capture.MaxArtifactBytes), defaultArtifactBytes),
		Entries: cmp.Or(a.Run.Run.Capture.MaxArtifacts, defaultArtifacts),
	}
	err := a.collectFrom(ctx, runtime.Logs, ".", &budget, a.takeLog)
	globs := slices.Concat(a.Run.Run.Capture.Artifacts, a.Task.Artifacts)
	for _, root := range globRoots(globs) {
		if err != nil {
			break
		}
		err = a.collectFrom(ctx, runtime.Workdir, root, &budget, func(name string) string {
			if slices.ContainsFunc(globs, func(g string) bool { return manifest.MatchGlob(g, name) }) {
				return "artifacts/workdir/" + name
			}
			return ""
		})
	}
	if err != nil {
		a.Log.Warn().Err(err).Msg("collection stopped early")
		a.flag("collection_incomplete")
		if errors.Is(err, errOurDisk) {
			return &failure{ending: InfraFailed, phase: PhaseCollect, detail: err.Error()}
		}
		if errors.Is(err, runtime.ErrLost) {
			return &failure{ending: SandboxLost, phase: PhaseCollect, detail: err.Error()}
		}
	}
	return nil
}

var errOurDisk = errors.New("can't write the bundle")

// collectFrom copies files out and spends the budget. take names each file in the
// bundle; "" leaves it out silently.
func (a *attempt) collectFrom(ctx context.Context, p runtime.Place, root string, budget *runtime.CopyLimits, take func(string) string) error {
	c, err := a.box.CopyOut(ctx, p, root, runtime.CopyLimits{FileBytes: budget.Bytes})
	if errors.Is(err, runtime.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	tr := tar.NewReader(c)
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if hdr.Typeflag == tar.TypeDir {
			continue
		}
		if err := a.keep(p, path.Clean(hdr.Name), hdr, tr, budget, take); err != nil {
			return err
		}
	}
	list, total := c.Skipped()
	a.artifacts.Skipped = append(a.artifacts.Skipped, list...)
	a.artifacts.SkippedTotal += total
	return nil
}

func (a *attempt) keep(p runtime.Place, name string, hdr *tar.Header, r io.Reader, budget *runtime.CopyLimits, take func(string) string) error {
	dest := take(name)
	if dest == "" {
		return nil
	}
	skip := func(reason string) {
		a.artifacts.SkippedTotal++
		if len(a.artifacts.Skipped) < defaultArtifacts {
			a.artifacts.Skipped = append(a.artifacts.Skipped, runtime.Skipped{Path: name, Bytes: hdr.Size, Reason: reason})
		}
	}
	switch {
	case hdr.Typeflag != tar.TypeReg:
		skip("symlink to " + a.redact.String(hdr.Linkname))
		return nil
	case budget.Entries <= 0:
		skip("more files than the limit")
		return nil
	case hdr.Size > budget.Bytes:
		skip("no room left within the limit of bytes")
		return nil
	}
	n, err := a.writeFile(dest, r)
	if err != nil {
		return err
	}
	budget.Entries--
	budget.Bytes -= n
	a.artifacts.Kept = append(a.artifacts.Kept, artifact{Path: dest, Source: string(p) + "/" + name, Bytes: n})
	return nil
}

// writeFile streams a file into the bundle, redacted.
func (a *attempt) writeFile(name string, r io.Reader) (int64, error) {
	f, err := a.Files.Create(name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errOurDisk, err)
	}
	red := a.redact.Writer(diskWriter{f})
	n, err := io.Copy(red, r)
	if cerr := red.Close(); err == nil {
		err = cerr
	}
	if cerr := f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("%w: %w", errOurDisk, cerr)
	}
	return n, err
}

// diskWriter tells errors of our disk from those of the sandbox's stream.
type diskWriter struct{ w io.Writer }

func (d diskWriter) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	if err != nil {
		err = fmt.Errorf("%w: %w", errOurDisk, err)
	}
	return n, err
}

// takeLog says where a file of the log directory goes: artifacts by their own name,
// what has a file of its own in the bundle nowhere, everything else to logs/.
func (a *attempt) takeLog(name string) string {
	if rest, ok := strings.CutPrefix(name, string(runtime.Artifacts)+"/"); ok {
		return "artifacts/" + rest
	}
	switch name {
	case "agent/" + statusFile, "agent/" + usageFile, "verifier/" + RewardText, "verifier/" + RewardJSON:
		return ""
	}
	return "logs/" + name
}

// globRoots returns the directories that need to be read for the globs: what stands
// before the first wildcard.
func globRoots(globs []string) []string {
	var roots []string
	for _, g := range globs {
		root := g
		if i := strings.IndexAny(g, "*?["); i >= 0 {
			root = path.Dir(g[:i] + "x")
		}
		roots = append(roots, path.Clean(root))
	}
	slices.Sort(roots)
	var out []string
	for _, r := range slices.Compact(roots) {
		if n := len(out); n > 0 && (out[n-1] == "." || strings.HasPrefix(r, out[n-1]+"/")) {
			continue // covered
		}
		out = append(out, r)
	}
	return out
}
