// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

// Reasons in _capture.yaml, beside the termination reason of what went wrong.
const (
	captureGraded  = "graded_failure"
	captureSuccess = "on_success"
)

const captureTimeout = 30 * time.Second

// captureReason says why the logs of services are kept, and "" when they are not.
func (a *attempt) captureReason(o bundle.Outcome) string {
	switch {
	case o.Status == bundle.Cancelled:
		return ""
	case o.Status == bundle.Errored, o.Status == bundle.TimedOut:
		return o.TerminationReason
	case !a.grade.BinaryPass:
		return captureGraded
	case a.Run.Run.Capture.OnSuccess:
		return captureSuccess
	default:
		return ""
	}
}

// captureServices keeps the logs of services when the attempt failed, or always where
// the run asks for it. It comes before teardown, is best effort, and never changes the
// outcome.
func (a *attempt) captureServices(ctx context.Context, o bundle.Outcome) {
	reason := a.captureReason(o)
	if reason == "" {
		return
	}
	if a.box != nil {
		ctx, cancel := beyond(ctx, captureTimeout, captureTimeout)
		defer cancel()
		var err error
		if a.evidence, err = a.box.Evidence(ctx, a.Run.Run.Capture.LogTail); err != nil {
			a.Log.Warn().Err(err).Msg("service logs could not be captured")
			a.evidence.Missing = append(a.evidence.Missing, err.Error())
		}
	}
	if err := a.writeServices(reason); err != nil {
		a.Log.Warn().Err(err).Msg("capture of service logs could not be recorded")
	}
}

type capture struct {
	Tail          int                       `yaml:"tail"`
	CaptureReason string                    `yaml:"capture_reason"`
	Services      map[string]captureService `yaml:"services"`
	Missing       []string                  `yaml:"missing,omitempty"`
}

type captureService struct {
	Bytes     int64 `yaml:"bytes"`
	Truncated bool  `yaml:"truncated,omitempty"`
	ExitCode  *int  `yaml:"exit_code,omitempty"`
	OOMKilled bool  `yaml:"oom_killed,omitempty"`
	Restarts  int   `yaml:"restarts,omitempty"`
}

// writeServices writes services/<name>.log and services/_capture.yaml. A service that
// said nothing has no file; one that nothing is known of has no entry either.
func (a *attempt) writeServices(reason string) error {
	c := capture{Tail: a.Run.Run.Capture.LogTail, CaptureReason: reason, Services: map[string]captureService{}}
	for _, m := range a.evidence.Missing {
		c.Missing = append(c.Missing, a.text(m))
	}
	logs := map[string]int64{}
	for _, s := range a.evidence.Services {
		name := a.redact.String(cmp.Or(s.Service, "default")) // the only one of a single box has no name
		log, cut := tail(a.redact.Bytes(s.Log), c.Tail)
		if len(log) > 0 {
			if err := a.write("services/"+name+".log", log); err != nil {
				c.Missing = append(c.Missing, a.text(err.Error()))
				continue
			}
			logs[name] = int64(len(log))
		} else if s.ExitCode == nil && !s.OOMKilled && s.Restarts == 0 {
			continue
		}
		c.Services[name] = captureService{
			Bytes: int64(len(log)), Truncated: s.Truncated || cut, ExitCode: s.ExitCode, OOMKilled: s.OOMKilled, Restarts: s.Restarts,
		}
	}
	if len(c.Services) == 0 && len(c.Missing) == 0 {
		return nil
	}
	if len(logs) > 0 {
		a.metrics.CapturedServiceLogs = logs
	}
	return a.writeYAML("services/_capture.yaml", c)
}

// tail returns the last lines of a log; 0 is all of it. The evidence of a failed
// provisioning comes uncut.
func tail(log []byte, lines int) (_ []byte, cut bool) {
	if lines <= 0 {
		return log, false
	}
	at := len(bytes.TrimSuffix(log, []byte("\n")))
	for range lines {
		if at = bytes.LastIndexByte(log[:at], '\n'); at < 0 {
			return log, false
		}
	}
	return log[at+1:], true
}
