// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package dirstore

import (
	"errors"
	"os"
)

// Only Linux has files without a name.

func openUnnamed(string, uint32) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkUnnamed(*os.File, string) error { return errors.ErrUnsupported }

func descriptorPath(*os.File) string { return "" }
