// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// ownerVar makes the test binary an owner of the directory that it names, until it is
// killed.
const ownerVar = "TIDEMILL_TEST_OWNER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerVar); dir != "" {
		if _, err := Acquire(dir, "tidemill test"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("owner")
		select {}
	}
	goleak.VerifyTestMain(m)
}
