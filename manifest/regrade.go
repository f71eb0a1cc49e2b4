// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// FromArtifacts is the value of a pack's regrade.from that says: the files that are
// collected (the artifacts globs of pack and run, the agent's log directory and the
// artifacts place) are all that the grader needs of what the agent left.
const FromArtifacts = "artifacts"

// regrade is regrade.from of the pack, empty without.
func (p *datasetPack) regrade() string {
	if p.spec.Regrade == nil {
		return ""
	}
	return p.spec.Regrade.From
}

// Index returns where each task of the pack is. It takes about 100 bytes for each. The
// first one that is wrong ends it.
func (p *Pack) Index(ctx context.Context) (map[string]TaskRef, error) {
	refs := map[string]TaskRef{}
	for ref, err := range p.Tasks(ctx) {
		if err != nil {
			return nil, err
		}
		ref.loaded = nil // or every task would stay in memory
		refs[ref.ID] = ref
	}
	return refs, nil
}

// TaskDiffer finds what keeps one version of a pack from grading the trials of another.
// It is used by one goroutine.
type TaskDiffer struct {
	trees map[string]string // digest of each directory that was seen
}

// ForAgent names the parts of a task in which the two versions differ for the agent: it
// worked on the old one, so they have to be the same. What only graders see may differ.
func (t *TaskDiffer) ForAgent(ctx context.Context, old, new *Task) ([]string, error) {
	var differ []string
	add := func(key string, same bool) {
		if !same {
			differ = append(differ, key)
		}
	}
	add("env", maps.Equal(old.Env, new.Env) && maps.Equal(old.SecretEnv, new.SecretEnv))
	add("users", maps.Equal(old.Users, new.Users))
	add("image", old.Image == new.Image)
	add("workdir", old.Workdir == new.Workdir)
	add("network", maps.EqualFunc(old.Network, new.Network, sameNetwork))
	add("healthcheck", reflect.DeepEqual(old.Healthcheck, new.Healthcheck))
	if err := t.build(ctx, old.Build, new.Build, add); err != nil {
		return nil, err
	}
	if err := t.tree(ctx, "files", old.Files, new.Files, add); err != nil {
		return nil, err
	}
	add("steps", len(old.Steps) == len(new.Steps))
	for i := range min(len(old.Steps), len(new.Steps)) {
		a, b := old.Steps[i], new.Steps[i]
		add("instruction", a.Instruction == b.Instruction)
		add("agent_fields", bytes.Equal(a.AgentRow, b.AgentRow))
		add("agent_timeout", a.AgentTimeout == b.AgentTimeout)
		add("input", maps.EqualFunc(a.Input, b.Input, bytes.Equal))
		add("healthcheck", reflect.DeepEqual(a.Healthcheck, b.Healthcheck))
		if err := t.tree(ctx, "files", a.Files, b.Files, add); err != nil {
			return nil, err
		}
		if err := t.program(ctx, "setup", a.Setup, b.Setup, add); err != nil {
			return nil, err
		}
	}
	slices.Sort(differ)
	return slices.Compact(differ), nil
}

func (t *TaskDiffer) build(ctx context.Context, old, new *Build, add func(string, bool)) error {
	if old == nil || new == nil {
		add("image", old == new)
		return nil
	}
	add("image", old.Dockerfile == new.Dockerfile)
	return t.tree(ctx, "image", old.Context, new.Context, add)
}

func sameNetwork(a, b Network) bool { return a.Policy == b.Policy && slices.Equal(a.Allow, b.Allow) }

func (t *TaskDiffer) program(ctx context.Context, key string, old, new *Program, add func(string, bool)) error {
	if old == nil || new == nil {
		add(key, old == new)
		return nil
	}
	add(key, slices.Equal(old.Command, new.Command) && maps.Equal(old.Env, new.Env) &&
		maps.Equal(old.SecretEnv, new.SecretEnv) && old.User == new.User)
	if err := t.tree(ctx, key, old.Base, new.Base, add); err != nil {
		return err
	}
	return t.tree(ctx, key, old.Files, new.Files, add)
}

func (t *TaskDiffer) tree(ctx context.Context, key, old, new string, add func(string, bool)) error {
	a, err := t.digest(ctx, old)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	b, err := t.digest(ctx, new)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	add(key, a == b)
	return nil
}

// digest is that of a directory's archive, empty for none.
func (t *TaskDiffer) digest(ctx context.Context, dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	if sum, ok := t.trees[dir]; ok {
		return sum, nil
	}
	sum, err := Archive(ctx, dir, nil, ArchiveOptions{})
	if err != nil {
		return "", err
	}
	if t.trees == nil {
		t.trees = map[string]string{}
	}
	t.trees[dir] = sum
	return sum, nil
}
