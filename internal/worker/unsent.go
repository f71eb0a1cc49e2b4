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

const (
	unsentSuffix = ".json"
	newSuffix    = ".new" // behind it, while it is being written
)

func (wk *work) unsent(why string) unsent {
	return unsent{
		Store: wk.w.StoreUUID, Run: wk.keys.Run, TaskID: wk.row.TaskID, TrialIndex: wk.row.TrialIndex,
		TrialID: wk.row.TrialID, Attempt: wk.claim.Attempt, At: time.Now().UTC(), Why: why, name: wk.bundleName(),
	}
}

// whyUnknown is in the note of a bundle that is kept because there was no room for more.
const whyUnknown = "it could not be written down why, for want of room as a rule"

// noteAhead writes where the attempt's bundle belongs before there is one: later there may
// be no room for that.
func (wk *work) noteAhead() error {
	body, err := wk.unsent(whyUnknown).encode()
	if err == nil {
		wk.note, err = wk.w.notes.write(body)
	}
	return err
}

func (wk *work) dropNote() {
	wk.w.notes.drop(wk.note)
	wk.note = nil
}

// keepUnsent moves the attempt's bundle out of the spool, if it is still there. Its note
// goes first: a note without a bundle is nothing, a bundle without a note goes nowhere.
func (wk *work) keepUnsent(why error) {
	u := wk.unsent(why.Error())
	kept := filepath.Join(wk.w.unsentDir(), u.name)
	if _, err := os.Stat(wk.dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	noted := wk.w.notes.move(wk.note, kept+unsentSuffix)
	wk.note = nil
	if err := os.Rename(wk.dir, kept); err != nil {
		wk.log.Error().Err(err).Msg("bundle could not be kept")
		return
	}
	wk.log.Error().Str("dir", kept).Msg("bundle is kept here only; the next worker in this directory tries again")
	if err := wk.w.noteUnsent(u); err != nil && noted != nil {
		wk.log.Error().Err(errors.Join(noted, err)).Msg("where the bundle belongs could not be written down")
	}
}

func (u unsent) encode() ([]byte, error) {
	body, err := json.MarshalIndent(u, "", "  ")
	return append(body, '\n'), err
}

// noteUnsent replaces the note of a bundle that is kept, or leaves the one that is there.
func (w *Worker) noteUnsent(u unsent) error {
	body, err := u.encode()
	if err != nil {
		return err
	}
	path := filepath.Join(w.unsentDir(), u.name+unsentSuffix)
	err = os.WriteFile(path+newSuffix, body, 0o600)
	if err == nil {
		err = os.Rename(path+newSuffix, path)
	}
	if err != nil {
		_ = os.Remove(path + newSuffix)
	}
	return err
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
	if err == nil && (u.TrialID == "" || u.Run == "" || name != nameOf(u.TrialID, u.Attempt)) {
		err = fmt.Errorf("it is about attempt %d of trial %q of run %q", u.Attempt, u.TrialID, u.Run)
	}
	u.name = name
	return u, err
}

// send uploads a bundle. It changes nothing about its trial: which attempt counts was
// decided without it.
func (w *Worker) send(ctx context.Context, u unsent) error {
	dir := filepath.Join(w.unsentDir(), u.name)
	ix, err := readIndex(dir)
	if err != nil {
		return err
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
