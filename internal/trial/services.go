// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/runtime"
)

// Reasons in _capture.yaml.
const (
	captureProvision = "provision_error"
	captureGraded    = "graded_failure"
	captureSuccess   = "on_success"
)

const captureTimeout = 30 * time.Second

// captureServices keeps the logs of services when the attempt failed, or always where
// the run asks for it. It comes before teardown, is best effort, and never changes the
// outcome.
func (a *attempt) captureServices(ctx context.Context, ending Ending, o bundle.Outcome) {
	reason := captureGraded
	switch {
	case ending == ProvisionFailed:
		reason = captureProvision
	case o.Status == bundle.Errored, o.Status == bundle.TimedOut, a.grade.Scored && !a.grade.BinaryPass:
	case a.Run.Run.Capture.OnSuccess:
		reason = captureSuccess
	default:
		return
	}
	if a.box != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), captureTimeout)
		defer cancel()
		ev, err := a.box.Evidence(ctx, a.Run.Run.Capture.LogTail)
		if err != nil {
			a.Log.Warn().Err(err).Msg("service logs could not be captured")
			return
		}
		a.evidence = ev
	}
	a.writeServices(reason)
}

type capture struct {
	Tail          int                       `yaml:"tail"`
	CaptureReason string                    `yaml:"capture_reason"`
	Services      map[string]captureService `yaml:"services"`
	Missing       []string                  `yaml:"missing,omitempty"`
}

type captureService struct {
	Bytes     int64 `yaml:"bytes"`
	ExitCode  *int  `yaml:"exit_code,omitempty"`
	OOMKilled bool  `yaml:"oom_killed,omitempty"`
	Restarts  int   `yaml:"restarts,omitempty"`
}

// writeServices writes services/<name>.log and services/_capture.yaml. Services with
// nothing to say have no file and no entry.
func (a *attempt) writeServices(reason string) {
	c := capture{
		Tail: a.Run.Run.Capture.LogTail, CaptureReason: reason,
		Services: map[string]captureService{}, Missing: a.evidence.Missing,
	}
	bytes := map[string]int64{}
	for _, s := range a.evidence.Services {
		if len(s.Log) == 0 {
			continue
		}
		name := serviceName(s)
		log := a.redact.Bytes(s.Log)
		if err := a.write("services/"+name+".log", log); err != nil {
			a.Log.Warn().Err(err).Str("service", name).Msg("service log could not be kept")
			continue
		}
		bytes[name] = int64(len(log))
		c.Services[name] = captureService{Bytes: int64(len(log)), ExitCode: s.ExitCode, OOMKilled: s.OOMKilled, Restarts: s.Restarts}
	}
	if len(bytes) == 0 {
		return
	}
	a.metrics.CapturedServiceLogs = bytes
	body, err := bundle.EncodeYAML(c)
	if err == nil {
		err = a.write("services/_capture.yaml", body)
	}
	if err != nil {
		a.Log.Warn().Err(err).Msg("service capture could not be recorded")
	}
}

// serviceName is what the only service of a single box is called in files.
func serviceName(s runtime.ServiceEvidence) string {
	if s.Service == "" {
		return "default"
	}
	return s.Service
}
