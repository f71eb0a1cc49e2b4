// SPDX-License-Identifier: Apache-2.0

package boxtool

import "github.com/tidemill/tidemill/runtime/docker/internal/boxtool/asm"

const (
	sigchld = 17
	sigkill = 9

	eintr  = 4
	esrch  = 3
	eagain = 11
)

// Somebody who is still there after so many rounds with a nap after each can't be
// killed by us: they are another user's, or hang in the kernel.
const (
	killRounds = 1000
	napNanos   = 2_000_000
)

// stay is what PID 1 does. A signal without a handler is nothing to PID 1, and a child
// whose death is ignored by its parent leaves no zombie; orphans become children of
// PID 1.
func stay(p *asm.Program) {
	rc, action := p.Var(), p.Area(32) // handler, flags, restorer, mask
	p.Label("init")
	p.Store(8, action, 0, asm.Num(1)) // SIG_IGN
	for off := 8; off < 32; off += 8 {
		p.Store(8, action, off, asm.Num(0))
	}
	p.Call(rc, "rt_sigaction", asm.Num(sigchld), action, asm.Num(0), asm.Num(8))
	p.If(rc, asm.LT, asm.Num(0), "init failed")

	p.Label("wait")
	p.Call(rc, "ppoll", asm.Num(0), asm.Num(0), asm.Num(0), asm.Num(0), asm.Num(0))
	p.If(rc, asm.EQ, asm.Num(-eintr), "wait")
	p.Label("init failed") // rather gone than busy for ever
	exitErrno(p, rc)
}

// kill kills in rounds until the kernel finds nobody. One round reaches whoever is
// there at one moment, forking or not; the next ones wait until the dead are reaped.
// Those of another user are found but not killed, and nothing but their staying tells
// so.
func kill(p *asm.Program) {
	rc, round, nap := p.Var(), p.Var(), p.Area(16)
	p.Label(Kill)
	p.Store(8, nap, 0, asm.Num(0))
	p.Store(8, nap, 8, asm.Num(napNanos))
	p.Set(round, asm.Num(0))

	p.Label("round")
	p.Call(rc, "kill", asm.Num(-1), asm.Num(sigkill))
	p.If(rc, asm.EQ, asm.Num(-esrch), "killed")
	p.If(rc, asm.LT, asm.Num(0), "kill refused")
	p.Add(round, round, asm.Num(1))
	p.Set(rc, asm.Num(-eagain))
	p.If(round, asm.GE, asm.Num(killRounds), "kill refused")
	p.Call(rc, "nanosleep", nap, asm.Num(0))
	p.Goto("round")

	p.Label("killed")
	exit(p, asm.Num(0))
	p.Label("kill refused")
	exitErrno(p, rc)
}
