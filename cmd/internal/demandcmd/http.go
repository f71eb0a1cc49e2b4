// SPDX-License-Identifier: Apache-2.0

package demandcmd

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/queue"
)

const (
	// answerAge is how old an answer may be: several scalers may ask, and each look costs
	// the queue a listing.
	answerAge = 2 * time.Second
	// lookTimeout bounds one look. Scalers wait a few seconds at most.
	lookTimeout = 5 * time.Second
)

// answers tells the demand over HTTP.
type answers struct {
	look func(context.Context) (report, error)

	mu   sync.Mutex // held while it looks: one look at a time
	at   time.Time
	last report
	err  error
}

func (a *answers) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", a.told("application/json", func(w *bytes.Buffer, r report) error { return app.PrintJSON(w, r) }))
	mux.HandleFunc("GET /metrics", a.told("text/plain; version=0.0.4; charset=utf-8", func(w *bytes.Buffer, r report) error { return r.metrics(w) }))
	return mux
}

func (a *answers) told(kind string, write func(*bytes.Buffer, report) error) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		r, err := a.now(context.WithoutCancel(req.Context())) // who asks may go away; the answer is for the next one too
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		var body bytes.Buffer
		query := req.URL.Query()
		if err := write(&body, r.part(query.Get("pool"), queue.Class(query.Get("class")))); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body.Bytes()) // who asked is gone then
	}
}

func (a *answers) now(ctx context.Context) (report, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.at.IsZero() && time.Since(a.at) < answerAge {
		return a.last, a.err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	a.last, a.err = a.look(ctx)
	a.at = time.Now()
	return a.last, a.err
}
