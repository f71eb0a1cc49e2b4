// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"os/user"
	"strconv"
	"testing"
)

func TestWhoami(t *testing.T) {
	t.Setenv("USER", "somebody")
	if got := Whoami(); got != "somebody" {
		t.Errorf("%q, want what USER says", got)
	}
	want := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		want = u.Username
	}
	t.Setenv("USER", "")
	if got := Whoami(); got != want {
		t.Errorf("%q without USER, want %q", got, want)
	}
}
