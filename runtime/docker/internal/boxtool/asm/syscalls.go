// SPDX-License-Identifier: Apache-2.0

package asm

// syscalls are the numbers of the system calls that programs may use.
var syscalls = map[string]PerArch{
	"bind":         {49, 200},
	"close":        {3, 57},
	"connect":      {42, 203},
	"exit_group":   {231, 94},
	"getdents64":   {217, 61},
	"kill":         {62, 129},
	"listen":       {50, 201},
	"nanosleep":    {35, 101},
	"openat":       {257, 56},
	"ppoll":        {271, 73},
	"recvfrom":     {45, 207},
	"rt_sigaction": {13, 134},
	"sendto":       {44, 206},
	"setsockopt":   {54, 208},
	"socket":       {41, 198},
	"unlinkat":     {263, 35},
	"write":        {1, 64},
}
