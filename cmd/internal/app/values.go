// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"
)

// EnvPrefix begins the name of every environment variable that stands for a flag.
const EnvPrefix = "TIDEMILL_"

// EnvName returns the variable that stands for a flag: --drain-timeout is
// TIDEMILL_DRAIN_TIMEOUT.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FillFlags gives flags that were not set on the command line the value of their
// variable, else of the config file. It is a root command's PersistentPreRunE.
func FillFlags(cmd *cobra.Command, _ []string) error {
	var config map[string]string
	if path := value(cmd.Flags().Lookup("config")); path != "" {
		var err error
		if config, err = readConfig(cmd, path); err != nil {
			return Usage(err)
		}
	}
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "config" || f.Name == "help" {
			return
		}
		v, from := config[f.Name], "config file"
		_, ok := config[f.Name]
		if e, set := os.LookupEnv(EnvName(f.Name)); set {
			v, ok, from = e, true, EnvName(f.Name)
		}
		if !ok {
			return
		}
		if err := cmd.Flags().Set(f.Name, v); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", from, err))
		}
	})
	return Usage(errors.Join(errs...))
}

func value(f *pflag.Flag) string {
	if f == nil {
		return ""
	}
	if v := f.Value.String(); f.Changed || v != "" {
		return v
	}
	return os.Getenv(EnvName(f.Name))
}

// readConfig reads a YAML mapping of flag names, without dashes, to values. A key that
// no command knows as a flag is an error.
func readConfig(cmd *cobra.Command, path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
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
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want a mapping of flag names to values", path, root.Line)
	}
	known := knownFlags(cmd.Root())
	out := map[string]string{}
	for i := 0; i < len(root.Content); i += 2 {
		k, v := root.Content[i], root.Content[i+1]
		if !slices.Contains(known, k.Value) {
			return nil, fmt.Errorf("%s:%d: no command has a flag --%s", path, k.Line, k.Value)
		}
		switch v.Kind {
		case yaml.ScalarNode:
			out[k.Value] = v.Value
		case yaml.SequenceNode:
			var list []string
			if err := v.Decode(&list); err != nil {
				return nil, fmt.Errorf("%s:%d: %s: want a value or a list of values", path, v.Line, k.Value)
			}
			out[k.Value] = strings.Join(list, ",")
		default:
			return nil, fmt.Errorf("%s:%d: %s: want a value or a list of values", path, v.Line, k.Value)
		}
	}
	return out, nil
}

func knownFlags(root *cobra.Command) []string {
	var names []string
	add := func(f *pflag.Flag) { names = append(names, f.Name) }
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
