// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"path/filepath"
	"strings"
)

// refuse names what a task asks for and nothing here gives. To run it all the same would
// grade another task than the author's.
func (l *harborLoad) refuse() {
	d, f := l.d, &l.file
	if isFile(filepath.Join(l.dir, environmentDir, composeName)) {
		l.c.add(Problem{
			File: filepath.Join(l.shown, environmentDir, composeName),
			Text: "tasks of several services are not supported yet", Fix: leaveOut,
		})
	}
	l.refuseVerifier("verifier", f.Verifier)
	for i, s := range f.Steps {
		l.refuseVerifier(join(index("steps", i), "verifier"), s.Verifier)
	}
	if os := strings.ToLower(f.Environment.OS); os != "" && os != "linux" {
		d.problem("environment.os", quote(f.Environment.OS)+" is not supported: containers are Linux ones", leaveOut)
	}
	if d.given("environment.tpu") {
		d.problem("environment.tpu", "TPUs are not supported", leaveOut)
	}
}

// refuseVerifier refuses a verifier in a container of its own.
func (l *harborLoad) refuseVerifier(entry string, v harborVerifier) {
	mode := join(entry, "environment_mode")
	oneOf(l.d, mode, v.EnvironmentMode, []string{"shared", "separate"})
	const text = "a verifier in a container of its own is not supported yet"
	switch {
	case l.d.given(join(entry, "environment")):
		l.d.problem(join(entry, "environment"), text, leaveOut)
	case v.EnvironmentMode == "separate":
		l.d.problem(mode, text, leaveOut)
	}
}
