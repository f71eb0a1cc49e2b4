// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package nest

import (
	"encoding/binary"
	goruntime "runtime"
	"unsafe"
)

// initCode returns where the machine code of init begins.
func initCode() *byte

// initSize is more than init has; what follows it is never reached.
const initSize = 384

const initSupported = true

// initImage wraps the code into the smallest executable that the kernel takes: one
// header, one segment, which begins with the header itself.
func initImage() []byte {
	const (
		base    = 0x400000
		ehdr    = 64
		phdr    = 56
		read    = 4
		execute = 1
	)
	machine := map[string]uint16{"amd64": 62, "arm64": 183}[goruntime.GOARCH]
	le := binary.LittleEndian
	b := append([]byte(nil), 0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = le.AppendUint16(b, 2) // an executable
	b = le.AppendUint16(b, machine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, base+ehdr+phdr) // where it starts
	b = le.AppendUint64(b, ehdr)           // the program header follows
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{ehdr, phdr, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1) // a segment to load
	b = le.AppendUint32(b, read|execute)
	for _, v := range []uint64{0, base, base, ehdr + phdr + initSize, ehdr + phdr + initSize, 4096} {
		b = le.AppendUint64(b, v)
	}
	return append(b, unsafe.Slice(initCode(), initSize)...)
}
