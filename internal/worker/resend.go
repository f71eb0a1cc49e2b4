// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/tidemill/tidemill/bundle"
)

// Bundles that earlier processes could not store are tried again, one after another, until
// they are stored or given up. None is ever removed without being in the store: it is the
// only copy, and what to do with one that can't be stored is for people to say.
const (
	resendShort = 30 * time.Second
	resendLong  = 30 * time.Minute
	// resendTries and resendAge bound how often, and for how long, one is tried.
	resendTries = 100
	resendAge   = 14 * 24 * time.Hour
	// sendTimeout bounds one try.
	sendTimeout = time.Hour
)

// sendUnsent tries until there is nothing to try any more, or ctx ends.
func (w *Worker) sendUnsent(ctx context.Context) {
	names, err := w.listUnsent()
	if err != nil {
		w.Log.Error().Err(err).Msg("bundles that are kept here only can't be listed")
		return
	}
	w.forgetSent(names)
	var list []unsent
	for _, name := range names {
		log := w.Log.With().Str("bundle", name).Logger()
		u, err := w.readUnsent(name)
		switch {
		case err != nil:
			log.Warn().Err(err).Msg("bundle is kept here only, and where it belongs can't be read")
		case u.Store != w.StoreUUID:
			log.Warn().Str("store_uuid", u.Store).Msg("bundle is kept here only, and belongs to another store")
		case u.GivenUp != "":
			log.Warn().Str("why", u.GivenUp).Msg("bundle is kept here only, and is tried no more")
		default:
			list = append(list, u)
		}
	}
	for round := 0; len(list) > 0; round++ {
		if round > 0 {
			rest(ctx, jitter(min(resendShort<<min(round, 10), resendLong)))
		}
		var again []unsent
		for _, u := range list {
			if ctx.Err() != nil {
				return
			}
			if !w.resend(ctx, &u) {
				again = append(again, u)
			}
		}
		list = again
	}
}

// forgetSent removes notes whose bundles are in the store: the process that sent them ended
// in between.
func (w *Worker) forgetSent(names []string) {
	notes, _ := filepath.Glob(filepath.Join(w.unsentDir(), "*"+unsentSuffix+"*"))
	for _, note := range notes {
		if name, _, _ := strings.Cut(filepath.Base(note), unsentSuffix); !slices.Contains(names, name) {
			_ = os.Remove(note)
		}
	}
}

// resend tries one bundle, and reports whether there is nothing more to try of it.
func (w *Worker) resend(ctx context.Context, u *unsent) bool {
	log := w.Log.With().Str("bundle", u.name).Str("run_id", u.Run).Logger()
	trying, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := w.send(trying, *u)
	switch {
	case err == nil:
		log.Info().Msg("bundle that was kept here only is in the store now")
		return true
	case ctx.Err() != nil:
		return false // the worker stops; that is no try
	}
	u.Tries++
	u.Why = err.Error()
	passing := errors.Is(err, bundle.ErrUnavailable) || errors.Is(err, bundle.ErrNoSpace) || noRoom(err) || trying.Err() != nil
	switch {
	case !passing:
		u.GivenUp = "trying again makes no difference: " + err.Error()
	case u.Tries >= resendTries || time.Since(u.At) > resendAge:
		u.GivenUp = "it was tried long enough: " + err.Error()
	}
	level := zerolog.WarnLevel
	if u.GivenUp != "" {
		level = zerolog.ErrorLevel
	}
	log.WithLevel(level).Err(err).Int("tries", u.Tries).Bool("given_up", u.GivenUp != "").Msg("bundle is still kept here only")
	if err := w.noteUnsent(*u); err != nil {
		log.Error().Err(err).Msg("how often the bundle was tried could not be written down")
	}
	return u.GivenUp != ""
}

// rest waits for a time, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
