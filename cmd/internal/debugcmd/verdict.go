// SPDX-License-Identifier: Apache-2.0

package debugcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/kept"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/cmd/internal/trials"
)

// verdict prints what came out and where it is, and returns the exit code as an error.
func (s *session) verdict(ctx context.Context, w io.Writer, worked error) error {
	if s.runID == "" {
		return worked
	}
	box, err := s.noteKept(ctx)
	if err != nil {
		return errors.Join(worked, err)
	}
	c, err := bundle.FindCommit(ctx, s.store, bundle.Keys{Run: s.runID}, s.trialID, 1)
	if err != nil {
		return errors.Join(worked, err)
	}
	if c != nil && s.json {
		if err := app.PrintJSON(w, c); err != nil {
			return err
		}
	} else if c != nil {
		s.print(w, *c)
	}
	if box != nil && !s.json {
		s.printKept(w, *box)
	}
	if worked != nil || c == nil {
		return worked
	}
	if !c.Outcome.Scored {
		return app.Exit(app.ExitUnscored)
	}
	return nil
}

func (s *session) print(w io.Writer, c bundle.Commit) {
	o, g := c.Outcome, c.Grade
	say := func(format string, args ...any) {
		fmt.Fprintln(w, logview.Visible([]byte(fmt.Sprintf(format, args...))))
	}
	state := trials.Trial{Commit: &c}.State()
	text := fmt.Sprintf("%s: %s, %s", state, o.Status, o.TerminationReason)
	if g.Score != nil {
		text += fmt.Sprintf(", score %s, passes with %s", short(*g.Score), short(g.PassThreshold))
	}
	say("%s", text)
	if o.Detail != "" {
		say("%s", o.Detail)
	}
	say("%s", stores.Join(s.store.URL(), bundle.Keys{Run: s.runID}.AttemptFiles(c.TaskID, c.TrialIndex, c.Attempt)))
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func (s *session) printKept(w io.Writer, k kept.Sandbox) {
	id := trials.ShortID(k.TrialID)
	fmt.Fprintf(w, "\nthe sandbox is kept until %s:\n", k.ExpiresAt.Local().Format(time.DateTime))
	fmt.Fprintf(w, "  tidemill exec --data %s %s -- sh\n", s.data, id)
	where := ""
	if s.data != DefaultData {
		where = " --data " + s.data
	}
	fmt.Fprintf(w, "  tidemill debug%s --rm %s\n", where, id)
}

// removeKept is debug --rm.
func (o options) removeKept(cmd *cobra.Command, args []string) (err error) {
	ctx := cmd.Context()
	store, err := stores.OpenExisting(ctx, o.data)
	if err != nil {
		return err
	}
	defer app.Closing(&err, store.Close)
	list, err := kept.Open(ctx, store, o.data)
	if err != nil {
		return err
	}
	defer app.Closing(&err, list.Close)
	chosen := list.Sandboxes
	if len(args) == 1 {
		t, err := trials.Find(ctx, store, args[0])
		if err != nil {
			return err
		}
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(s kept.Sandbox) bool { return s.TrialID != t.Row.TrialID })
		if len(chosen) == 0 {
			return app.Usage(app.Hint(fmt.Errorf("no sandbox of trial %s/%s is kept in %s", t.Run, t.Name(), o.data),
				"tidemill debug --rm without a trial removes all that are"))
		}
	}
	for _, s := range chosen {
		if err := list.Remove(ctx, s); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "removed the sandbox of %s/%s\n", s.RunID, logview.Visible([]byte(trials.Name(s.TaskID, s.TrialIndex))))
	}
	if len(chosen) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "no sandboxes are kept in %s\n", o.data)
	}
	return nil
}
