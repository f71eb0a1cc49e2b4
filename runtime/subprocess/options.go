// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"cmp"
	"fmt"
	"path/filepath"
)

// options are what a run may say under runtime.options.
type options struct {
	// Isolation is auto (default), none or required.
	Isolation Isolation `json:"isolation,omitempty"`
	// Visible are files and directories that sandboxes see although they are in a hidden
	// directory. Read-only.
	Visible []string `json:"visible,omitempty"`
}

func parseOptions(given map[string]any) (options, error) {
	var o options
	for key, value := range given {
		switch key {
		case "isolation":
			word, ok := value.(string)
			if !ok {
				return o, fmt.Errorf("runtime.options.isolation is %v: want auto, none or required", value)
			}
			o.Isolation = Isolation(word)
			if err := o.Isolation.check(); err != nil {
				return o, fmt.Errorf("runtime.options: %w", err)
			}
		case "visible":
			list, err := paths(value)
			if err != nil {
				return o, err
			}
			o.Visible = list
		default:
			return o, refuse("options."+key, fmt.Sprint(value), "isolation", "visible")
		}
	}
	o.Isolation = cmp.Or(o.Isolation, Auto)
	return o, nil
}

func paths(value any) ([]string, error) {
	var list []any
	switch v := value.(type) {
	case []any:
		list = v
	case []string:
		for _, p := range v {
			list = append(list, p)
		}
	default:
		return nil, fmt.Errorf("runtime.options.visible is %v: want a list of absolute paths", value)
	}
	var out []string
	for _, item := range list {
		path, ok := item.(string)
		if !ok || !filepath.IsAbs(path) {
			return nil, fmt.Errorf("runtime.options.visible has %v: want absolute paths", item)
		}
		out = append(out, filepath.Clean(path))
	}
	return out, nil
}
