// SPDX-License-Identifier: Apache-2.0

package bundle

import "time"

// SchemaVersion is what records of this version carry.
const SchemaVersion = 1

// StoreRecord is store.json.
type StoreRecord struct {
	SchemaVersion int       `json:"schema_version"`
	StoreUUID     string    `json:"store_uuid"`
	Layout        int       `json:"layout"`
	CreatedAt     time.Time `json:"created_at"`
}

// PlanRow is one trial of the plan. Row n of part p is what a queue's job points at.
type PlanRow struct {
	TaskID     string `json:"task_id"`
	TrialIndex int    `json:"trial_index"`
	TrialID    string `json:"trial_id"`
	// Pack is the sha256 of the pack that the task is in.
	Pack string `json:"pack"`
	// Offset and Length tell where the task's row stands in the uncompressed
	// dataset of a dataset pack, in bytes.
	Offset int64 `json:"offset,omitempty"`
	Length int64 `json:"length,omitempty"`
	// Dir is the task's directory in a pack of task directories.
	Dir string `json:"dir,omitempty"`
}

// PlanRef points at a row of the plan, both counted from 0.
type PlanRef struct {
	Part int `json:"part"`
	Row  int `json:"row"`
}

// Claim is the record of an attempt that began.
type Claim struct {
	SchemaVersion int    `json:"schema_version"`
	TrialID       string `json:"trial_id"`
	TaskID        string `json:"task_id"`
	TrialIndex    int    `json:"trial_index"`
	Attempt       int    `json:"attempt"`
	Epoch         int    `json:"epoch"`
	Worker        string `json:"worker"`
	// Process tells the worker's process from all others; empty in older records. Two
	// claims of one process prove that it outlived the first.
	Process string `json:"process,omitempty"`
	Nonce   string `json:"nonce"`
	Fence   uint64 `json:"fence"`
	// Alone: its worker runs no other trial until the attempt has its end. A claim that
	// says so and has none tells of a trial that may have killed its worker; another one
	// tells only of a worker that died.
	Alone bool      `json:"alone,omitempty"`
	At    time.Time `json:"at"`
}

// AttemptEnd is the record of how an attempt ended.
type AttemptEnd struct {
	SchemaVersion int `json:"schema_version"`
	Attempt       int `json:"attempt"`
	Epoch         int `json:"epoch"`
	// Outcome of the attempt. Status cancelled when it was ended from outside.
	Outcome Outcome `json:"outcome"`
	// Committed: this attempt is the one that counts.
	Committed bool `json:"committed"`
	// Superseded: another attempt of the epoch was committed first.
	Superseded bool `json:"superseded,omitempty"`
	// Charged attempts count towards max_attempts.
	Charged bool `json:"charged"`
	// LatencyS is how long the attempt held its slot: from its claim to the end of its
	// teardown, with all that was fetched for it. CostUSD is what its agent reported to have
	// spent; nil: never priced, and without an agent.
	LatencyS Seconds  `json:"latency_s,omitempty"`
	CostUSD  *float64 `json:"cost_usd,omitempty"`
	// Why says in a sentence what was decided: "retry 2 of 3 in 4s".
	Why string    `json:"why,omitempty"`
	At  time.Time `json:"at"`
}

// Commit is what makes a trial done, and all that the aggregator needs of it.
type Commit struct {
	SchemaVersion int       `json:"schema_version"`
	TrialID       string    `json:"trial_id"`
	TaskID        string    `json:"task_id"`
	TrialIndex    int       `json:"trial_index"`
	Epoch         int       `json:"epoch"`
	Attempt       int       `json:"attempt"`
	Nonce         string    `json:"nonce"`
	Worker        string    `json:"worker"`
	Plan          PlanRef   `json:"plan"`
	IndexSHA256   string    `json:"index_sha256"`
	Outcome       Outcome   `json:"outcome"`
	Grade         Grade     `json:"grade"`
	Metrics       Metrics   `json:"metrics"`
	At            time.Time `json:"at"`
	// Regraded is set where the attempt only graded what another had left.
	Regraded *Regraded `json:"regraded,omitempty"`
}

// Regraded says what was graded again, and by what.
type Regraded struct {
	// Epoch and Attempt are those of the agent's attempt: never of one that was regraded
	// itself.
	Epoch   int `json:"epoch" yaml:"epoch"`
	Attempt int `json:"attempt" yaml:"attempt"`
	// Pack is the sha256 of the pack whose grader judged.
	Pack string `json:"pack" yaml:"pack"`
}

// Result is result.json: which attempt counts, for people who browse.
type Result struct {
	SchemaVersion int     `json:"schema_version"`
	TrialID       string  `json:"trial_id"`
	TaskID        string  `json:"task_id"`
	TrialIndex    int     `json:"trial_index"`
	Epoch         int     `json:"epoch"`
	Attempt       int     `json:"attempt"`
	Attempts      int     `json:"attempts"`
	Outcome       Outcome `json:"outcome"`
	Grade         Grade   `json:"grade"`
	// Path of the attempt's files, relative to the store.
	Path string `json:"path"`
}

// Control is a decision about a run that was taken from outside.
type Control struct {
	SchemaVersion int            `json:"schema_version"`
	Rev           int            `json:"rev"`
	Kind          string         `json:"kind"` // pause, resume, cancel, priority, limits, retry, regrade, stop
	At            time.Time      `json:"at"`
	By            string         `json:"by"`
	Args          map[string]any `json:"args,omitempty"`
	// Epochs are the next epochs of the trials that a retry or regrade puts back. Where
	// they are is for [ReadControl] and [AppendControl] to know.
	Epochs Epochs `json:"-"`
}
