// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// jsonValue compares one value of a JSON file, or of stdout. The file may be a pattern
// that names one file, since run ids have the time in them.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 3, "json FILE PATH VALUE")
	name := args[0]
	if matches, _ := filepath.Glob(ts.MkAbs(name)); len(matches) == 1 {
		name = matches[0]
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(name)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	v, err := lookUp(v, args[1])
	if err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	if got := textOf(v); got != args[2] {
		ts.Fatalf("%s: %s is %s, want %s", args[0], args[1], got, args[2])
	}
}

// lookUp follows a path such as a.b.0 into a decoded value.
func lookUp(v any, path string) (any, error) {
	for _, key := range strings.Split(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[key]
			if !ok {
				return nil, fmt.Errorf("there is no %s of %s", key, path)
			}
			v = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(in) {
				return nil, fmt.Errorf("a list of %d has no %s of %s", len(in), key, path)
			}
			v = in[i]
		default:
			return nil, fmt.Errorf("%s of %s is below a plain value", key, path)
		}
	}
	return v, nil
}

// textOf returns text as it is and everything else as JSON.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	body, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
