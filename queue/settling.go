// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// Settling is what a queue may offer beside the contract: it tells people why nothing is
// leased yet.
type Settling interface {
	// Settles returns for how long nobody is given a job yet, 0 where jobs are given out.
	// It asks nobody, and takes no time.
	Settles() time.Duration
}
