// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Epochs is the current epoch of each trial that was put back; all others are in their
// first. It is kept in memory whole, about 100 bytes for each trial that was put back.
type Epochs map[string]int

// Of returns the current epoch of a trial.
func (e Epochs) Of(trial string) int { return max(1, e[trial]) }

// CurrentEpochs takes the epochs out of decisions of kind retry and regrade, as
// [ReadControl] returns them.
func CurrentEpochs(records []Control) (Epochs, error) {
	epochs := Epochs{}
	for _, c := range records {
		listed := c.Epochs
		if listed == nil && reopens(c) {
			var err error
			if listed, err = inlineEpochs(c); err != nil {
				return nil, fmt.Errorf("control record %d: %w", c.Rev, err)
			}
		}
		for trial, n := range listed {
			epochs[trial] = max(epochs[trial], n)
		}
	}
	return epochs, nil
}

// OpenedBy returns the decision that says what an epoch of a trial is for: the newest
// that names both. It is nil where nobody decided it, as for every first epoch.
func OpenedBy(records []Control, trial string, epoch int) *Control {
	for i := len(records) - 1; i >= 0; i-- {
		if reopens(records[i]) && records[i].Epochs[trial] == epoch {
			return &records[i]
		}
	}
	return nil
}

func reopens(c Control) bool { return c.Kind == ControlRetry || c.Kind == ControlRegrade }

// Where a record has its epochs: as {trial id: epoch} in itself, or as the sha256 that
// [Keys.ControlEpochs] makes a key of.
const (
	argEpochs       = "epochs"
	argEpochsSHA256 = "epochs_sha256"
)

// maxInlineEpochs is up to how many trials a record names itself.
const maxInlineEpochs = 1000

// maxEpochs is how many trials a list may name: as many as fit into memory with ease.
const maxEpochs = 50_000_000

type epochLine struct {
	TrialID string `json:"trial_id"`
	Epoch   int    `json:"epoch"`
}

func (l epochLine) check() error {
	switch {
	case l.TrialID == "":
		return errors.New("an epoch without a trial_id")
	case l.Epoch < 2 || l.Epoch > 1<<30:
		return fmt.Errorf("epoch of trial %.40q: %d, want a whole number from 2", l.TrialID, l.Epoch)
	}
	return nil
}

// readEpochs finds the epochs of a record, nil for one of another kind.
func readEpochs(ctx context.Context, s Store, keys Keys, c Control) (Epochs, error) {
	if !reopens(c) {
		return nil, nil
	}
	sum, apart := c.Args[argEpochsSHA256].(string)
	if !apart {
		return inlineEpochs(c)
	}
	if !isHex(sum, 64) {
		return nil, fmt.Errorf("args.%s is %.80q, want a sha256", argEpochsSHA256, sum)
	}
	key := keys.ControlEpochs(sum)
	epochs, err := readEpochsObject(ctx, s, key, sum)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return epochs, nil
}

func inlineEpochs(c Control) (Epochs, error) {
	listed, ok := c.Args[argEpochs].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s without args.%s, an object of trial id → epoch", c.Kind, argEpochs)
	}
	epochs := make(Epochs, len(listed))
	for trial, value := range listed {
		n, ok := value.(float64)
		if !ok || n < 2 || n > 1<<30 || n != float64(int(n)) {
			return nil, fmt.Errorf("args.%s of trial %.40q: %v, want a whole number from 2", argEpochs, trial, value)
		}
		epochs[trial] = int(n)
	}
	return epochs, nil
}

// readEpochsObject reads a list and makes sure that it is the one that was meant.
func readEpochsObject(ctx context.Context, s Store, key, sum string) (Epochs, error) {
	r, _, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(32<<20), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	hash := sha256.New()
	lines := bufio.NewScanner(io.TeeReader(z, hash))
	epochs := Epochs{}
	for lines.Scan() {
		var l epochLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, err
		}
		if err := l.check(); err != nil {
			return nil, err
		}
		if len(epochs) == maxEpochs {
			return nil, fmt.Errorf("more than %d trials", maxEpochs)
		}
		epochs[l.TrialID] = l.Epoch
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return nil, fmt.Errorf("its text has sha256 %s, want that of its name", got)
	}
	return epochs, nil
}

// writeEpochs returns the args of a record with its epochs in them. A long list is
// written first, under a name that its content gives it: doing it again, or having died
// before the record was there, costs nothing.
func writeEpochs(ctx context.Context, s Store, keys Keys, c Control) (map[string]any, error) {
	args := maps.Clone(c.Args)
	if args == nil {
		args = map[string]any{}
	}
	for trial, n := range c.Epochs {
		if err := (epochLine{trial, n}).check(); err != nil {
			return nil, fmt.Errorf("control record: %w", err)
		}
	}
	if len(c.Epochs) <= maxInlineEpochs {
		inline := make(map[string]any, len(c.Epochs))
		for trial, n := range c.Epochs {
			inline[trial] = float64(n) // as it is read again
		}
		args[argEpochs] = inline
		return args, nil
	}
	body, sum, err := encodeEpochs(c.Epochs)
	if err != nil {
		return nil, err
	}
	if _, err := s.Create(ctx, keys.ControlEpochs(sum), body); err != nil && !errors.Is(err, ErrExists) {
		return nil, fmt.Errorf("list of %d trials: %w", len(c.Epochs), err)
	}
	args[argEpochsSHA256] = sum
	return args, nil
}

func encodeEpochs(epochs Epochs) (body []byte, sum string, err error) {
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, "", err
	}
	hash := sha256.New()
	lines := json.NewEncoder(io.MultiWriter(z, hash))
	for _, trial := range slices.Sorted(maps.Keys(epochs)) {
		if err := lines.Encode(epochLine{trial, epochs[trial]}); err != nil {
			return nil, "", errors.Join(err, z.Close())
		}
	}
	if err := z.Close(); err != nil {
		return nil, "", err
	}
	return out.Bytes(), hex.EncodeToString(hash.Sum(nil)), nil
}
