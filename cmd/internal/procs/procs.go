// SPDX-License-Identifier: Apache-2.0

// Package procs says how many goroutines of a process that runs trials may run at once.
package procs

import (
	"os"
	goruntime "runtime"
	"sync"
)

var once sync.Once

// most bounds how many more there are than processors: with many, some are free anyway.
const most = 8

// Widen lets more goroutines run at once than there are processors, unless GOMAXPROCS is
// set. Those of a worker are in the kernel most of their time: they make files, wait for the
// disk, and start programs. One that does so counts as running until Go notices, up to ten
// milliseconds later. When all do, the processors idle though others could go on (ADR 28).
//
// From then on the number no longer follows changes of a container's share of the processors.
func Widen() {
	if os.Getenv("GOMAXPROCS") == "" {
		once.Do(func() { goruntime.GOMAXPROCS(wide(goruntime.GOMAXPROCS(0))) })
	}
}

func wide(processors int) int { return processors + min(processors, most) }
