// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"
	"strings"
)

// Shell makes programs for sandboxes with a POSIX sh, the usual tools beside it
// and a Linux /proc.
type Shell struct {
	// Path of the shell. Default: sh.
	Path string
}

var _ Programs = Shell{}

func (s Shell) sh() string {
	if s.Path == "" {
		return "sh"
	}
	return s.Path
}

// Args implements [Programs].
func (s Shell) Args(args ...string) []string {
	return append([]string{s.sh(), "-c", `for a; do printf '%s\0' "$a"; done`, "sh"}, args...)
}

// Program implements [Programs].
func (s Shell) Program(steps ...Step) []string {
	lines := []string{"set -e"}
	for _, step := range steps {
		lines = append(lines, s.line(step))
	}
	return []string{s.sh(), "-c", strings.Join(lines, "\n")}
}

// forever is longer than any test; sleep takes no "infinity" everywhere.
const forever = "sleep 1000000"

func (s Shell) line(step Step) string {
	path, to := quote(step.Path), quote(step.To)
	switch step.Op {
	case OpOut:
		return "printf " + octal(step.Data)
	case OpErr:
		return "printf " + octal(step.Data) + " >&2"
	case OpFlood:
		return fmt.Sprintf("i=0; while [ $i -lt %d ]; do head -c 65536 /dev/zero; head -c 65536 /dev/zero >&2; i=$((i+1)); done", step.N/64)
	case OpCat:
		return "cat"
	case OpExit:
		return fmt.Sprintf("exit %d", step.N)
	case OpDie:
		return fmt.Sprintf("kill -%d $$", step.N)
	case OpHold:
		return forever
	case OpIgnoreTerm:
		return "trap '' TERM"
	case OpEnv:
		return "env"
	case OpEcho:
		return `printf '%s\n' "$` + step.Path + `"`
	case OpPwd:
		return "pwd -P"
	case OpUser:
		return "id -un"
	case OpRead:
		return "cat " + path
	case OpWrite:
		return "printf " + octal(step.Data) + " > " + path
	case OpMkdir:
		return "mkdir -p " + path
	case OpSymlink:
		return "ln -s " + to + " " + path
	case OpFifo:
		return "mkfifo " + path
	case OpRename:
		return "mv " + path + " " + to
	case OpChild:
		return forever + " </dev/null >/dev/null 2>&1 & echo $! > " + path
	case OpLoud:
		return forever + " & echo $! > " + path
	case OpDaemon:
		return "setsid " + forever + " </dev/null >/dev/null 2>&1 & echo $! > " + path
	case OpAlive:
		// kill -0 succeeds for zombies, which nobody may ever reap; the state tells.
		return "s=dead; read -r p < " + path + `
if [ -r "/proc/$p/status" ]; then
  while read -r k v rest; do
    if [ "$k" = State: ]; then case $v in Z|X) ;; *) s=alive ;; esac; fi
  done < "/proc/$p/status" || :
fi
echo $s`
	case OpFetch:
		return "wget -q -O - " + path + " || curl -sf " + path
	default:
		return "echo 'no such step: " + string(step.Op) + "' >&2; exit 99"
	}
}

// quote makes one word of s for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// octal makes a format of data that printf turns into exactly these bytes.
func octal(data []byte) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, c := range data {
		fmt.Fprintf(&b, `\%03o`, c)
	}
	b.WriteByte('\'')
	return b.String()
}
