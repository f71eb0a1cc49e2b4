// SPDX-License-Identifier: Apache-2.0

// Package redact keeps secret values out of whatever is stored: it replaces each
// occurrence of a value by a marker, in streams too, where a value may be cut by the
// end of a chunk.
//
// A value is found as it stands, without white space at its ends, and as it is
// spelled inside JSON and YAML strings and in URLs. Limits: a value that a program
// encodes in another way (base64, hexadecimal) or prints in pieces with something
// between is not found. Values shorter than [MinLength] bytes are left alone, since
// they would blot out ordinary text.
package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MinLength is the length in bytes of the shortest value that is replaced.
const MinLength = 5

// Marker stands where a value was.
const Marker = "[redacted]"

// Redactor replaces values. The zero value and nil replace nothing.
type Redactor struct {
	values  [][]byte // longest first, so that a value inside another can't leave a rest
	longest int
}

// New returns a redactor for the values. Empty and short ones are dropped.
func New(values ...string) *Redactor {
	all := map[string]bool{}
	for _, v := range values {
		// A key file ends with a newline that a program may not print.
		for _, form := range spellings(v) {
			all[form] = true
		}
		for _, form := range spellings(strings.TrimSpace(v)) {
			all[form] = true
		}
	}
	r := &Redactor{}
	for v := range all {
		if len(v) >= MinLength {
			r.values = append(r.values, []byte(v))
			r.longest = max(r.longest, len(v))
		}
	}
	slices.SortFunc(r.values, func(a, b []byte) int { return cmp.Or(len(b)-len(a), bytes.Compare(a, b)) })
	return r
}

// spellings are the ways in which records and programs commonly write a value.
func spellings(v string) []string {
	if len(v) < MinLength {
		return nil
	}
	forms := []string{v, url.QueryEscape(v), url.PathEscape(v)}
	for _, html := range []bool{false, true} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(v) == nil {
			quoted := strings.TrimSuffix(b.String(), "\n")
			inner := quoted[1 : len(quoted)-1]
			forms = append(forms, inner, asciiOnly(inner))
		}
	}
	return forms
}

// asciiOnly spells what is inside a JSON string as encoders do that write ASCII only:
// \u00e4 for ä, two of these beyond the first 65536 characters.
func asciiOnly(inner string) string {
	var b strings.Builder
	for _, r := range inner {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Empty reports that there is nothing to replace.
func (r *Redactor) Empty() bool { return r == nil || len(r.values) == 0 }

// String returns s with every value replaced.
func (r *Redactor) String(s string) string {
	if r.Empty() {
		return s
	}
	return string(r.Bytes([]byte(s)))
}

// Bytes returns b with every value replaced. It returns b itself when there is
// nothing to do.
func (r *Redactor) Bytes(b []byte) []byte {
	if r.Empty() {
		return b
	}
	var out bytes.Buffer
	rest, _ := r.scan(&out, b, true)
	if out.Len() == 0 {
		return b
	}
	out.Write(rest)
	return out.Bytes()
}

// Any returns a copy of what JSON or YAML decodes to with every value replaced in its
// texts, keys of maps among them.
func (r *Redactor) Any(v any) any {
	switch v := v.(type) {
	case string:
		return r.String(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = r.Any(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[r.String(key)] = r.Any(item)
		}
		return out
	default:
		return v
	}
}
