// SPDX-License-Identifier: Apache-2.0

package images

import (
	"strings"

	"github.com/docker/docker/client"
)

// kind says what can be done about a failed pull.
type kind int

const (
	passing kind = iota // try again
	limited             // try again, later
	refused             // don't
)

type verdict struct {
	kind kind
	hint string
}

// The engine passes a registry's refusal on as a sentence, under a status code that
// changed between releases; the words are older than the codes and have stayed. The
// first row that matches decides, so rate limits come before denials: registries word
// the former as the latter.
var verdicts = []struct {
	words []string
	verdict
}{
	{
		[]string{"toomanyrequests", "too many requests", "rate limit", "status: 429"},
		verdict{limited, "the registry limits pulls: log in to it (docker login), use a mirror, or pull ahead"},
	},
	{
		[]string{"manifest unknown", "manifest for ", "name unknown", "name_unknown", "repository name not known", "not found: "},
		verdict{refused, "check name and tag"},
	},
	{
		[]string{"no matching manifest", "no match for platform"},
		verdict{refused, "the image exists for other platforms only"},
	},
	{
		[]string{"pull access denied", "repository does not exist"},
		verdict{refused, "check the name; if the repository is private, log in to its registry (docker login)"},
	},
	{
		[]string{"unauthorized", "denied", "no basic auth credentials", "authentication required", "forbidden", "incorrect username or password"},
		verdict{refused, "log in to the registry with an account that may read it (docker login), or check DOCKER_CONFIG"},
	},
	{
		[]string{"unsupported media type", "schema version 1", "deprecated image format", "mediatype in manifest", "invalid reference format"},
		verdict{refused, "the engine can't use this kind of image"},
	},
	{
		[]string{"no space left on device"},
		verdict{passing, "the engine's disk is full"},
	},
}

// classify says what an error of a pull means. What nobody knows is taken as passing.
func classify(err error) verdict {
	if client.IsErrConnectionFailed(err) {
		return verdict{passing, "is the engine running, and may this user talk to it?"}
	}
	text := strings.ToLower(err.Error())
	for _, row := range verdicts {
		for _, word := range row.words {
			if strings.Contains(text, word) {
				return row.verdict
			}
		}
	}
	return verdict{kind: passing}
}
