// SPDX-License-Identifier: Apache-2.0

package boxtool_test

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

func TestELF(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		t.Run(arch, func(t *testing.T) {
			b, err := boxtool.ELF(arch)
			if err != nil {
				t.Fatal(err)
			}
			again, err := boxtool.ELF(arch)
			if err != nil || !bytes.Equal(b, again) {
				t.Errorf("made twice, it differs: %v", err)
			}
			f, err := elf.NewFile(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if f.Machine != machine || f.Type != elf.ET_EXEC {
				t.Errorf("%s, %s", f.Machine, f.Type)
			}
			code := f.Progs[0]
			if code.Filesz != uint64(len(b)) || f.Entry <= code.Vaddr || f.Entry >= code.Vaddr+code.Filesz {
				t.Errorf("entry %#x, segment at %#x of %d bytes; the file has %d", f.Entry, code.Vaddr, code.Filesz, len(b))
			}
			for _, p := range f.Progs {
				if p.Flags&elf.PF_X != 0 && p.Flags&elf.PF_W != 0 {
					t.Errorf("%s can be written and executed", p.Type)
				}
			}
			if f.Progs[1].Type != elf.PT_GNU_STACK {
				t.Errorf("second header is %s: the stack would be executable", f.Progs[1].Type)
			}
		})
	}
}

func TestELFOfAnotherArchitecture(t *testing.T) {
	for _, arch := range []string{"386", "arm", "riscv64", "x86_64", "aarch64", ""} {
		if _, err := boxtool.ELF(arch); err == nil || !strings.Contains(err.Error(), "amd64 and arm64") {
			t.Errorf("%q: %v, want an error that names what there is", arch, err)
		}
	}
}
