// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"os"
	"strings"
)

// maxShebang is as much of a first line as is looked at; the kernel looks at 256 bytes.
const maxShebang = 4096

// script is the command that runs a script of a Harbor task, which is at path when it is
// run. It is what the kernel would make of the first line, whatever the file's mode: an
// interpreter, the rest of the line as one argument, the path. Without one it is bash.
func (l *harborLoad) script(file, path string) []string {
	plain := []string{"bash", path}
	f, err := os.Open(file)
	if err != nil {
		l.c.add(Problem{File: file, Text: err.Error()})
		return plain
	}
	defer f.Close() //nolint:errcheck // opened for reading
	line, _ := bufio.NewReaderSize(f, maxShebang).ReadSlice('\n')
	rest, ok := strings.CutPrefix(string(line), "#!")
	rest = strings.TrimSpace(rest)
	if !ok || rest == "" || strings.ContainsRune(rest, 0) {
		return plain
	}
	program, arg := rest, ""
	if at := strings.IndexAny(rest, " \t"); at >= 0 {
		program, arg = rest[:at], strings.TrimSpace(rest[at:])
	}
	if arg != "" {
		return []string{program, arg, path}
	}
	return []string{program, path}
}
