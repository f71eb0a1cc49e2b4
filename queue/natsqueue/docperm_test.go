// SPDX-License-Identifier: Apache-2.0

package natsqueue

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/testenv"
)

// documentedPermissions reads the subjects of docs/nats.md, where they are written as a
// server's configuration.
func documentedPermissions(t *testing.T) (publish, subscribe []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "nats.md"))
	if err != nil {
		t.Fatal(err)
	}
	list := func(verb string) (subjects []string) {
		m := regexp.MustCompile(`(?s)\b` + verb + `: \[(.*?)\]`).FindStringSubmatch(string(text))
		if m == nil {
			t.Fatalf("docs/nats.md has no %q list", verb)
		}
		for _, s := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(m[1], -1) {
			subjects = append(subjects, strings.TrimSpace(s[1]))
		}
		return subjects
	}
	return list("publish"), list("subscribe")
}
