// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package dirstore

import (
	"errors"
	"os"
	"time"
)

// Only Linux has files without a name.

func openUnnamed(string, uint32) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkUnnamed(*os.File, string) error { return errors.ErrUnsupported }

// setTimes sets access and modification of a file, in nanoseconds where there are such.
func setTimes(f *os.File, to time.Time) error { return os.Chtimes(f.Name(), to, to) }
