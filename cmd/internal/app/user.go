// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"os/user"
	"strconv"
)

// Whoami is who gives an order, for the records of it: $USER, or else whom the system
// knows by the process's uid, or else the uid itself, as in containers.
func Whoami() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	uid := strconv.Itoa(os.Getuid())
	if u, err := user.LookupId(uid); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid " + uid
}
