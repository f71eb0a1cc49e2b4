// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
)

// piece is a part of a text with variables in it: plain text, or a ${NAME} or
// ${NAME:-default}.
type piece struct {
	text        string // as it was written; for plain text with $$ as $
	name        string // empty for plain text
	hasFallback bool
	fallback    string
}

// pieces takes a text apart by the rules of [expand]. Variables of the trial are plain
// text.
func pieces(s string) ([]piece, []referenceError) {
	var out []piece
	var errs []referenceError
	plain := func(text string) {
		if n := len(out); n > 0 && out[n-1].name == "" {
			out[n-1].text += text
		} else if text != "" {
			out = append(out, piece{text: text})
		}
	}
	for s != "" {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			plain(s)
			break
		}
		plain(s[:i])
		s = s[i:]
		switch {
		case strings.HasPrefix(s, "$$"):
			plain("$")
			s = s[2:]
		case !strings.HasPrefix(s, "${"):
			plain("$")
			s = s[1:]
		default:
			m := reference.FindStringSubmatch(s)
			if m == nil || strings.Contains(m[3], "${") {
				errs = append(errs, notVariable(s))
				s = s[2:]
				continue
			}
			s = s[len(m[0]):]
			if strings.HasPrefix(m[1], trialPrefix) {
				plain(m[0])
				continue
			}
			out = append(out, piece{text: m[0], name: m[1], hasFallback: m[2] != "", fallback: m[3]})
		}
	}
	return out, errs
}

func notVariable(s string) referenceError {
	return referenceError{
		fmt.Sprintf("%s is not a variable", quote(cutReference(s))),
		"write ${NAME} or ${NAME:-default}; a dollar that is to stay is written $$",
	}
}
