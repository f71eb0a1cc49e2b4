// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func initCode() *byte
TEXT ·initCode(SB), NOSPLIT, $0-8
	LEAQ initBody<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// initBody is the whole program of a nest's init; see initImage. It is never called
// here. The kernel starts it with argc and argv on the stack: its name, "/proc" and
// "proc". Descriptor 0 is the warden. What it needs of memory is below the stack
// pointer: no handler is ever installed that could write there.
//
//	sigaction(SIGCHLD, SIG_IGN)        so the kernel reaps orphans
//	answer = mount proc on /proc
//	for {
//		write(0, answer)
//		if read(0, request) != 4 { exit }   the warden is gone
//		if request == 256 {
//			answer = wait4 until there is no child left
//		} else {
//			answer = kill(-1, request)      everybody but itself, in one step
//		}
//	}
TEXT initBody<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ SP, BX

	MOVQ $1, -64(BX)  // SIG_IGN
	MOVQ $0, -56(BX)
	MOVQ $0, -48(BX)
	MOVQ $0, -40(BX)
	MOVL $13, AX      // rt_sigaction
	MOVL $17, DI      // SIGCHLD
	LEAQ -64(BX), SI
	XORL DX, DX
	MOVL $8, R10
	SYSCALL

	MOVL $165, AX     // mount
	MOVQ 24(BX), DI   // "proc"
	MOVQ 16(BX), SI   // "/proc"
	MOVQ 24(BX), DX
	MOVL $15, R10     // read-only, nosuid, nodev, noexec
	XORL R8, R8
	SYSCALL

answer:
	MOVL AX, -8(BX)
	MOVL $1, AX       // write
	XORL DI, DI
	LEAQ -8(BX), SI
	MOVL $4, DX
	SYSCALL

	XORL AX, AX       // read
	XORL DI, DI
	LEAQ -8(BX), SI
	MOVL $4, DX
	SYSCALL
	CMPQ AX, $4
	JNE  quit

	MOVL -8(BX), SI
	CMPL SI, $256
	JEQ  drain
	MOVL $62, AX      // kill
	MOVQ $-1, DI
	SYSCALL
	JMP  answer

drain:
	MOVL $61, AX      // wait4
	MOVQ $-1, DI
	XORL SI, SI
	MOVL $0x40000000, DX // __WALL
	XORL R10, R10
	SYSCALL
	CMPQ AX, $-10     // ECHILD
	JNE  drain
	JMP  answer

quit:
	MOVL $231, AX     // exit_group
	XORL DI, DI
	SYSCALL
	UNDEF

	// So that initSize bytes are all of this function.
	PCALIGN $64
	UNDEF
	PCALIGN $64
	UNDEF
	PCALIGN $64
	UNDEF
	PCALIGN $64
	UNDEF
