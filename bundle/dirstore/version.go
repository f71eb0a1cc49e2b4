// SPDX-License-Identifier: Apache-2.0

package dirstore

import (
	"fmt"
	"io/fs"
	"syscall"

	"github.com/tidemill/tidemill/bundle"
)

// version tells what was written when; see the package comment.
func version(info fs.FileInfo) bundle.Version {
	var inode uint64
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino
	}
	return bundle.Version(fmt.Sprintf("%x-%x-%x", info.ModTime().UnixNano(), info.Size(), inode))
}

func describe(key string, info fs.FileInfo) bundle.Info {
	return bundle.Info{Key: key, Size: info.Size(), Modified: info.ModTime(), Version: version(info)}
}
