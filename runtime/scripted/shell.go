// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// script finds the instructions of a program that is a shell with a script, so that tasks
// whose programs are files can be played: "bash /tests/test.sh", "sh -c TEXT", with
// "/usr/bin/env" before it or not. ok is false for everything else.
func (c *call) script(argv []string) (texts []string, ok bool, err error) {
	if len(argv) > 0 && path.Base(argv[0]) == "env" && strings.Contains(argv[0], "/") {
		argv = argv[1:]
	}
	if len(argv) == 0 || !slices.Contains([]string{"bash", "sh"}, path.Base(argv[0])) {
		return nil, false, nil
	}
	shell, argv := argv[0], argv[1:]
	for len(argv) > 0 && strings.HasPrefix(argv[0], "-") && argv[0] != "-c" {
		argv = argv[1:] // how to be strict
	}
	switch {
	case len(argv) == 2 && argv[0] == "-c":
		texts, err = list(withoutComments(argv[1]))
	case len(argv) == 1 && argv[0] != "-c":
		n, err := c.sb.box.fs.read(c.user, c.path(argv[0]))
		if err != nil {
			return nil, true, err
		}
		texts, err = list(withoutComments(string(n.data)))
		return texts, true, err
	default:
		err = fmt.Errorf("%s: want a file with instructions, or -c and the instructions", shell)
	}
	return texts, true, err
}

// withoutComments takes lines out that begin with "#".
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}
