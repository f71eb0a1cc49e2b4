// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// word splits an instruction into its first word and the rest.
func word(text string) (first, rest string) {
	first, rest, _ = strings.Cut(text, " ")
	return first, rest
}

// list reads several instructions from one text: a JSON array of strings, or one a
// line. Empty lines don't count.
func list(text string) ([]string, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		var out []string
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return nil, fmt.Errorf("instructions %.40q: want a JSON array of texts: %w", text, err)
		}
		return out, nil
	}
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out, nil
}

// literal reads the rest of an instruction: as it is, or as a Go string in double
// quotes that can hold any bytes.
func literal(rest string) (string, error) {
	if !strings.HasPrefix(rest, `"`) {
		return rest, nil
	}
	s, err := strconv.Unquote(rest)
	if err != nil {
		return "", fmt.Errorf("%s: starts with a quote and is no Go string", rest)
	}
	return s, nil
}

// field takes one argument off: up to the next space, or a Go string in double
// quotes.
func field(rest string) (arg, tail string, err error) {
	if strings.HasPrefix(rest, `"`) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return "", "", fmt.Errorf("%s: starts with a quote and is no Go string", rest)
		}
		arg, err = strconv.Unquote(quoted)
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", quoted, err)
		}
		return arg, strings.TrimPrefix(rest[len(quoted):], " "), nil
	}
	arg, tail = word(rest)
	if arg == "" {
		return "", "", errors.New("an argument is missing")
	}
	return arg, tail, nil
}

// fields takes exactly n arguments.
func fields(rest string, n int) ([]string, error) {
	var out []string
	for rest != "" {
		arg, tail, err := field(rest)
		if err != nil {
			return nil, err
		}
		out, rest = append(out, arg), tail
	}
	if len(out) != n {
		return nil, fmt.Errorf("has %d arguments, want %d", len(out), n)
	}
	return out, nil
}

func number(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q: want a whole number from 0 on", s)
	}
	return n, nil
}

func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q: want a duration like 2s", s)
	}
	return d, nil
}

// lookup finds the instructions that a "run" names in a file: a field of a JSON
// object, with dots for fields of fields, or without a field the whole file.
func lookup(content []byte, path string) ([]string, error) {
	if path == "" {
		return list(string(content))
	}
	var value any
	if err := json.Unmarshal(content, &value); err != nil {
		return nil, fmt.Errorf("is no JSON: %w", err)
	}
	for key := range strings.SplitSeq(path, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("field %s of %s: what holds it is no object", key, path)
		}
		if value, ok = object[key]; !ok {
			return nil, fmt.Errorf("has no field %s", path)
		}
	}
	switch v := value.(type) {
	case string:
		return list(v)
	case []any:
		var out []string
		for i, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("field %s: item %d is no text", path, i+1)
			}
			out = append(out, s)
		}
		return out, nil
	default:
		return nil, fmt.Errorf("field %s: want a text or a list of texts", path)
	}
}

func expand(s string, env map[string]string) string {
	return os.Expand(s, func(name string) string { return env[name] })
}
