// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/internal/worker"
)

// Attempt is what the owner says of an attempt.
type Attempt struct {
	Run        string `json:"run_id"`
	TaskID     string `json:"task_id"`
	TrialIndex int    `json:"trial_index"`
	TrialID    string `json:"trial_id"`
	Attempt    int    `json:"attempt"`
}

// Logs are the names of the logs that can be followed.
var Logs = []string{"agent", "grader"}

// LogFile is the name of a log in a bundle.
func LogFile(name string) string { return "logs/" + name + ".log" }

// Server shows attempts to clients.
type Server struct {
	// Find returns the attempt of a trial that runs now, nil when none does.
	Find func(trialID string) *worker.Attempt

	commands sync.WaitGroup
}

// Routes are what the server answers.
func (s *Server) Routes() []local.Route {
	return []local.Route{
		{Pattern: "GET /v1/attempts/{trial}", Handler: s.on(s.describe)},
		{Pattern: "GET /v1/attempts/{trial}/logs/{name}", Handler: s.on(s.log)},
		{Pattern: "GET /v1/attempts/{trial}/exec", Handler: s.on(s.exec)},
	}
}

// Wait returns when no command of a client runs any more. They end with their sandboxes.
func (s *Server) Wait() { s.commands.Wait() }

func (s *Server) on(answer func(http.ResponseWriter, *http.Request, *worker.Attempt)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := s.Find(r.PathValue("trial"))
		if a == nil {
			http.Error(w, "the trial doesn't run here now", http.StatusNotFound)
			return
		}
		answer(w, r, a)
	})
}

func (s *Server) describe(w http.ResponseWriter, _ *http.Request, a *worker.Attempt) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Attempt{
		Run: a.Run, TaskID: a.TaskID, TrialIndex: a.TrialIndex, TrialID: a.TrialID, Attempt: a.Number,
	}) // the client went away
}

// log sends a log as it is now, or as it grows until the attempt ends.
func (s *Server) log(w http.ResponseWriter, r *http.Request, a *worker.Attempt) {
	name := r.PathValue("name")
	if !slices.Contains(Logs, name) {
		http.Error(w, fmt.Sprintf("no log %q; there are %s", name, strings.Join(Logs, ", ")), http.StatusBadRequest)
		return
	}
	tail := a.Tail(LogFile(name))
	defer tail.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	out := http.NewResponseController(w)
	follow := r.URL.Query().Get("follow") != ""
	for {
		if _, err := io.Copy(w, tail); err != nil {
			return // the client went away, or notices that the log ends early
		}
		if !follow || out.Flush() != nil || !tail.More(r.Context()) {
			return
		}
	}
}
