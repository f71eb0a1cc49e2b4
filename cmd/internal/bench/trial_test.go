// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
	"time"
)

var slotCounts = []int{1, 4, 16}

// BenchmarkTrial is the whole path: lease, claim, sandbox, two children, bundle, commit,
// ack.
func BenchmarkTrial(b *testing.B) {
	for _, iso := range isolations {
		for _, slots := range slotCounts {
			b.Run(fmt.Sprintf("path=tidemill/isolation=%s/slots=%d", iso.name, slots), func(b *testing.B) {
				r := newRig(b)
				r.submit(b, r.runFile(b, b.N, iso))
				b.ResetTimer()
				start := time.Now()
				r.work(b, b.N, slots)
				b.StopTimer()
				b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "trials/s")
			})
		}
	}
}
