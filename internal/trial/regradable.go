// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/redact"
	"github.com/tidemill/tidemill/manifest"
	"github.com/tidemill/tidemill/runtime"
)

// TaskRegradable says why no trial of a task can be graded again, "" when they can. fix
// is what would have to be different.
func TaskRegradable(run *manifest.Run, task *manifest.Task) (why, fix string) {
	switch {
	case task.Regrade == "" && (task.Image != "" || task.Build != nil):
		return "its agent worked in a container of the task's own, of which only some files were collected", "run it again"
	case task.Regrade == "":
		return "its pack.yaml doesn't say that what is collected is enough to grade",
			`if the grader needs only those files, write "regrade: {from: ` + manifest.FromArtifacts + `}" and list them under artifacts`
	case len(task.Collect) > 0 || len(task.Steps) == 1 && len(task.Steps[0].Collect) > 0:
		return "it collects files from outside of the workdir, and those can't be put back", "run it again"
	case len(task.Steps) > 1:
		return "it has several steps, and only what the last one left was collected", "run it again"
	case cmp.Or(run.AgentProcesses, task.AgentProcesses) == "keep":
		return "its grader works beside the agent's processes (agent_processes: keep), which are gone", "run it again"
	}
	return "", ""
}

// OutcomeRegradable says why an attempt with this outcome left nothing that could be
// graded again, "" when it did.
func OutcomeRegradable(o bundle.Outcome) string {
	switch {
	case slices.Contains(o.Flags, FlagCollection):
		return "not all that the agent left could be collected"
	case o.Scored, o.FailureClass == bundle.GraderFailure:
		return ""
	}
	return "it ended with " + o.TerminationReason + " before there was something to grade"
}

// artifactsFile lists what was collected.
const artifactsFile = "artifacts.json"

// ArtifactsFile is the name of the list in a bundle, for [FilesRegradable].
const ArtifactsFile = artifactsFile

// FilesRegradable says why the files that were collected of an agent are not those that
// it left, "" when they are. list is artifacts.json, nil where there is none: then nothing
// was left. index, nil where the agent had no secrets, shows what was redacted.
func FilesRegradable(list []byte, index *bundle.Index) string {
	if list == nil {
		return ""
	}
	var l artifactList
	if err := json.Unmarshal(list, &l); err != nil {
		return artifactsFile + " can't be read: " + err.Error()
	}
	verdict := string(runtime.Logs) + "/" + string(runtime.Verdict) + "/"
	for _, s := range l.Skipped {
		if !strings.HasPrefix(s.Path, verdict) && s.Reason != reasonNoMatch {
			return fmt.Sprintf("%s was not collected: %s", s.Path, s.Reason)
		}
	}
	if l.SkippedTotal > len(l.Skipped) {
		return fmt.Sprintf("%d files were not collected", l.SkippedTotal)
	}
	if index == nil {
		return ""
	}
	for _, k := range l.Kept {
		if strings.HasPrefix(k.Source, verdict) {
			continue
		}
		path, err := bundle.EscapeName(k.Path)
		e, ok := index.Find(path)
		if err != nil || !ok || e.Size != k.Bytes || strings.Contains(k.Path, redact.Marker) {
			return k.Source + " held a secret, which is not kept"
		}
	}
	return ""
}
