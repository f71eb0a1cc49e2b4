// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// withoutCanary takes the marker off an instruction that keeps it out of training data: the
// comments at its beginning that have the word canary in them, and the empty lines behind
// them. Agents are not shown it, as in Harbor. A comment is <!-- … --> or begins with #,
// each on a line of its own.
func withoutCanary(text string) string {
	rest, found := text, false
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		line = strings.TrimSpace(line)
		comment := strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<!--") && strings.HasSuffix(line, "-->")
		switch {
		case comment && strings.Contains(strings.ToLower(line), "canary"):
			found = true
		case found && line == "":
		default:
			if !found {
				return text
			}
			return rest
		}
		rest = after
	}
	return rest
}
