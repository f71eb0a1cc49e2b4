// SPDX-License-Identifier: Apache-2.0

package asm

import (
	"encoding/binary"
	"fmt"
	"math"
)

// amd64 has the frame in RBP. The kernel overwrites RCX at a system call, which holds
// nothing then.
type amd64 struct{}

// Numbers of registers, as instructions have them.
const (
	rax = 0
	rcx = 1
	rdx = 2
	rsi = 6
	rdi = 7
	r8  = 8
	r9  = 9
	r10 = 10
)

var amd64Regs = [...]byte{work: rax, other: rcx, call: rax, arg0: rdi, rsi, rdx, r10, r8, r9}

// rex is the prefix for 64 bits with a register in the middle field of the next bytes.
func rex(n byte) byte { return 0x48 | n>>3<<2 }

// rbpDisp is the operand [RBP+disp32] beside a register.
func rbpDisp(n byte, disp int) []byte {
	return binary.LittleEndian.AppendUint32([]byte{0x85 | n&7<<3}, uint32(int32(disp)))
}

func (amd64) begin(size int) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{0x48, 0x81, 0xec}, uint32(size)) // SUB RSP, size
	return append(b, 0x48, 0x89, 0xe5)                                            // MOV RBP, RSP
}

func (amd64) number(r reg, n int64) []byte {
	at := amd64Regs[r]
	switch high := at >> 3; {
	case n >= 0 && n <= math.MaxUint32: // MOV r32, n: clears the upper half
		b := []byte{0xb8 | at&7}
		if high != 0 {
			b = []byte{0x41, 0xb8 | at&7}
		}
		return binary.LittleEndian.AppendUint32(b, uint32(n))
	case n < 0 && n >= math.MinInt32: // MOV r64, n with sign
		return binary.LittleEndian.AppendUint32([]byte{0x48 | high, 0xc7, 0xc0 | at&7}, uint32(n))
	default: // MOV r64, n
		return binary.LittleEndian.AppendUint64([]byte{0x48 | high, 0xb8 | at&7}, uint64(n))
	}
}

func (amd64) frame(r reg, off int) []byte { // LEA r, [RBP+off]
	return append([]byte{rex(amd64Regs[r]), 0x8d}, rbpDisp(amd64Regs[r], off)...)
}

func (amd64) get(r reg, off int) []byte { // MOV r, [RBP+off]
	return append([]byte{rex(amd64Regs[r]), 0x8b}, rbpDisp(amd64Regs[r], off)...)
}

func (amd64) put(off int, r reg) []byte { // MOV [RBP+off], r
	return append([]byte{rex(amd64Regs[r]), 0x89}, rbpDisp(amd64Regs[r], off)...)
}

func (amd64) calc(op calculation) []byte {
	return map[calculation][]byte{
		add: {0x48, 0x01, 0xc8}, // ADD RAX, RCX
		sub: {0x48, 0x29, 0xc8}, // SUB RAX, RCX
		and: {0x48, 0x21, 0xc8}, // AND RAX, RCX
		or:  {0x48, 0x09, 0xc8}, // OR RAX, RCX
		shl: {0x48, 0xd3, 0xe0}, // SHL RAX, CL
		shr: {0x48, 0xd3, 0xe8}, // SHR RAX, CL
	}[op]
}

func (amd64) load(bytes int) []byte {
	return map[int][]byte{
		1: {0x0f, 0xb6, 0x00}, // MOVZX EAX, byte [RAX]
		2: {0x0f, 0xb7, 0x00}, // MOVZX EAX, word [RAX]
		4: {0x8b, 0x00},       // MOV EAX, [RAX]
		8: {0x48, 0x8b, 0x00}, // MOV RAX, [RAX]
	}[bytes]
}

func (amd64) store(bytes int) []byte {
	return map[int][]byte{
		1: {0x88, 0x08},       // MOV [RAX], CL
		2: {0x66, 0x89, 0x08}, // MOV [RAX], CX
		4: {0x89, 0x08},       // MOV [RAX], ECX
		8: {0x48, 0x89, 0x08}, // MOV [RAX], RCX
	}[bytes]
}

func (amd64) syscall() []byte { return []byte{0x0f, 0x05} }

func (amd64) compare() []byte { return []byte{0x48, 0x39, 0xc8} } // CMP RAX, RCX

func (amd64) jump(c Condition) []byte {
	if c == always {
		return []byte{0xe9, 0, 0, 0, 0} // JMP
	}
	jcc := map[Condition]byte{EQ: 0x84, NE: 0x85, LT: 0x8c, GE: 0x8d}[c]
	return []byte{0x0f, jcc, 0, 0, 0, 0}
}

func (amd64) text(r reg) []byte { // LEA r, [RIP+…]
	return []byte{rex(amd64Regs[r]), 0x8d, 0x05 | amd64Regs[r]&7<<3, 0, 0, 0, 0}
}

// link fills in the distance from the end of the instruction, its last four bytes.
func (amd64) link(code []byte, _, to, target int) error {
	distance := target - to
	if distance != int(int32(distance)) {
		return fmt.Errorf("%d bytes away: at most 2 GiB", distance)
	}
	binary.LittleEndian.PutUint32(code[to-4:], uint32(int32(distance)))
	return nil
}
