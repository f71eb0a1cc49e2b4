// SPDX-License-Identifier: Apache-2.0

package asm

import (
	"encoding/binary"
	"fmt"
)

// arm64 has the frame in X29. Work and other are the first two arguments as well,
// which is no conflict: arguments are fetched one after the other, each with its own
// register only.
type arm64 struct{}

var arm64Regs = [...]uint32{work: 0, other: 1, call: 8, arg0: 0, 1, 2, 3, 4, 5}

const x29 = 29

// words are instructions in the order of memory.
func words(ws ...uint32) []byte {
	var b []byte
	for _, w := range ws {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// moves is X[rd] = n in one to four instructions.
func moves(rd uint32, n int64) []byte {
	first, skip := uint32(0xd2800000), uint16(0) // MOVZ: the rest is zeros
	if n < 0 {
		first, skip = 0x92800000, 0xffff // MOVN: the rest is ones
	}
	low := uint16(n) ^ skip
	ws := []uint32{first | uint32(low)<<5 | rd}
	for i := uint32(1); i < 4; i++ {
		if part := uint16(n >> (16 * i)); part != skip {
			ws = append(ws, 0xf2800000|i<<21|uint32(part)<<5|rd) // MOVK
		}
	}
	return words(ws...)
}

func (arm64) begin(size int) []byte {
	const x9 = 9
	return append(moves(x9, int64(size)), words(
		0xcb2063ff|x9<<16, // SUB SP, SP, X9
		0x910003e0|x29,    // MOV X29, SP
	)...)
}

func (arm64) number(r reg, n int64) []byte { return moves(arm64Regs[r], n) }

func (arm64) frame(r reg, off int) []byte {
	rd := arm64Regs[r]
	return append(moves(rd, int64(off)), words(0x8b000000|rd<<16|x29<<5|rd)...) // ADD Xd, X29, Xd
}

func (arm64) get(r reg, off int) []byte { // LDR Xt, [X29, #off]
	return words(0xf9400000 | uint32(off/8)<<10 | x29<<5 | arm64Regs[r])
}

func (arm64) put(off int, r reg) []byte { // STR Xt, [X29, #off]
	return words(0xf9000000 | uint32(off/8)<<10 | x29<<5 | arm64Regs[r])
}

func (arm64) calc(op calculation) []byte {
	return words(map[calculation]uint32{
		add: 0x8b010000, // ADD X0, X0, X1
		sub: 0xcb010000, // SUB X0, X0, X1
		and: 0x8a010000, // AND X0, X0, X1
		or:  0xaa010000, // ORR X0, X0, X1
		shl: 0x9ac12000, // LSL X0, X0, X1
		shr: 0x9ac12400, // LSR X0, X0, X1
	}[op])
}

func (arm64) load(bytes int) []byte {
	return words(map[int]uint32{
		1: 0x39400000, // LDRB W0, [X0]
		2: 0x79400000, // LDRH W0, [X0]
		4: 0xb9400000, // LDR W0, [X0]
		8: 0xf9400000, // LDR X0, [X0]
	}[bytes])
}

func (arm64) store(bytes int) []byte {
	return words(map[int]uint32{
		1: 0x39000001, // STRB W1, [X0]
		2: 0x79000001, // STRH W1, [X0]
		4: 0xb9000001, // STR W1, [X0]
		8: 0xf9000001, // STR X1, [X0]
	}[bytes])
}

func (arm64) syscall() []byte { return words(0xd4000001) } // SVC #0

func (arm64) compare() []byte { return words(0xeb01001f) } // CMP X0, X1

func (arm64) jump(c Condition) []byte {
	if c == always {
		return words(0x14000000) // B
	}
	return words(0x54000000 | map[Condition]uint32{EQ: 0, NE: 1, LT: 11, GE: 10}[c]) // B.c
}

func (arm64) text(r reg) []byte { return words(0x10000000 | arm64Regs[r]) } // ADR

// link fills in the distance from the instruction itself. Which field has it depends
// on the instruction.
func (arm64) link(code []byte, from, _, target int) error {
	distance := target - from
	if distance < -1<<20 || distance >= 1<<20 {
		return fmt.Errorf("%d bytes away: at most 1 MiB", distance)
	}
	w := binary.LittleEndian.Uint32(code[from:])
	d := uint32(int32(distance))
	switch w >> 24 {
	case 0x14: // B: words, 26 bits
		w |= d >> 2 & (1<<26 - 1)
	case 0x54: // B.c: words, 19 bits
		w |= d >> 2 & (1<<19 - 1) << 5
	default: // ADR: bytes, the two lowest bits apart
		w |= d&3<<29 | d>>2&(1<<19-1)<<5
	}
	binary.LittleEndian.PutUint32(code[from:], w)
	return nil
}
