// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"os"
)

// Only for ext4 is it worth while.

type fitness struct{ mode uint32 }

func (s *spares) open() error { return errors.ErrUnsupported }

func (s *spares) isFit(*os.File, string) bool { return false }

func touchAt(*os.File, string) error { return nil }
