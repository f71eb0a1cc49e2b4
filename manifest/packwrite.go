// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// marshalPack writes a pack file that reads as this one. It reads it again, because
// some text doesn't survive YAML.
func marshalPack(spec packFile) ([]byte, error) {
	spec = escaped(reflect.ValueOf(spec)).Interface().(packFile)
	var n yaml.Node
	if err := n.Encode(spec); err != nil {
		return nil, err
	}
	quoteOdd(&n)
	data, err := yaml.Marshal(&n)
	if err != nil {
		return nil, err
	}
	c := newCollector(packFileName)
	var again packFile
	if root := readDocument(c, data); root != nil {
		newDecoder(newExpander(c, LoadOptions{}, nil)).decode(root, reflect.ValueOf(&again).Elem(), "")
	}
	if err := c.err(); err != nil {
		return nil, fmt.Errorf("can't be written with its variables filled in: %w", err)
	}
	// JSON, because 1.0 comes back as 1.
	first, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	second, err := json.Marshal(emptied(again))
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(first, second) {
		return nil, errors.New("can't be written with its variables filled in")
	}
	return data, nil
}

// quoteOdd puts quotes around text whose white space the block style would change.
func quoteOdd(n *yaml.Node) {
	for _, child := range n.Content {
		quoteOdd(child)
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return
	}
	body := strings.TrimSuffix(n.Value, "\n")
	if strings.ContainsAny(n.Value, "\t\r\u0085\u2028\u2029\ufeff") || body != strings.TrimSpace(body) {
		n.Style = yaml.DoubleQuotedStyle
	}
}

// escaped copies a value, with [escape] applied to every text in it but the keys, and
// without empty lists and maps, which YAML leaves out.
func escaped(v reflect.Value) reflect.Value { return mapText(v, escape) }

func emptied(spec packFile) packFile {
	same := func(s string) string { return s }
	return mapText(reflect.ValueOf(spec), same).Interface().(packFile)
}

func mapText(v reflect.Value, f func(string) string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		out.SetString(f(v.String()))
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			break
		}
		inner := mapText(v.Elem(), f)
		if v.Kind() == reflect.Pointer {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(inner)
		} else {
			out.Set(inner)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			out.Field(i).Set(mapText(v.Field(i), f))
		}
	case reflect.Slice:
		if v.Len() == 0 {
			return reflect.Zero(v.Type())
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(mapText(v.Index(i), f))
		}
	case reflect.Map:
		if v.Len() == 0 {
			return reflect.Zero(v.Type())
		}
		out.Set(reflect.MakeMap(v.Type()))
		for k, item := range v.Seq2() {
			out.SetMapIndex(k, mapText(item, f))
		}
	}
	return out
}
