// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// HostProcesses lists the living processes of this machine that have a mark of the
// suite in their environment, this process left out. It serves Provider.Left where
// commands run on this machine.
func HostProcesses(mark string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A process that ended meanwhile, or belongs to somebody else, can't be read;
		// a zombie's environment is empty.
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !bytes.Contains(environ, []byte(mark)) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found = append(found, fmt.Sprintf("process %d: %s", pid, bytes.ReplaceAll(bytes.TrimRight(cmdline, "\x00"), []byte{0}, []byte(" "))))
	}
	return found
}
