// SPDX-License-Identifier: Apache-2.0

package asm

// Program is a program under construction. The zero value is empty and ready.
type Program struct {
	steps []func(*emitter)
	vars  int
	areas int // bytes
}

// Var is a variable of 64 bits. It begins with whatever is on the stack.
type Var int

// Operand is what a step reads: a [Var], [Num], [PerArch], [Area], [Text] or [Entry].
type Operand interface{ fetch(e *emitter, r reg) }

// Num is a number.
type Num int64

// PerArch is a number that the kernel defines differently for each processor.
type PerArch struct{ AMD64, ARM64 int64 }

// Area is the address of memory of the program's own, aligned to 16 bytes.
type Area int

// Text is the address of a constant text that ends with a zero byte.
type Text string

// Entry is the stack pointer as the kernel set it: argc is there, argv follows.
type Entry struct{}

// Var makes a new variable.
func (p *Program) Var() Var {
	p.vars++
	return Var(p.vars - 1)
}

// Area reserves memory.
func (p *Program) Area(size int) Area {
	at := p.areas
	p.areas += (size + 15) &^ 15
	return Area(at)
}

func (p *Program) step(f func(*emitter)) { p.steps = append(p.steps, f) }

// Set is dst = x.
func (p *Program) Set(dst Var, x Operand) {
	p.step(func(e *emitter) {
		x.fetch(e, work)
		e.put(dst)
	})
}

// Add is dst = x + y.
func (p *Program) Add(dst Var, x, y Operand) { p.calc(add, dst, x, y) }

// Sub is dst = x - y.
func (p *Program) Sub(dst Var, x, y Operand) { p.calc(sub, dst, x, y) }

// And is dst = x & y.
func (p *Program) And(dst Var, x, y Operand) { p.calc(and, dst, x, y) }

// Or is dst = x | y.
func (p *Program) Or(dst Var, x, y Operand) { p.calc(or, dst, x, y) }

// Shl is dst = x << y, y below 64.
func (p *Program) Shl(dst Var, x, y Operand) { p.calc(shl, dst, x, y) }

// Shr is dst = x >> y without a sign, y below 64.
func (p *Program) Shr(dst Var, x, y Operand) { p.calc(shr, dst, x, y) }

func (p *Program) calc(op calculation, dst Var, x, y Operand) {
	p.step(func(e *emitter) {
		x.fetch(e, work)
		y.fetch(e, other)
		e.emit(e.m.calc(op))
		e.put(dst)
	})
}

// Load is dst = the unsigned number of so many bytes (1, 2, 4 or 8) at at+off.
func (p *Program) Load(dst Var, bytes int, at Operand, off int) {
	p.step(func(e *emitter) {
		e.width(bytes)
		e.address(at, off)
		e.emit(e.m.load(bytes))
		e.put(dst)
	})
}

// Store writes the low bytes (1, 2, 4 or 8 of them) of x to at+off.
func (p *Program) Store(bytes int, at Operand, off int, x Operand) {
	p.step(func(e *emitter) {
		e.width(bytes)
		e.address(at, off)
		x.fetch(e, other)
		e.emit(e.m.store(bytes))
	})
}

// Call is dst = the system call's result: a number, or -errno. It has up to six
// arguments; registers beyond those that are given hold anything.
func (p *Program) Call(dst Var, name string, args ...Operand) {
	p.step(func(e *emitter) {
		for i, x := range args {
			x.fetch(e, arg0+reg(i))
		}
		e.emit(e.m.number(call, e.syscall(name)))
		e.emit(e.m.syscall())
		e.put(dst)
	})
}

// Label names this place.
func (p *Program) Label(name string) { p.step(func(e *emitter) { e.label(name) }) }

// Goto goes on at the label.
func (p *Program) Goto(label string) { p.step(func(e *emitter) { e.jump(always, label) }) }

// If goes on at the label when the condition holds. Numbers are compared with sign.
func (p *Program) If(x Operand, c Condition, y Operand, label string) {
	p.step(func(e *emitter) {
		x.fetch(e, work)
		y.fetch(e, other)
		e.emit(e.m.compare())
		e.jump(c, label)
	})
}
