// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/progress"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/manifest"
)

const (
	// watchPause is between two looks.
	watchPause = 500 * time.Millisecond
	// watchShare: looking takes at most one part in so many of the time, so that watching
	// a long run doesn't slow it down.
	watchShare = 5
)

// follow tells about a run until it is complete or was ended.
func (o options) follow(cmd *cobra.Command, store bundle.Store, from *sources, args []string) error {
	ctx := cmd.Context()
	rec, err := watched(ctx, store, args)
	if err != nil {
		return err
	}
	show := showLines(cmd.OutOrStdout())
	if app.IsTerminal(cmd.OutOrStdout()) && !o.json {
		show = redraw(cmd.OutOrStdout())
	}
	c := newCounter(store, rec)
	for {
		began := time.Now()
		d, err := lookAgain(ctx, from, c)
		if err == nil {
			err = show(d)
		}
		if stopped(ctx) {
			return nil // the person has seen enough
		}
		if err != nil {
			return err
		}
		if d.Done >= d.Trials || d.Ended != nil {
			return nil
		}
		select {
		case <-time.After(max(watchPause, watchShare*time.Since(began))):
		case <-ctx.Done():
			return nil
		}
	}
}

func stopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), app.ErrInterrupted) }

func watched(ctx context.Context, store bundle.Store, args []string) (manifest.RunRecord, error) {
	if len(args) == 0 {
		return trials.Newest(ctx, store)
	}
	return trials.Load(ctx, store, args[0])
}

// showLines writes a JSON line when something changed.
func showLines(w io.Writer) func(*Description) error {
	var last []byte
	return func(d *Description) error {
		still := *d
		still.ETA, still.PerMinute = 0, 0
		if d.Live != nil { // time that goes by is no change
			calm := *d.Live
			calm.ETA = 0
			still.Live = &calm
		}
		compared, err := json.Marshal(still)
		if err != nil || bytes.Equal(compared, last) {
			return err
		}
		last = compared
		line, err := json.Marshal(d)
		if err != nil {
			return err
		}
		_, err = w.Write(append(line, '\n'))
		return err
	}
}

// redraw draws over what was drawn before.
func redraw(w io.Writer) func(*Description) error {
	lines := 0
	return func(d *Description) error {
		var text bytes.Buffer
		if err := d.Write(&text); err != nil {
			return err
		}
		width := progress.Width(w)
		var out strings.Builder
		if lines > 0 {
			fmt.Fprintf(&out, "\x1b[%dA", lines)
		}
		n := 0
		for line := range strings.Lines(text.String()) {
			out.WriteString("\r\x1b[2K" + cut(line, width) + "\n") // one that wraps would be two
			n++
		}
		out.WriteString("\r\x1b[2K" + d.bar(width, app.Color(w)) + "\n")
		n++
		out.WriteString("\x1b[J") // what was longer before
		lines = n
		_, err := io.WriteString(w, out.String())
		return err
	}
}

// cut returns as much of a line as fits.
func cut(line string, width int) string {
	runes := []rune(strings.TrimRight(line, "\n"))
	return string(runes[:min(len(runes), width-1)])
}

// bar is that of tidemill run.
func (d *Description) bar(width int, color bool) string {
	s := progress.Snapshot{Since: time.Now(), Runs: map[string]progress.Counts{d.RunID: {
		Total: d.Trials, Done: d.Done, Passed: d.Passed, Failed: d.Failed, Unscored: map[string]int{"": d.Unscored},
	}}}
	if d.Live != nil {
		s.Running, s.Uploading = d.Live.Running, d.Live.Uploading
	}
	return progress.BarLine(s, s.Since, width, color)
}
