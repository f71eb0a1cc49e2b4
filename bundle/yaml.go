// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// EncodeYAML encodes a value as the bundle's YAML files have it: two spaces, keys in
// the order of the type, maps sorted. Numbers never have an exponent, which readers of
// YAML 1.1 would take for text; a whole float64 is spelled like an integer, a whole
// [Seconds] is not.
func EncodeYAML(v any) ([]byte, error) {
	body, err := encodeYAML(v)
	if err == nil && exponent.Match(body) {
		// Seldom, and twice the work: the tree says which of them are numbers.
		var doc yaml.Node
		if err = doc.Encode(v); err == nil {
			plainFloats(&doc)
			body, err = encodeYAML(&doc)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return body, nil
}

// exponent finds what may be a number with an exponent.
var exponent = regexp.MustCompile(`[0-9]e[+-][0-9]`)

func encodeYAML(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func plainFloats(n *yaml.Node) {
	for _, c := range n.Content {
		plainFloats(c)
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!float" {
		return
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return // .inf and .nan are spelled right already
	}
	n.Value = plainFloat(f)
}

func plainFloat(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
