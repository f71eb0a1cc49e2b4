// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/cmd/internal/trials"
	"github.com/tidemill/tidemill/internal/worker"
)

// bar shows one line that is redrawn, and above it what a person should not miss:
// trials without a score and attempts that are repeated. What many say is told once, and
// how many they were at the end.
type bar struct {
	screen     *Screen
	tracker    *Tracker
	color      bool
	messages   messages
	quit, done chan struct{}
}

const redraw = 200 * time.Millisecond

func newBar(s *Screen, t *Tracker) *bar {
	b := &bar{screen: s, tracker: t, color: app.Color(s), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.draw()
	}()
	return b
}

func (b *bar) draw() {
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		if s := b.tracker.Snapshot(); s.Sum().Total > 0 { // before that there is nothing to say
			b.screen.Show(BarLine(s, time.Now(), b.screen.Width(), b.color))
		}
		select {
		case <-b.quit:
			b.screen.Show("")
			return
		case <-tick.C:
		}
	}
}

func (b *bar) Close() {
	close(b.quit)
	<-b.done
	b.messages.flush(b.screen)
}

func (b *bar) Submitted(r Run) {
	verb := "run"
	if r.Continued {
		verb = "going on with run"
	}
	text := fmt.Sprintf("%s %s: %s, %s", verb, r.RunID, app.Count(r.Tasks, "task"), app.Count(r.Trials, "trial"))
	if r.Continued {
		text += fmt.Sprintf(", %d of them done", r.Done)
	}
	fmt.Fprintln(b.screen, text)
}

func (b *bar) Listening(url string) { fmt.Fprintln(b.screen, "the queue listens on", url) }

func (b *bar) Decided(d Decision) {
	text := fmt.Sprintf("run %s: %s by %s", d.RunID, d.Kind, d.By)
	if d.Why != "" {
		text += ": " + strings.Trim(strconv.QuoteToGraphic(d.Why), `"`)
	}
	fmt.Fprintln(b.screen, colored(b.color, yellow, text))
}

func (b *bar) Stopping(after time.Duration) {
	fmt.Fprintf(b.screen, "stopping: no new trial begins; running ones may go on for %s, Ctrl-C ends them at once\n", after)
}

func (b *bar) Observe(e worker.Event) {
	b.tracker.Observe(e)
	said := detail(e)
	text, kind := "", ""
	switch {
	case e.Kind == worker.Committed && !e.Outcome.Scored:
		text, kind = colored(b.color, red, e.Outcome.TerminationReason), said
	case e.Kind == worker.Retrying || e.Kind == worker.Dropped && e.Outcome.Status != bundle.Cancelled:
		text, kind = colored(b.color, yellow, string(e.Kind)), withoutNumbers(withoutID(said, e.TrialID))
	default:
		return
	}
	kind = text + "\x00" + kind
	if said != "" {
		text += ": " + strings.Trim(strconv.QuoteToGraphic(said), `"`)
	}
	b.messages.add(b.screen, logview.Visible([]byte(trials.Name(e.TaskID, e.TrialIndex))), text, kind)
}

// piece is a part of the bar's text; it is left out where there is no room for it.
type piece struct{ text, color string }

// BarLine is what the bar shows: done of total, by outcome, running, on the way to the
// store, time left.
func BarLine(s Snapshot, now time.Time, width int, color bool) string {
	c := s.Sum()
	pieces := []piece{
		{fmt.Sprintf("%d/%d", c.Done, c.Total), ""},
		{fmt.Sprintf("passed %d", c.Passed), green},
		{fmt.Sprintf("failed %d", c.Failed), red},
		{fmt.Sprintf("error %d", c.Errors()), yellow},
		{fmt.Sprintf("running %d", len(s.Running)), ""},
	}
	if n := len(s.Uploading); n > 0 {
		pieces = append(pieces, piece{fmt.Sprintf("uploading %d", n), dim})
	}
	if c.Before > 0 {
		pieces = append(pieces, piece{fmt.Sprintf("earlier %d", c.Before), dim})
	}
	if eta := s.ETA(now); eta > 0 {
		pieces = append(pieces, piece{"eta " + eta.Round(time.Second).String(), ""})
	}
	var text strings.Builder
	used := 0
	for i, p := range pieces {
		space := min(i, 1) * 2
		if used+space+len(p.text) >= width {
			break
		}
		text.WriteString("  "[:space])
		text.WriteString(colored(color && p.color != "", p.color, p.text))
		used += space + len(p.text)
	}
	room := min(30, width-used-2)
	if room < 5 {
		return text.String()
	}
	full := 0
	if c.Total > 0 {
		full = min(room, room*c.Done/c.Total)
	}
	return strings.Repeat("█", full) + strings.Repeat("░", room-full) + " " + text.String()
}
