// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// EnvPrefix begins the name of every environment variable that stands for a flag.
const EnvPrefix = "TIDEMILL_"

// ownVariable is the flag without a variable: agents and graders find the id of their own
// run in it, and one that calls tidemill itself must not go on with that run.
const ownVariable = "run-id"

// EnvName returns the variable that stands for a flag: --drain-timeout is
// TIDEMILL_DRAIN_TIMEOUT.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FillFlags gives flags that were not set on the command line the value of their
// variable, else of the config file. It is a root command's PersistentPreRunE.
func FillFlags(cmd *cobra.Command, _ []string) error {
	var config map[string]setting
	if path := configFile(cmd); path != "" {
		var err error
		if config, err = readConfig(cmd.Root(), path); err != nil {
			return Usage(err)
		}
	}
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "config" || f.Name == "help" || f.Name == "version" {
			return
		}
		if v, set := os.LookupEnv(EnvName(f.Name)); set && f.Name != ownVariable {
			errs = append(errs, fill(cmd, f, []string{v}, EnvName(f.Name)))
		} else if s, set := config[f.Name]; set {
			errs = append(errs, fill(cmd, f, s.values, s.where))
		}
	})
	return Usage(errors.Join(errs...))
}

// fill sets a flag, which says where a bad value came from.
func fill(cmd *cobra.Command, f *pflag.Flag, values []string, from string) error {
	if _, list := f.Value.(pflag.SliceValue); !list && len(values) != 1 {
		return fmt.Errorf("%s: %s: want one value, got a list of %d", from, f.Name, len(values))
	}
	for _, v := range values {
		if err := cmd.Flags().Set(f.Name, v); err != nil {
			return fmt.Errorf("%s: %w", from, badValue(f, v, err))
		}
	}
	return cmd.Flags().SetAnnotation(f.Name, originKey, []string{from})
}

func configFile(cmd *cobra.Command) string {
	f := cmd.Flags().Lookup("config")
	if f == nil {
		return ""
	}
	if f.Changed {
		return f.Value.String()
	}
	return os.Getenv(EnvName(f.Name))
}
