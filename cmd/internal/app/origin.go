// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"

	"github.com/spf13/pflag"
)

// originKey annotates a flag that [FillFlags] has set with where its value is from.
const originKey = "tidemill_origin"

// Rank says how much the place weighs where a flag has its value from.
type Rank int

// A later place goes before an earlier one.
const (
	ByDefault Rank = iota
	ByConfig
	ByVariable
	ByCommandLine
)

// Origin says where a flag has its value from, and how to name that place: the variable,
// the line of the config file, or the flag itself.
func Origin(f *pflag.Flag) (Rank, string) {
	if f == nil || !f.Changed {
		return ByDefault, ""
	}
	from := f.Annotations[originKey]
	switch {
	case len(from) == 0:
		return ByCommandLine, "--" + f.Name
	case strings.HasPrefix(from[0], EnvPrefix):
		return ByVariable, from[0]
	}
	return ByConfig, from[0]
}
