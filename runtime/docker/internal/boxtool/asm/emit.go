// SPDX-License-Identifier: Apache-2.0

package asm

import (
	"errors"
	"fmt"
)

// machine is all that is known of a processor. Code that it returns is complete but
// for places that are known later: link fills those in.
type machine interface {
	// begin lowers the stack pointer by size bytes and keeps it as the frame.
	begin(size int) []byte
	// number is r = n.
	number(r reg, n int64) []byte
	// frame is r = frame + off.
	frame(r reg, off int) []byte
	// get and put move a variable, which is off bytes above the frame.
	get(r reg, off int) []byte
	put(off int, r reg) []byte
	// calc is work = work op other.
	calc(op calculation) []byte
	// load is work = memory at work; store writes other to memory at work.
	load(bytes int) []byte
	store(bytes int) []byte
	syscall() []byte
	// compare compares work with other for the next jump.
	compare() []byte
	jump(c Condition) []byte
	// text is r = the address of a place in the code.
	text(r reg) []byte
	// link points the jump or text that is code[from:to] to the target.
	link(code []byte, from, to, target int) error
}

// reg is a register by its duty.
type reg int

const (
	work  reg = iota // first operand and result; system calls answer here
	other            // second operand
	call             // number of the system call
	arg0             // first of six arguments
)

type calculation int

const (
	add calculation = iota
	sub
	and
	or
	shl
	shr
)

// Condition compares two numbers.
type Condition int

// The conditions of [Program.If].
const (
	EQ Condition = iota
	NE
	LT
	GE
	always
)

type emitter struct {
	m      machine
	arch   string
	vars   int // bytes of variables, which come first in the frame
	size   int // bytes of the frame
	code   []byte
	labels map[string]int
	links  []link
	texts  []Text
	errs   []error
}

// link is code that waits for a place to be known.
type link struct {
	from, to int
	label    string
}

// maxVars is how many variables both machines reach with one instruction.
const maxVars = 256

// Assemble returns the code for an architecture by its Go name. It runs from its first
// byte, wherever it is loaded.
func (p *Program) Assemble(arch string) ([]byte, error) {
	m, ok := map[string]machine{"amd64": amd64{}, "arm64": arm64{}}[arch]
	if !ok {
		return nil, fmt.Errorf("no machine code for architecture %q: there is some for amd64 and arm64", arch)
	}
	if p.vars > maxVars {
		return nil, fmt.Errorf("%d variables: there may be %d", p.vars, maxVars)
	}
	e := &emitter{m: m, arch: arch, vars: (p.vars*8 + 15) &^ 15, labels: map[string]int{}}
	e.size = e.vars + p.areas
	e.emit(m.begin(e.size))
	for _, s := range p.steps {
		s(e)
	}
	e.layTexts()
	for _, l := range e.links {
		target, ok := e.labels[l.label]
		if !ok {
			e.errs = append(e.errs, fmt.Errorf("no label %q", l.label))
			continue
		}
		if err := m.link(e.code, l.from, l.to, target); err != nil {
			e.errs = append(e.errs, fmt.Errorf("%q: %w", l.label, err))
		}
	}
	return e.code, errors.Join(e.errs...)
}

func (e *emitter) emit(code []byte) { e.code = append(e.code, code...) }

func (e *emitter) put(v Var) { e.emit(e.m.put(int(v)*8, work)) }

func (e *emitter) width(bytes int) {
	if bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8 {
		e.errs = append(e.errs, fmt.Errorf("a number of %d bytes: want 1, 2, 4 or 8", bytes))
	}
}

// address is work = at + off; it needs the other register.
func (e *emitter) address(at Operand, off int) {
	at.fetch(e, work)
	if off != 0 {
		e.emit(e.m.number(other, int64(off)))
		e.emit(e.m.calc(add))
	}
}

func (e *emitter) jump(c Condition, label string) { e.link(e.m.jump(c), label) }

func (e *emitter) link(code []byte, label string) {
	from := len(e.code)
	e.emit(code)
	e.links = append(e.links, link{from, len(e.code), label})
}

func (e *emitter) label(name string) {
	if _, taken := e.labels[name]; taken {
		e.errs = append(e.errs, fmt.Errorf("label %q is set twice", name))
	}
	e.labels[name] = len(e.code)
}

// textLabel can't be a label of a program's: those have no zero byte.
func textLabel(t Text) string { return "\x00" + string(t) }

func (e *emitter) layTexts() {
	for _, t := range e.texts {
		if _, there := e.labels[textLabel(t)]; there {
			continue
		}
		e.labels[textLabel(t)] = len(e.code)
		e.emit(append([]byte(t), 0))
	}
}

func (e *emitter) syscall(name string) int64 {
	n, ok := syscalls[name]
	if !ok {
		e.errs = append(e.errs, fmt.Errorf("no number for system call %q", name))
	}
	return e.per(n)
}

func (e *emitter) per(n PerArch) int64 {
	if e.arch == "arm64" {
		return n.ARM64
	}
	return n.AMD64
}

func (v Var) fetch(e *emitter, r reg)     { e.emit(e.m.get(r, int(v)*8)) }
func (n Num) fetch(e *emitter, r reg)     { e.emit(e.m.number(r, int64(n))) }
func (n PerArch) fetch(e *emitter, r reg) { e.emit(e.m.number(r, e.per(n))) }
func (a Area) fetch(e *emitter, r reg)    { e.emit(e.m.frame(r, e.vars+int(a))) }
func (Entry) fetch(e *emitter, r reg)     { e.emit(e.m.frame(r, e.size)) }

func (t Text) fetch(e *emitter, r reg) {
	e.texts = append(e.texts, t)
	e.link(e.m.text(r), textLabel(t))
}
