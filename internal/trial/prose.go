// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// prose is a text that comes from elsewhere, in a YAML record. The encoder writes texts
// of several lines as blocks, and doesn't get those right that begin with white space:
// it loses a newline, or fails on a tab. They are quoted.
type prose string

// MarshalYAML implements [yaml.Marshaler].
func (p prose) MarshalYAML() (any, error) {
	first, _ := utf8.DecodeRuneInString(string(p))
	if strings.ContainsAny(string(p), "\n\r\u0085\u2028\u2029") && unicode.IsSpace(first) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: string(p)}, nil
	}
	return string(p), nil
}

// proseIn returns a copy of what JSON or YAML decodes to with its texts as prose. Keys
// of maps can't be; line breaks in them become spaces.
func proseIn(v any) any {
	switch v := v.(type) {
	case string:
		return prose(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = proseIn(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[strings.Join(strings.FieldsFunc(key, lineBreak), " ")] = proseIn(item)
		}
		return out
	default:
		return v
	}
}

func lineBreak(r rune) bool { return strings.ContainsRune("\n\r\u0085\u2028\u2029", r) }

var _ yaml.Marshaler = prose("")
