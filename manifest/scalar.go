// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Duration is a time span written as 30s, 10m or 1h30m.
type Duration time.Duration

// D returns the standard library's type.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String returns what [ParseDuration] reads.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalYAML writes the text form.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// IsZero lets omitempty leave it out.
func (d Duration) IsZero() bool { return d == 0 }

// UnmarshalYAML reads the text form.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := ParseDuration(n.Value)
	if err != nil {
		return err
	}
	*d = v
	return nil
}

// tooLong is what a duration looks like that is one but for its length: 292 years are the most.
var tooLong = regexp.MustCompile(`^\+?([0-9]+(\.[0-9]*)?(h|m|s|ms|us|µs|ns))+$`)

// ParseDuration reads a duration of 0 or more.
func ParseDuration(s string) (Duration, error) {
	v, err := time.ParseDuration(s)
	if err != nil && tooLong.MatchString(s) {
		return 0, fmt.Errorf("%q is too long; write 2500000h or less", s)
	}
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is not a duration; write for example 30s, 10m or 1h30m", s)
	}
	return Duration(v), nil
}

// Size is a number of bytes, written as 512, 64KiB, 2GiB or 1GB.
type Size int64

var units = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// ParseSize reads a size of 0 or more bytes.
func ParseSize(s string) (Size, error) {
	text, factor := strings.TrimSpace(s), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || v*float64(factor) >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size; write for example 64KiB, 512MiB or 2GiB", s)
	}
	return Size(v * float64(factor)), nil
}

// UnmarshalYAML reads the text form, or a plain number of bytes.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	v, err := ParseSize(n.Value)
	if err != nil {
		return err
	}
	*s = v
	return nil
}

// MarshalYAML writes the largest binary unit that loses nothing.
func (s Size) MarshalYAML() (any, error) { return s.String(), nil }

// String returns what [ParseSize] reads.
func (s Size) String() string {
	for i := 3; i >= 0; i-- {
		if b := units[i].bytes; s != 0 && int64(s)%b == 0 {
			return strconv.FormatInt(int64(s)/b, 10) + units[i].suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
