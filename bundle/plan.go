// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A reader refuses parts beyond these, so a writer never makes them.
const (
	maxPartRows  = 100_000
	maxPartBytes = 16 << 20
)

// PlanLimits bounds a part of the plan.
type PlanLimits struct {
	Rows  int // default 5,000
	Bytes int // uncompressed; default 1 MiB
}

// PlanTotals is what a whole plan came to.
type PlanTotals struct{ Parts, Rows int }

// PlanWriter cuts the rows of a plan into parts. Equal rows give equal parts, however
// often and wherever they are written. (Another version of the compressor may give
// other bytes for them, so identity is a matter of rows.)
type PlanWriter struct {
	limits PlanLimits
	flush  func(part int, body []byte, rows []PlanRow) error
	zip    *zstd.Encoder
	buf    bytes.Buffer // rows of the open part, encoded
	rows   []PlanRow
	totals PlanTotals
}

// NewPlanWriter returns a writer that gives each finished part to flush: its number,
// its object and its rows. Both slices are flush's to keep.
func NewPlanWriter(limits PlanLimits, flush func(part int, body []byte, rows []PlanRow) error) *PlanWriter {
	limits.Rows = min(cmp.Or(limits.Rows, 5000), maxPartRows)
	limits.Bytes = min(cmp.Or(limits.Bytes, 1<<20), maxPartBytes)
	// One goroutine and a fixed level: the output depends on the input alone.
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(true))
	if err != nil {
		panic(fmt.Sprintf("options are constant: %v", err))
	}
	return &PlanWriter{limits: limits, flush: flush, zip: zip}
}

// Add appends a row and tells where it stands.
func (w *PlanWriter) Add(row PlanRow) (PlanRef, error) {
	if err := row.check(); err != nil {
		return PlanRef{}, err
	}
	line, err := EncodeRecord(row)
	if err != nil {
		return PlanRef{}, err
	}
	if len(line) > w.limits.Bytes {
		return PlanRef{}, fmt.Errorf("plan row of task %.40q: %d bytes, want at most %d", row.TaskID, len(line), w.limits.Bytes)
	}
	if len(w.rows) == w.limits.Rows || w.buf.Len()+len(line) > w.limits.Bytes {
		if err := w.finishPart(); err != nil {
			return PlanRef{}, err
		}
	}
	w.buf.Write(line)
	w.rows = append(w.rows, row)
	w.totals.Rows++
	return PlanRef{Part: w.totals.Parts, Row: len(w.rows) - 1}, nil
}

// Finish hands out the last part. The writer can't be used afterwards.
func (w *PlanWriter) Finish() (PlanTotals, error) {
	if len(w.rows) > 0 {
		if err := w.finishPart(); err != nil {
			return PlanTotals{}, err
		}
	}
	return w.totals, w.zip.Close()
}

func (w *PlanWriter) finishPart() error {
	part, rows := w.totals.Parts, w.rows
	body := w.zip.EncodeAll(w.buf.Bytes(), nil)
	w.rows = nil
	w.buf.Reset()
	w.totals.Parts++
	if err := w.flush(part, body, rows); err != nil {
		return fmt.Errorf("plan part %d: %w", part, err)
	}
	return nil
}

// ReadPlanPart reads a part of a run's plan.
func ReadPlanPart(ctx context.Context, s Store, keys Keys, part int) ([]PlanRow, error) {
	body, err := ReadObject(ctx, s, keys.PlanPart(part), maxPartBytes)
	if err != nil {
		return nil, fmt.Errorf("plan part %d: %w", part, err)
	}
	rows, err := DecodePlanPart(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keys.PlanPart(part), err)
	}
	return rows, nil
}

// unzip decodes many parts at once and starts no goroutine.
var unzip = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPartBytes), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic(fmt.Sprintf("options are constant: %v", err))
	}
	return d
})

// DecodePlanPart reads the object of a part.
func DecodePlanPart(body []byte) ([]PlanRow, error) {
	text, err := unzip().DecodeAll(body, nil)
	if err != nil {
		return nil, fmt.Errorf("not a plan part of at most %d bytes: %w", maxPartBytes, err)
	}
	if len(text) == 0 || text[len(text)-1] != '\n' {
		return nil, fmt.Errorf("not a plan part: want one or more lines, each ended")
	}
	var rows []PlanRow
	for line := range bytes.Lines(text) {
		if len(rows) == maxPartRows {
			return nil, fmt.Errorf("more than %d rows", maxPartRows)
		}
		var row PlanRow
		if err := json.Unmarshal(line, &row); err != nil {
			return nil, fmt.Errorf("row %d: %w", len(rows), err)
		}
		if err := row.check(); err != nil {
			return nil, fmt.Errorf("row %d: %w", len(rows), err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// check keeps out of a plan what keys could not be built from.
func (r PlanRow) check() error {
	switch {
	case r.TaskID == "":
		return fmt.Errorf("plan row without a task_id")
	case r.TrialIndex < 0:
		return fmt.Errorf("plan row of task %.40q: trial_index %d is negative", r.TaskID, r.TrialIndex)
	case !isHex(r.TrialID, 32):
		return fmt.Errorf("plan row of task %.40q: trial_id %.40q, want 32 hex characters", r.TaskID, r.TrialID)
	case r.Offset < 0 || r.Length < 0:
		return fmt.Errorf("plan row of task %.40q: offset %d, length %d, want none below 0", r.TaskID, r.Offset, r.Length)
	}
	return nil
}

// isHex says whether s is n lower-case hex characters.
func isHex(s string, n int) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == n
}
