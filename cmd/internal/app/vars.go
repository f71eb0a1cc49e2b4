// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/manifest"
)

// VarFlags are values for the variables of run files.
type VarFlags struct{ vars []string }

// Register adds the flag to a command.
func (f *VarFlags) Register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.vars, "var", nil, "`NAME=VALUE` for ${NAME} in run files and packs; may be given again")
}

// LoadRuns reads run files with these variables, as [LoadRuns] does. The options are for
// what else is read with them.
func (f VarFlags) LoadRuns(paths ...string) ([]RunFile, manifest.LoadOptions, error) {
	load, err := f.Options()
	if err != nil {
		return nil, load, err
	}
	files, err := LoadRuns(paths, load)
	return files, load, err
}

// Options returns how run files are to be read.
func (f VarFlags) Options() (manifest.LoadOptions, error) {
	o := manifest.LoadOptions{Vars: map[string]string{}, LookupEnv: os.LookupEnv, Runtimes: RuntimeTypes}
	for _, v := range f.vars {
		name, val, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return o, Usage(fmt.Errorf("--var %q: want NAME=VALUE", v))
		}
		o.Vars[name] = val
	}
	return o, nil
}
