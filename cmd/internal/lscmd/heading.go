// SPDX-License-Identifier: Apache-2.0

package lscmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/manifest"
)

// heading tells the runs of a group apart.
func heading(w io.Writer, rec manifest.RunRecord, i int) error {
	apart := ""
	if i > 0 {
		apart = "\n"
	}
	_, err := fmt.Fprintf(w, "%s%s\n", apart, strings.TrimRight("run "+rec.RunID+"  "+trials.Values(rec.Run.Values()), " "))
	return err
}
