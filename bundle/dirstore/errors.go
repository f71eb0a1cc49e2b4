// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/tidemill/tidemill/bundle"
)

// condition adds to an error of the file system what it means for a store. The
// original stays in the chain.
func condition(err error) error {
	var errno syscall.Errno
	if err == nil || !errors.As(err, &errno) {
		return err
	}
	var means error
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		means = bundle.ErrNoSpace
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		means = bundle.ErrDenied
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ESTALE:
		means = bundle.ErrUnavailable
	default:
		return err
	}
	return fmt.Errorf("%w: %w", means, err)
}
