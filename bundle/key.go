// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"strconv"
	"strings"
)

// The layout of a store, below its prefix:
//
//	store.json                                    identity, create-if-absent
//	packs/<sha256>.tar.zst                        packs and agent files
//	runs/<run_id>/run.yaml                        resolved, redacted, create-if-absent
//	runs/<run_id>/plan/<part>.jsonl.zst           trials
//	runs/<run_id>/attempts/<trial_id>/<n>.json      claim
//	runs/<run_id>/attempts/<trial_id>/<n>.end.json  how it ended
//	runs/<run_id>/trials/<task>/<index>/<n>/…     files of attempt n
//	runs/<run_id>/trials/<task>/<index>/result.json
//	runs/<run_id>/commits/<hh>/<trial_id>.<epoch>.json
//	runs/<run_id>/segments/<n>.jsonl.zst          compacted commits
//	runs/<run_id>/control/<rev>.json
//	runs/<run_id>/control/epochs-<sha256>.jsonl.zst  long lists of trials
//	runs/<run_id>/services/<worker>/…             run-level service logs
//	runs/<run_id>/aggregate.json, …               reports
//
// Keys are built here and nowhere else.

// StoreKey is the key of the store's identity.
const StoreKey = "store.json"

// RunsPrefix is where runs begin.
const RunsPrefix = "runs/"

// PackKey returns the key of a pack by the hex sha256 of its tar archive.
func PackKey(sha256 string) string { return "packs/" + sha256 + ".tar.zst" }

// Keys builds the keys of one run.
type Keys struct{ Run string }

func (k Keys) base() string { return RunsPrefix + k.Run + "/" }

// Prefix is where everything of the run begins.
func (k Keys) Prefix() string { return k.base() }

// RunFile is the key of run.yaml.
func (k Keys) RunFile() string { return k.base() + "run.yaml" }

// PlanPart is the key of a part of the plan, counted from 0.
func (k Keys) PlanPart(part int) string { return fmt.Sprintf("%splan/%06d.jsonl.zst", k.base(), part) }

// Claim is the key of an attempt's claim.
func (k Keys) Claim(trial string, attempt int) string {
	return k.Attempts(trial) + strconv.Itoa(attempt) + ".json"
}

// AttemptEnd is the key of how an attempt ended.
func (k Keys) AttemptEnd(trial string, attempt int) string {
	return k.Attempts(trial) + strconv.Itoa(attempt) + ".end.json"
}

// Attempts is where the attempt records of a trial begin.
func (k Keys) Attempts(trial string) string { return k.base() + "attempts/" + trial + "/" }

// Commits is where the run's commits begin.
func (k Keys) Commits() string { return k.base() + "commits/" }

// Commit is the key of a commit.
func (k Keys) Commit(trial string, epoch int) string {
	return k.Commits() + trial[:2] + "/" + trial + "." + strconv.Itoa(epoch) + ".json"
}

// Trial is where the files of a trial begin.
func (k Keys) Trial(task string, index int) string {
	return k.base() + "trials/" + EscapeSegment(task) + "/" + strconv.Itoa(index) + "/"
}

// AttemptFiles is where the files of an attempt begin.
func (k Keys) AttemptFiles(task string, index, attempt int) string {
	return k.Trial(task, index) + strconv.Itoa(attempt) + "/"
}

// Result is the key of result.json.
func (k Keys) Result(task string, index int) string { return k.Trial(task, index) + "result.json" }

// Control is where control records begin.
func (k Keys) Control() string { return k.base() + "control/" }

// ControlRecord is the key of a control record; revisions start at 1.
func (k Keys) ControlRecord(rev int) string { return fmt.Sprintf("%s%08d.json", k.Control(), rev) }

// ControlEpochs is the key of the epochs that a control record names by the sha256 of
// their text.
func (k Keys) ControlEpochs(sha256 string) string {
	return k.Control() + "epochs-" + sha256 + ".jsonl.zst"
}

// Report is the key of a report such as aggregate.json.
func (k Keys) Report(name string) string { return k.base() + name }

// ParseCommitKey returns trial and epoch of a commit's key.
func ParseCommitKey(key string) (trial string, epoch int, ok bool) {
	name, found := strings.CutSuffix(key[strings.LastIndexByte(key, '/')+1:], ".json")
	if !found {
		return "", 0, false
	}
	trial, num, found := strings.Cut(name, ".")
	if !found {
		return "", 0, false
	}
	epoch, err := strconv.Atoi(num)
	return trial, epoch, err == nil && epoch > 0
}

const hexUpper = "0123456789ABCDEF"

// EscapeSegment makes any text a key segment: every byte outside [A-Za-z0-9._-],
// and a leading dot, becomes ~XX. Empty text becomes "~".
func EscapeSegment(s string) string {
	if s == "" {
		return "~"
	}
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if plain(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('~')
		b.WriteByte(hexUpper[c>>4])
		b.WriteByte(hexUpper[c&15])
	}
	return b.String()
}

// UnescapeSegment undoes EscapeSegment.
func UnescapeSegment(s string) (string, error) {
	if s == "~" {
		return "", nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '~' {
			if !plain(s[i]) {
				return "", fmt.Errorf("segment %q: byte %q must be escaped", s, s[i])
			}
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", fmt.Errorf("segment %q: ~ without two hex digits", s)
		}
		n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("segment %q: ~%s is not hexadecimal", s, s[i+1:i+3])
		}
		b.WriteByte(byte(n))
		i += 2
	}
	out := b.String()
	if EscapeSegment(out) != s {
		return "", fmt.Errorf("segment %q is not how %q is escaped", s, out)
	}
	return out, nil
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// CheckKey reports why a key can't be one.
func CheckKey(key string) error {
	if key == "" || len(key) > 900 {
		return fmt.Errorf("%w %.200q: %d bytes, want 1 to 900", ErrInvalidKey, key, len(key))
	}
	for seg := range strings.SplitSeq(key, "/") {
		if seg == "" || seg[0] == '.' {
			return fmt.Errorf("%w %.200q: segment %.200q is empty or starts with a dot", ErrInvalidKey, key, seg)
		}
		for i := range len(seg) {
			if !plain(seg[i]) && seg[i] != '~' {
				return fmt.Errorf("%w %.200q: byte %q is not allowed", ErrInvalidKey, key, seg[i])
			}
		}
	}
	return nil
}

// CheckPrefix reports why no key can start with a prefix. The empty one is that of all
// keys.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	// What a prefix lacks to be a key is at most one more byte.
	return CheckKey(prefix + "x")
}
