// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxID bounds a task id, in bytes as keys spell it: there a byte outside
// [A-Za-z0-9._-] takes three. With a file's name behind it a key has room for this.
const maxID = 200

// keyLength is how many bytes an id takes in a key.
func keyLength(id string) int {
	n := 0
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			n++
		default:
			n += 3
		}
	}
	return n
}

// fieldError is what is wrong with a row; field may be empty.
type fieldError struct{ field, text, fix string }

func (e *fieldError) Error() string {
	if e.field == "" {
		return e.text
	}
	return e.field + ": " + e.text
}

// parseRow reads a row into its fields, whose values stay as they were written.
func parseRow(data []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, &fieldError{"", "the row is not valid UTF-8", "convert the file to UTF-8"}
	}
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t"), []byte("{")) {
		return nil, &fieldError{"", "the row is not a JSON object", `write one object per line, such as {"id": "a"}`}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		var syntax *json.SyntaxError
		text := err.Error()
		if errors.As(err, &syntax) {
			text = fmt.Sprintf("%s (at byte %d)", text, syntax.Offset)
		}
		return nil, &fieldError{"", "the row is not a JSON object: " + text, "write one object per line"}
	}
	return fields, nil
}

// rowID returns the task id of a row.
func (p *datasetPack) rowID(fields map[string]json.RawMessage) (string, error) {
	name := p.spec.Dataset.IDField
	raw, ok := fields[name]
	if !ok {
		return "", &fieldError{name, "the row has no such field, which holds the task's id", suggest(name, keysOf(fields))}
	}
	id := string(raw)
	switch {
	case strings.HasPrefix(id, `"`):
		if err := json.Unmarshal(raw, &id); err != nil {
			return "", &fieldError{name, err.Error(), ""}
		}
	case strings.Trim(strings.TrimPrefix(id, "-"), "0123456789") != "":
		return "", &fieldError{name, "the id is " + clip(id), "use text or a whole number"}
	}
	if id == "" {
		return "", &fieldError{name, "the id is empty", "give each row an id"}
	}
	if text, fix := badID(id); text != "" {
		return "", &fieldError{name, text, fix}
	}
	return id, nil
}

// badID says why a text can't be a task's id, or "".
func badID(id string) (text, fix string) {
	switch {
	case strings.ContainsRune(id, 0):
		// It is a variable of every program's environment, which can't hold one.
		return "the id has a NUL character in it", "leave it out"
	case keyLength(id) > maxID:
		return fmt.Sprintf("the id takes %d bytes in the store's keys", keyLength(id)),
			fmt.Sprintf("use %d at most; bytes outside A-Z a-z 0-9 . _ - count three each", maxID)
	}
	return "", ""
}

func keysOf(fields map[string]json.RawMessage) []string {
	const most = 12
	keys := make([]string, 0, most)
	for k := range fields {
		if len(keys) == most || len(k) > 40 {
			return nil
		}
		keys = append(keys, k)
	}
	return keys
}

// agentFields returns what the agent may see: for the templates and as JSON, with the
// values as they were written, in the pack's order.
func (p *datasetPack) agentFields(fields map[string]json.RawMessage) (map[string]any, []byte, error) {
	values := make(map[string]any, len(p.spec.AgentFields))
	out := bytes.NewBufferString("{")
	for i, name := range p.spec.AgentFields {
		raw, ok := fields[name]
		if !ok {
			return nil, nil, &fieldError{name, "the row has no such field, which agent_fields lists", suggest(name, keysOf(fields))}
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber() // 1.10 stays 1.10
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, nil, &fieldError{name, err.Error(), ""}
		}
		values[name] = withoutNull(v)
		if i > 0 {
			out.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, nil, err
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(raw)
	}
	out.WriteByte('}')
	return values, out.Bytes(), nil
}

// withoutNull makes null an empty text, which templates take as false and print as
// nothing; a nil they would print as <no value>.
func withoutNull(v any) any {
	switch v := v.(type) {
	case nil:
		return ""
	case []any:
		for i := range v {
			v[i] = withoutNull(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = withoutNull(v[k])
		}
	}
	return v
}
