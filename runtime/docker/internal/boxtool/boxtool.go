// SPDX-License-Identifier: Apache-2.0

package boxtool

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool/asm"
)

// The modes, for the place after the tool's own path. Without any it is PID 1.
const (
	Kill   = "kill"
	Remove = "remove"
	Listen = "listen"
	Probe  = "probe"
)

// Usage is the exit code for arguments that the tool does not take. No errno is as
// large.
const Usage = 200

// ELF returns the executable for an architecture by its Go name, "amd64" or "arm64".
// It is the same bytes every time.
func ELF(arch string) ([]byte, error) {
	code, err := program().Assemble(arch)
	if err != nil {
		return nil, fmt.Errorf("make the tool for the box: %w", err)
	}
	return image(arch, code), nil
}

// image wraps code into an executable of one segment, which begins with the header
// itself, and is aligned for pages of up to 64 KiB. A second program header asks for a
// stack that can't be executed.
func image(arch string, code []byte) []byte {
	const (
		base    = 0x400000
		align   = 0x10000
		ehdr    = 64
		phdr    = 56
		headers = ehdr + 2*phdr
		load    = 1
		stack   = 0x6474e551
		execute = 1
		write   = 2
		read    = 4
	)
	machine := map[string]uint16{"amd64": 62, "arm64": 183}[arch]
	size := uint64(headers + len(code))
	le := binary.LittleEndian
	b := []byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	b = le.AppendUint16(b, 2) // an executable
	b = le.AppendUint16(b, machine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, base+headers) // where it starts
	b = le.AppendUint64(b, ehdr)         // the program headers follow
	b = le.AppendUint64(b, 0)            // no sections
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{ehdr, phdr, 2, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, load)
	b = le.AppendUint32(b, read|execute)
	for _, v := range []uint64{0, base, base, size, size, align} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, stack)
	b = le.AppendUint32(b, read|write)
	for _, v := range []uint64{0, 0, 0, 0, 0, 16} {
		b = le.AppendUint64(b, v)
	}
	return append(b, code...)
}

// program is the whole tool.
func program() *asm.Program {
	p := &asm.Program{}
	argc, argv, mode := p.Var(), p.Var(), p.Var()
	p.Load(argc, 8, asm.Entry{}, 0)
	p.Add(argv, asm.Entry{}, asm.Num(8))
	p.If(argc, asm.LT, asm.Num(2), "init")
	p.Load(mode, 8, argv, 8)
	for _, name := range []string{Kill, Remove, Listen, Probe} {
		goIfEqual(p, mode, name, name)
	}
	p.Label("usage")
	exit(p, asm.Num(Usage))

	stay(p)
	kill(p)
	remove(p, argc, argv)
	sockets(p, argc, argv)
	return p
}

// goIfEqual goes to the label when the text at the address in at is the name.
func goIfEqual(p *asm.Program, at asm.Var, name, label string) {
	c, differs := p.Var(), "not "+name
	for i := range len(name) + 1 {
		want := asm.Num(0) // the end
		if i < len(name) {
			want = asm.Num(name[i])
		}
		p.Load(c, 1, at, i)
		p.If(c, asm.NE, want, differs)
	}
	p.Goto(label)
	p.Label(differs)
}

func exit(p *asm.Program, code asm.Operand) { p.Call(p.Var(), "exit_group", code) }

// exitErrno ends the tool with the errno in the result of a system call.
func exitErrno(p *asm.Program, result asm.Var) {
	code := p.Var()
	p.Sub(code, asm.Num(0), result)
	exit(p, code)
}
