// SPDX-License-Identifier: Apache-2.0

package manpage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestPage(t *testing.T) {
	root := &cobra.Command{Use: "mill", Short: "Grind", Run: func(*cobra.Command, []string) {}}
	root.PersistentFlags().String("config", "", "YAML `file`")
	cmd := &cobra.Command{
		Use: "grind GRAIN", Short: `Grind - with C:\stones`,
		Long: "Grind grinds.\n.Dots and 'quotes' mean nothing.\n\nOf two ways:\n\n  wind   slow\n  water  fast\n\nExit status:\n  0  ground",
		Example: `  mill grind wheat
  mill grind -n 2 rye`,
		Run: func(*cobra.Command, []string) {},
	}
	cmd.Flags().IntP("stones", "n", 2, "how many `stones`")
	cmd.Flags().Bool("fine", false, "grind fine")
	root.AddCommand(cmd)
	want := `.TH "MILL\-GRIND" 1 "2026\-11\-29" "tidemill v1" Tidemill
.SH "NAME"
mill\-grind \- Grind \- with C:\estones
.SH "SYNOPSIS"
.B mill grind GRAIN [flags]
.SH "DESCRIPTION"
Grind grinds.
\&.Dots and 'quotes' mean nothing.
.PP
Of two ways:
.PP
.PP
.nf
.RS
wind   slow
water  fast
.RE
.fi
.PP
.SH "EXIT STATUS"
.PP
.nf
.RS
0  ground
.RE
.fi
.SH "OPTIONS"
.TP
\fB\-\-fine\fR
grind fine
.TP
\fB\-h\fR, \fB\-\-help\fR
help for grind
.TP
\fB\-n\fR, \fB\-\-stones\fR \fIstones\fR
how many stones (default 2)
.SH "OPTIONS OF EVERY COMMAND"
.TP
\fB\-\-config\fR \fIfile\fR
YAML file
.SH "EXAMPLES"
.PP
.nf
.RS
mill grind wheat
mill grind \-n 2 rye
.RE
.fi
.SH "SEE ALSO"
.BR mill (1)
`
	date := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	if diff := cmp.Diff(want, Page(cmd, Config{Version: "v1", Date: date})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
