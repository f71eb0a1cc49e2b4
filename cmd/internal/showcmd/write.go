// SPDX-License-Identifier: Apache-2.0

package showcmd

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/logview"
	"github.com/tidemill/tidemill/cmd/internal/trials"
)

// shownFiles is how many files are listed for a person.
const shownFiles = 40

// keyWidth lines the rows of one writer up with those of another.
const keyWidth = len("unscored") + 2

// rows writes keys and values.
type rows struct{ w *tabwriter.Writer }

func newRows(w io.Writer) rows { return rows{tabwriter.NewWriter(w, keyWidth, 0, 2, ' ', 0)} }

// add writes a row, for each line of the value one; an empty value has none.
func (r rows) add(key, format string, args ...any) {
	for line := range strings.SplitSeq(strings.TrimRight(fmt.Sprintf(format, args...), "\n"), "\n") {
		if line == "" {
			continue
		}
		fmt.Fprintf(r.w, "%s\t%s\n", key, logview.Visible([]byte(line)))
		key = ""
	}
}

func (d *description) write(w io.Writer) error {
	r := newRows(w)
	r.add("trial", "%s", d.TrialID)
	r.add("task", "%s", trials.Name(d.TaskID, d.TrialIndex))
	r.add("run", "%s", d.RunID)
	r.add("state", "%s", d.state())
	if d.Commit != nil {
		d.result(r)
	}
	for i, a := range d.Attempts {
		key := ""
		if i == 0 {
			key = "attempts"
		}
		r.add(key, "%s", a.line(d))
	}
	if d.Files.Path != "" && len(d.Files.List) > 0 {
		r.add("files", "%s", d.Files.Path)
		for i, f := range d.Files.List {
			if i == shownFiles {
				r.add("", "… and %d more", len(d.Files.List)-i)
				break
			}
			r.add("", "%8s  %s", size(f.Size), f.Path)
		}
	}
	return r.w.Flush()
}

func (d *description) state() string {
	switch {
	case d.Running != nil:
		began := app.Took(time.Since(d.Running.Since))
		if d.Worker != "" {
			return fmt.Sprintf("running on %s (%s), began %s ago", d.Worker, d.Running.Phase, began)
		}
		return fmt.Sprintf("running: %s, began %s ago", d.Running.Phase, began)
	case d.Commit == nil && len(d.Attempts) == 0:
		return "missing: it has not begun"
	case d.Commit == nil:
		return "missing: no attempt has ended with a result"
	case d.Commit.Epoch < d.Epoch:
		return fmt.Sprintf("%s in epoch %d; epoch %d is open", d.State, d.Commit.Epoch, d.Epoch)
	}
	return d.State
}

func (d *description) result(r rows) {
	o, g := d.Commit.Outcome, d.Commit.Grade
	r.add("outcome", "%s", ended(o, ", "))
	if o.FailureClass != bundle.NoFailure {
		r.add("failure", "%s%s", o.FailureClass, inPhase(o))
	}
	r.add("detail", "%s", o.Detail)
	r.add("flags", "%s", strings.Join(o.Flags, ", "))
	if g.Score != nil {
		r.add("score", "%s, passes with %s", number(*g.Score), number(g.PassThreshold))
	}
	if len(g.Rewards) > 1 {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(g.Rewards)) {
			list = append(list, name+" "+number(g.Rewards[name]))
		}
		r.add("rewards", "%s", strings.Join(list, ", "))
	}
	for _, s := range g.Steps {
		if s.Score != nil {
			r.add("step", "%s %s", s.Name, number(*s.Score))
		}
	}
	if g.Reasons != o.Detail { // which is all that there is where nothing was graded
		r.add("reasons", "%s", g.Reasons)
	}
	if again := d.Commit.Regraded; again != nil {
		r.add("regraded", "what attempt %d left, by the grader of pack %.12s", again.Attempt, again.Pack)
	}
	metrics(r, d.Commit.Metrics)
}

// ended is how an attempt ended and why, which is one word where one says both.
func ended(o bundle.Outcome, between string) string {
	if string(o.Status) == o.TerminationReason {
		return o.TerminationReason
	}
	return string(o.Status) + between + o.TerminationReason
}

func inPhase(o bundle.Outcome) string {
	if o.Phase == "" {
		return ""
	}
	if o.Stage != "" {
		return " in " + o.Phase + ", at " + o.Stage
	}
	return " in " + o.Phase
}

func metrics(r rows, m bundle.Metrics) {
	var parts []string
	for _, p := range []struct {
		name string
		d    *bundle.Seconds
	}{
		{"provision", m.ProvisioningDurationS},
		{"setup", m.SetupDurationS},
		{"agent", m.AgentSpanDurationS},
		{"grade", m.GradingDurationS},
		{"teardown", m.TeardownDurationS},
	} {
		if p.d != nil {
			parts = append(parts, p.name+" "+seconds(*p.d))
		}
	}
	r.add("took", "%s: %s", seconds(m.LatencyTotalS), strings.Join(parts, ", "))
	if m.AgentExitCode != nil {
		exit := strconv.Itoa(*m.AgentExitCode)
		if m.AgentSignal != "" {
			exit += ", " + m.AgentSignal
		}
		r.add("agent", "exit code %s; %d bytes of output", exit, m.AgentOutputBytes)
	}
	if m.Turns > 0 || m.APICalls > 0 || m.ToolCalls > 0 {
		r.add("calls", "%s, %s, %s", app.Count(int(m.Turns), "turn"), app.Count(int(m.APICalls), "API call"), app.Count(int(m.ToolCalls), "tool call"))
	}
	if u := m.Usage; u.PromptTokens+u.CompletionTokens > 0 {
		r.add("tokens", "%d prompt, %d completion", u.PromptTokens, u.CompletionTokens)
	}
	if m.CostUSD != nil {
		r.add("cost", "%s USD", number(*m.CostUSD))
	}
}

func (a attempt) line(d *description) string {
	parts := []string{fmt.Sprintf("%d", a.Attempt)}
	if d.Epoch > 1 {
		parts[0] += fmt.Sprintf(" (epoch %d)", a.Epoch)
	}
	switch {
	case a.Running:
		parts = append(parts, "running")
	case a.Outcome == nil:
		parts = append(parts, a.unended(d))
	default:
		parts = append(parts, ended(*a.Outcome, " "))
	}
	if a.Counts {
		parts = append(parts, "counts")
	}
	if a.Replaced {
		parts = append(parts, "superseded")
	}
	if a.Why != "" && !a.Counts {
		parts = append(parts, a.Why)
	}
	if !a.Began.IsZero() {
		parts = append(parts, "began "+a.Began.Local().Format(time.DateTime))
	}
	return strings.Join(append(parts, "on "+cmp.Or(a.Worker, "an unknown worker")), ", ")
}

// unended says what can be told of an attempt that has no end.
func (a attempt) unended(d *description) string {
	for _, other := range d.Attempts {
		if other.Attempt == a.Attempt+1 {
			took := max(0, other.Began.Sub(a.Began)).Round(time.Second)
			return fmt.Sprintf("lost: its worker died or lost its lease; the next attempt began %s later", took)
		}
	}
	return "no end: its process died, or runs it elsewhere"
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func seconds(s bundle.Seconds) string {
	return strconv.FormatFloat(float64(s.Millis())/1000, 'f', 3, 64) + "s"
}

// size is a number of bytes for people.
func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n), 0
	for f >= 1024 && unit < 4 {
		f, unit = f/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", f, " KMGT"[unit])
}
