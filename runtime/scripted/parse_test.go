// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"strings"
	"testing"
)

// FuzzRead reads any script as a command and as an Open: it is understood or refused
// with a text that quotes it, and never carried out in part.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"print hello", `emit "\xff"`, "exit 3", "first 2 on-attempt 1 exit 3", `["print a", "exit 1"]`, "log - x", "log \"\" x",
		"block a b", "fail image x", "fail-times 3 x", "service-exit db 1", "copy \"a b\" c", "print \"", "write", "[", "first", "kill 9",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		texts, err := list(text)
		if err != nil {
			return
		}
		for _, one := range texts {
			if strings.TrimSpace(one) == "" && !strings.HasPrefix(strings.TrimSpace(text), "[") {
				t.Errorf("list(%q) has an empty line", text)
			}
			if s, err := read(one, commandWords); (s == nil) == (err == nil) {
				t.Errorf("read(%q) as a command: step %v, error %v", one, s != nil, err)
			}
			if s, err := read(one, openWords); (s == nil) == (err == nil) {
				t.Errorf("read(%q) as an Open: step %v, error %v", one, s != nil, err)
			}
		}
	})
}

// FuzzLookup finds instructions in any file.
func FuzzLookup(f *testing.F) {
	f.Add([]byte(`{"a": {"b": ["print x"]}}`), "a.b")
	f.Add([]byte(`{"a": "print x"}`), "a")
	f.Add([]byte("print x\nexit 1"), "")
	f.Add([]byte(`[1]`), "a")
	f.Fuzz(func(t *testing.T, content []byte, path string) {
		if out, err := lookup(content, path); err != nil && out != nil {
			t.Errorf("lookup gave both %q and %v", out, err)
		}
	})
}
