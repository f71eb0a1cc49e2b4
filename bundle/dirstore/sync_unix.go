// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package dirstore

import (
	"errors"
	"os"
)

// syncPath brings what stands at a path to disk. An error of doing so that is harmless is
// none. What it takes differs between systems: os.File knows.
func syncPath(path string, flags int, harmless func(error) bool) error {
	f, err := os.OpenFile(path, os.O_RDONLY|flags, 0)
	if err != nil {
		return err
	}
	if err = f.Sync(); err != nil && harmless(err) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
