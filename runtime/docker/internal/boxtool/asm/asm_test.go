// SPDX-License-Identifier: Apache-2.0

package asm

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"
)

// Every instruction, as the disassemblers of binutils name it.
func TestInstructions(t *testing.T) {
	a, r := amd64{}, arm64{}
	linked := func(m machine, code []byte, from, target int) []byte {
		t.Helper()
		b := append(make([]byte, from), code...)
		if err := m.link(b, from, len(b), target); err != nil {
			t.Fatal(err)
		}
		return b[from:]
	}
	for _, c := range []struct {
		means string
		got   []byte
		want  string
	}{
		{"sub $0x12340,%rsp; mov %rsp,%rbp", a.begin(0x12340), "4881ec40230100 4889e5"},
		{"mov $0x1,%eax", a.number(work, 1), "b801000000"},
		{"mov $0x1,%ecx", a.number(other, 1), "b901000000"},
		{"mov $0x3c,%eax", a.number(call, 60), "b83c000000"},
		{"mov $0xffffffff,%edx", a.number(arg0+2, math.MaxUint32), "baffffffff"},
		{"mov $0x7,%r9d", a.number(arg0+5, 7), "41b907000000"},
		{"mov $-1,%rdi", a.number(arg0, -1), "48c7c7ffffffff"},
		{"mov $-100,%r10", a.number(arg0+3, -100), "49c7c29cffffff"},
		{"movabs $0x123456789a,%rsi", a.number(arg0+1, 0x123456789a), "48be9a78563412000000"},
		{"movabs $-0x80000001,%r8", a.number(arg0+4, -0x80000001), "49b8ffffff7fffffffff"},
		{"lea 0x100(%rbp),%rdi", a.frame(arg0, 256), "488dbd00010000"},
		{"lea 0x100(%rbp),%r10", a.frame(arg0+3, 256), "4c8d9500010000"},
		{"mov 0x8(%rbp),%rax", a.get(work, 8), "488b8508000000"},
		{"mov 0x8(%rbp),%r9", a.get(arg0+5, 8), "4c8b8d08000000"},
		{"mov %rax,0x8(%rbp)", a.put(8, work), "48898508000000"},
		{"add %rcx,%rax", a.calc(add), "4801c8"},
		{"sub %rcx,%rax", a.calc(sub), "4829c8"},
		{"and %rcx,%rax", a.calc(and), "4821c8"},
		{"or %rcx,%rax", a.calc(or), "4809c8"},
		{"shl %cl,%rax", a.calc(shl), "48d3e0"},
		{"shr %cl,%rax", a.calc(shr), "48d3e8"},
		{"movzbl (%rax),%eax", a.load(1), "0fb600"},
		{"movzwl (%rax),%eax", a.load(2), "0fb700"},
		{"mov (%rax),%eax", a.load(4), "8b00"},
		{"mov (%rax),%rax", a.load(8), "488b00"},
		{"mov %cl,(%rax)", a.store(1), "8808"},
		{"mov %cx,(%rax)", a.store(2), "668908"},
		{"mov %ecx,(%rax)", a.store(4), "8908"},
		{"mov %rcx,(%rax)", a.store(8), "488908"},
		{"syscall", a.syscall(), "0f05"},
		{"cmp %rcx,%rax", a.compare(), "4839c8"},
		{"jmp .+0x10", linked(a, a.jump(always), 0, 16), "e90b000000"},
		{"je .+0x10", linked(a, a.jump(EQ), 0, 16), "0f840a000000"},
		{"jne .-0x10", linked(a, a.jump(NE), 32, 16), "0f85eaffffff"},
		{"jl .+0x10", linked(a, a.jump(LT), 0, 16), "0f8c0a000000"},
		{"jge .+0x10", linked(a, a.jump(GE), 0, 16), "0f8d0a000000"},
		{"lea 0x9(%rip),%rsi", linked(a, a.text(arg0+1), 0, 16), "488d3509000000"},
		{"lea 0x9(%rip),%r8", linked(a, a.text(arg0+4), 0, 16), "4c8d0509000000"},

		{"mov x9,#0x2340; movk x9,#1,lsl #16; sub sp,sp,x9; mov x29,sp", r.begin(0x12340), "096884d2 2900a0f2 ff6329cb fd030091"},
		{"mov x0,#1", r.number(work, 1), "200080d2"},
		{"mov x8,#93", r.number(call, 93), "a80b80d2"},
		{"mov x0,#0; movk x0,#1,lsl #16", r.number(work, 0x10000), "000080d2 2000a0f2"},
		{"mov x0,#-1", r.number(arg0, -1), "00008092"},
		{"mov x0,#-100", r.number(arg0, -100), "600c8092"},
		{"mov x1,#-1; movk x1,#0xfffe,lsl #16", r.number(other, -65537), "01008092 c1ffbff2"},
		{"mov x5,#0x4; movk #3,lsl #16; movk #2,lsl #32; movk #1,lsl #48", r.number(arg0+5, 0x1000200030004), "850080d2 6500a0f2 4500c0f2 2500e0f2"},
		{"mov x2,#0x100; add x2,x29,x2", r.frame(arg0+2, 256), "022080d2 a203028b"},
		{"ldr x3,[x29,#8]", r.get(arg0+3, 8), "a30740f9"},
		{"str x0,[x29,#2040]", r.put(2040, work), "a0ff03f9"},
		{"add x0,x0,x1", r.calc(add), "0000018b"},
		{"sub x0,x0,x1", r.calc(sub), "000001cb"},
		{"and x0,x0,x1", r.calc(and), "0000018a"},
		{"orr x0,x0,x1", r.calc(or), "000001aa"},
		{"lsl x0,x0,x1", r.calc(shl), "0020c19a"},
		{"lsr x0,x0,x1", r.calc(shr), "0024c19a"},
		{"ldrb w0,[x0]", r.load(1), "00004039"},
		{"ldrh w0,[x0]", r.load(2), "00004079"},
		{"ldr w0,[x0]", r.load(4), "000040b9"},
		{"ldr x0,[x0]", r.load(8), "000040f9"},
		{"strb w1,[x0]", r.store(1), "01000039"},
		{"strh w1,[x0]", r.store(2), "01000079"},
		{"str w1,[x0]", r.store(4), "010000b9"},
		{"str x1,[x0]", r.store(8), "010000f9"},
		{"svc #0", r.syscall(), "010000d4"},
		{"cmp x0,x1", r.compare(), "1f0001eb"},
		{"b .+0x10", linked(r, r.jump(always), 0, 16), "04000014"},
		{"b .-0x10", linked(r, r.jump(always), 32, 16), "fcffff17"},
		{"b.eq .+0x10", linked(r, r.jump(EQ), 0, 16), "80000054"},
		{"b.ne .-0x10", linked(r, r.jump(NE), 32, 16), "81ffff54"},
		{"b.lt .+0x10", linked(r, r.jump(LT), 0, 16), "8b000054"},
		{"b.ge .+0x10", linked(r, r.jump(GE), 0, 16), "8a000054"},
		{"adr x1,.+0x11", linked(r, r.text(arg0+1), 0, 17), "81000030"},
	} {
		if got, want := hex.EncodeToString(c.got), strings.ReplaceAll(c.want, " ", ""); got != want {
			t.Errorf("%s: %s, want %s", c.means, got, want)
		}
	}
}

func TestMistakesAreErrors(t *testing.T) {
	far := func(p *Program) {
		p.If(Num(0), EQ, Num(0), "end")
		for range 1 << 17 {
			p.Set(Var(0), Num(0))
		}
		p.Label("end")
	}
	for _, c := range []struct {
		arch, want string
		make       func(p *Program)
	}{
		{"riscv64", `architecture "riscv64"`, func(*Program) {}},
		{"", `architecture ""`, func(*Program) {}},
		{"amd64", `no label "x"`, func(p *Program) { p.Goto("x") }},
		{"arm64", `label "x" is set twice`, func(p *Program) { p.Label("x"); p.Label("x") }},
		{"amd64", `system call "fork"`, func(p *Program) { p.Call(p.Var(), "fork") }},
		{"arm64", "3 bytes", func(p *Program) { p.Load(p.Var(), 3, Area(0), 0) }},
		{"amd64", "3 bytes", func(p *Program) { p.Store(3, Area(0), 0, Num(0)) }},
		{"arm64", "257 variables", func(p *Program) {
			for range 257 {
				p.Var()
			}
		}},
		{"arm64", "at most 1 MiB", far},
	} {
		p := &Program{}
		c.make(p)
		if _, err := p.Assemble(c.arch); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}
