// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"
)

// setting is what a config file says of a flag.
type setting struct {
	values []string
	where  string // file:line
}

// readConfig reads a YAML mapping of flag names, without dashes, to values. A key that
// no command knows as a flag is an error.
func readConfig(root *cobra.Command, path string) (map[string]setting, error) {
	data, err := readSmall(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want a mapping of flag names to values, such as slots: 8", path, top.Line)
	}
	known := knownFlags(root)
	out := map[string]setting{}
	for i := 0; i < len(top.Content); i += 2 {
		k, v := top.Content[i], top.Content[i+1]
		where := fmt.Sprintf("%s:%d", path, k.Line)
		if !known[k.Value] {
			return nil, unknownKey(where, k.Value, known)
		}
		if _, twice := out[k.Value]; twice {
			return nil, fmt.Errorf("%s: %s is given twice", where, k.Value)
		}
		values, ok := valuesOf(v)
		if !ok {
			return nil, fmt.Errorf("%s: %s: want a value or a list of values", where, k.Value)
		}
		out[k.Value] = setting{values, where}
	}
	return out, nil
}

func unknownKey(where, key string, known map[string]bool) error {
	var names []string
	for name := range known {
		names = append(names, name)
	}
	if near := nearest(key, names); near != "" {
		return fmt.Errorf("%s: no command has a flag --%s; did you mean %s?", where, key, near)
	}
	return fmt.Errorf("%s: no command has a flag --%s", where, key)
}

// valuesOf returns the text of a scalar or of a list of scalars.
func valuesOf(n *yaml.Node) ([]string, bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return []string{n.Value}, true
	case n.Kind == yaml.SequenceNode:
		var list []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
				return nil, false
			}
			list = append(list, item.Value)
		}
		return list, true
	}
	return nil, false
}

// knownFlags are the flags that a config file may set: those of all commands.
func knownFlags(root *cobra.Command) map[string]bool {
	names := map[string]bool{}
	add := func(f *pflag.Flag) { names[f.Name] = f.Name != "config" && f.Name != "help" && f.Name != "version" }
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		c.Flags().VisitAll(add)
		c.PersistentFlags().VisitAll(add)
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
	return names
}

// maxConfig bounds a config file, in bytes.
const maxConfig = 1 << 20

// readSmall reads a regular file that is not too large to be one that a person wrote.
func readSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a fifo must not block
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Size() > maxConfig:
		return nil, fmt.Errorf("%s has %d bytes, want at most %d", path, info.Size(), maxConfig)
	}
	return io.ReadAll(io.LimitReader(f, maxConfig))
}
