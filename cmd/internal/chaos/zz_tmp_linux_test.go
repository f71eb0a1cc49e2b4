// SPDX-License-Identifier: Apache-2.0

package chaos

import "testing"

func TestTmpBuild(t *testing.T) { t.Log(buildTidemill(t, "/tmp/tm/cb", true)) }
