// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"time"
)

// setDefaults fills in what the file left out. What it gave, even a zero, stays for
// the checks.
func (r *Run) setDefaults(d *decoder) {
	fill(d, "repeats", &r.Repeats, 1)
	fill(d, "grade.pass_threshold", &r.Grade.PassThreshold, 1.0)
	fill(d, "runtime.timeout", &r.Runtime.Timeout, Duration(10*time.Minute))
	fill(d, "retry.max_attempts", &r.Retry.MaxAttempts, 3)
	fill(d, "retry.min_backoff", &r.Retry.MinBackoff, Duration(time.Second))
	fill(d, "retry.max_backoff", &r.Retry.MaxBackoff, max(r.Retry.MinBackoff, Duration(5*time.Minute)))
	if !d.given("retry.on") {
		r.Retry.On = []string{"infra", "provider"}
	}
	fill(d, "capture.log_tail", &r.Capture.LogTail, 500)
	fill(d, "capture.max_artifact_bytes", &r.Capture.MaxArtifactBytes, 100<<20)
	fill(d, "capture.max_artifacts", &r.Capture.MaxArtifacts, 1000)
	fill(d, "capture.max_log_bytes", &r.Capture.MaxLogBytes, 10<<20)
	r.Pool = cmp.Or(r.Pool, "default")
	r.Priority = cmp.Or(r.Priority, "normal")
}

func fill[T any](d *decoder, entry string, p *T, value T) {
	if !d.given(entry) {
		*p = value
	}
}
