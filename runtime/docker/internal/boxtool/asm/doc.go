// SPDX-License-Identifier: Apache-2.0

// Package asm turns a small program, written once in Go, into machine code for
// several processors.
//
// A [Program] is a list of steps over 64-bit variables and areas of memory: set, add,
// load, store, compare and jump, system call. Each step becomes the same few
// instructions every time: fetch the operands into two work registers, do it, put the
// result back. Nothing is optimised, because the programs wait for the kernel all day;
// what counts is that a reader can see that the code is right. All that a processor
// has to know is in its [machine], about twenty instructions.
//
// There is no heap and no data segment. Variables and areas are on the stack, constant
// texts follow the code.
package asm
