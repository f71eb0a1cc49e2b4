// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

// unsent says of a bundle that the store did not take where it belongs. It stands beside
// the bundle's directory, in a file of the same name with .json behind it.
type unsent struct {
	Store      string    `json:"store_uuid"`
	Run        string    `json:"run_id"`
	TaskID     string    `json:"task_id"`
	TrialIndex int       `json:"trial_index"`
	TrialID    string    `json:"trial_id"`
	Attempt    int       `json:"attempt"`
	At         time.Time `json:"at"`
	Why        string    `json:"why"`
	// Tries are those since then, by workers that found it when they began.
	Tries int `json:"tries"`
	// GivenUp says why nobody tries any more.
	GivenUp string `json:"given_up,omitempty"`

	name string // of the directory
}

var errPanicked = errors.New("the worker panicked")

const unsentSuffix = ".json"

// keepUnsent moves the attempt's bundle out of the spool, if it is still there.
func (wk *work) keepUnsent(why error) {
	u := unsent{
		Store: wk.w.StoreUUID, Run: wk.keys.Run, TaskID: wk.row.TaskID, TrialIndex: wk.row.TrialIndex,
		TrialID: wk.row.TrialID, Attempt: wk.claim.Attempt, At: time.Now().UTC(), Why: why.Error(), name: wk.bundleName(),
	}
	kept := filepath.Join(wk.w.unsentDir(), u.name)
	switch err := os.Rename(wk.dir, kept); {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		wk.log.Error().Err(err).Msg("bundle could not be kept")
		return
	}
	wk.log.Error().Str("dir", kept).Msg("bundle is kept here only; the next worker in this directory tries again")
	if err := wk.w.noteUnsent(u); err != nil {
		wk.log.Error().Err(err).Msg("where the bundle belongs could not be written down")
	}
}

func (w *Worker) noteUnsent(u unsent) error {
	body, err := json.MarshalIndent(u, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(w.unsentDir(), u.name+unsentSuffix)
	if err := os.WriteFile(path+".new", append(body, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// listUnsent returns the names of the bundles that are kept here only.
func (w *Worker) listUnsent() (names []string, err error) {
	entries, err := os.ReadDir(w.unsentDir())
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// readUnsent returns what is known of a bundle.
func (w *Worker) readUnsent(name string) (u unsent, err error) {
	body, err := os.ReadFile(filepath.Join(w.unsentDir(), name+unsentSuffix))
	if err == nil {
		err = json.Unmarshal(body, &u)
	}
	if err == nil && (u.TrialID == "" || u.Run == "" || !strings.HasPrefix(name, u.TrialID+".")) {
		err = fmt.Errorf("it is about trial %q of run %q", u.TrialID, u.Run)
	}
	u.name = name
	return u, err
}

// send uploads a bundle that was sealed. It changes nothing about its trial: which attempt
// counts was decided without it.
func (w *Worker) send(ctx context.Context, u unsent) error {
	dir := filepath.Join(w.unsentDir(), u.name)
	body, err := os.ReadFile(filepath.Join(dir, bundle.IndexName))
	if err != nil {
		return fmt.Errorf("it was never sealed: %w", err)
	}
	ix, err := bundle.ParseIndex(body)
	if err != nil {
		return fmt.Errorf("%s: %w", bundle.IndexName, err)
	}
	sealed := bundle.Sealed{Dir: dir, IndexSHA256: ix.SHA256, Files: ix.Files}
	prefix := bundle.Keys{Run: u.Run}.AttemptFiles(u.TaskID, u.TrialIndex, u.Attempt)
	if err := bundle.Upload(ctx, w.Store, prefix, sealed, w.UploadParallel); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("it is in the store, and can't be removed here: %w", err)
	}
	return os.Remove(filepath.Join(w.unsentDir(), u.name+unsentSuffix))
}
