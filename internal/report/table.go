// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// TableOptions say how a table looks.
type TableOptions struct {
	// MaxTasks is how many tasks are shown. Defaults to 20; below 0 shows none.
	MaxTasks int
	// Color uses the terminal's colours.
	Color bool
	// Path says where people find an object of the store. Nil: its key says it.
	Path func(key string) string
}

// WriteTable writes what a person wants to know of a run: which it is, a row for each
// task, and below them the run as a whole. Where all tasks fit they are in plan order,
// else the worst come first: those with trials that have no score, then by success rate.
func WriteTable(w io.Writer, agg *Aggregate, o TableOptions) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", title(agg))
	rows, heading := chooseTasks(agg, cmp.Or(o.MaxTasks, 20))
	if len(rows) > 0 {
		writeRows(&b, rows, o.Color)
		b.WriteString(heading)
		b.WriteString("\n")
	}
	writeOverall(&b, agg)
	writeReasons(&b, agg, o)
	writeEarlyEnds(&b, agg.Outcomes)
	writeRest(&b, agg)
	writeGraders(&b, agg)
	writeBadExits(&b, agg, o)
	_, err := io.WriteString(w, b.String())
	return err
}

// chooseTasks picks the tasks to show, and says what was left out.
func chooseTasks(agg *Aggregate, limit int) (rows []Task, note string) {
	limit = max(0, limit)
	if agg.TotalTasks <= int64(limit) {
		return agg.Tasks, ""
	}
	rows = slices.Clone(agg.Tasks)
	slices.SortStableFunc(rows, func(a, b Task) int {
		return cmp.Or(
			-cmp.Compare(a.TotalTrials-a.Scored, b.TotalTrials-b.Scored),
			cmp.Compare(orElse(a.SuccessRate, 0), orElse(b.SuccessRate, 0)),
			cmp.Compare(orElse(a.AvgScore, 0), orElse(b.AvgScore, 0)),
		)
	})
	rows = rows[:min(limit, len(rows))]
	of := ""
	if agg.TasksSidecar != nil {
		of = fmt.Sprintf(" of the first %d", len(agg.Tasks))
	}
	return rows, fmt.Sprintf("worst first%s; all %d tasks are in %s\n", of, agg.TotalTasks, PerTaskFile)
}

const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	plain  = "\x1b[0m"
)

// maxTaskWidth is the room for a task's id.
const maxTaskWidth = 40

func writeRows(b *strings.Builder, tasks []Task, color bool) {
	lines := [][]string{{"task", "n", "scored", "passed", "rate", "score", "p50", "p90", "without a score"}}
	for _, t := range tasks {
		lines = append(lines, []string{
			shorten(printable(t.TaskID), maxTaskWidth),
			itoa(t.TotalTrials), itoa(t.Scored), itoa(t.Successful),
			Percent(t.SuccessRate), decimals(t.AvgScore), latencyOf(t, t.LatencyP50S), latencyOf(t, t.LatencyP90S),
			without(t.UnscoredByReason, t.Missing),
		})
	}
	for n, line := range columns(lines, func(i int) bool { return i > 0 && i < len(lines[0])-1 }) {
		shade := ""
		if color && n > 0 {
			shade = shadeOf(tasks[n-1])
		}
		b.WriteString(shade)
		b.WriteString(line)
		if shade != "" {
			b.WriteString(plain)
		}
		b.WriteString("\n")
	}
}

func shadeOf(t Task) string {
	switch {
	case t.Scored < t.TotalTrials:
		return yellow
	case t.Successful == t.Scored:
		return green
	case t.Successful == 0:
		return red
	default:
		return ""
	}
}

func writeOverall(b *strings.Builder, agg *Aggregate) {
	parts := []string{"overall", "n " + itoa(agg.TotalTrials), "scored " + itoa(agg.Scored)}
	parts = append(parts, "success "+rateAndInterval(agg))
	parts = append(parts, passParts(agg.PassK)...)
	if agg.Committed > 0 {
		parts = append(parts, "p50 "+seconds(agg.LatencyP50S), "p90 "+seconds(agg.LatencyP90S))
	}
	fmt.Fprintln(b, strings.Join(parts, "  "))
}

// writeReasons tells why trials have no score, with a trial to look at for each reason.
func writeReasons(b *strings.Builder, agg *Aggregate, o TableOptions) {
	if rest := without(agg.Outcomes.UnscoredByReason, agg.Missing.Count); rest != "" {
		fmt.Fprintf(b, "without a score: %s\n", rest)
		writeExamples(b, agg.Outcomes, o)
		if agg.Bounds != nil {
			fmt.Fprintf(b, "success rate over all trials: at least %s, at most %s\n", Percent(&agg.Bounds.Worst), Percent(&agg.Bounds.Best))
		}
	}
}

// writeRest tells what else there is to know of a run.
func writeRest(b *strings.Builder, agg *Aggregate) {
	if agg.TotalCostUSD != nil {
		fmt.Fprintf(b, "cost: %s USD\n", strconv.FormatFloat(*agg.TotalCostUSD, 'f', 4, 64))
	}
	if agg.Epochs.Open > 0 {
		fmt.Fprintf(b, "put back and not done yet: %d, shown with their earlier outcome\n", agg.Epochs.Open)
	}
	if e := agg.Ended; e != nil {
		text := "ended by " + printable(e.Kind)
		if e.Reason != "" {
			text += ": " + printable(e.Reason)
		}
		fmt.Fprintln(b, text)
	}
}

// passParts are pass@1, and pass@k and pass^k of the largest k that there are repeats
// for.
func passParts(list []PassK) []string {
	var parts []string
	for i, p := range list {
		if p.PassAt == nil {
			continue
		}
		last := i == len(list)-1 || list[i+1].PassAt == nil
		if p.K == 1 || last {
			parts = append(parts, fmt.Sprintf("pass@%d %s", p.K, decimals(p.PassAt)))
		}
		if p.K > 1 && last {
			parts = append(parts, fmt.Sprintf("pass^%d %s", p.K, decimals(p.PassHat)))
		}
	}
	return parts
}

// without lists why trials have no score, most frequent first.
func without(reasons map[string]int64, missing int64) string {
	words := mostFirst(reasons)
	var parts []string
	for i, word := range words {
		if i == 5 && len(words) > 6 {
			parts = append(parts, fmt.Sprintf("%d other reasons", len(words)-5))
			break
		}
		parts = append(parts, fmt.Sprintf("%d %s", reasons[word], shorten(printable(word), maxTaskWidth)))
	}
	if missing > 0 {
		parts = append(parts, fmt.Sprintf("%d missing", missing))
	}
	return strings.Join(parts, ", ")
}

// mostFirst are the words of a count, the most frequent first.
func mostFirst(counts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(-cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Percent shows a rate; nil is "-".
func Percent(rate *float64) string {
	if rate == nil {
		return "-"
	}
	shown := *rate * 100
	switch { // all and nothing are shown only where they are true
	case shown > 99.9 && shown < 100:
		shown = 99.9
	case shown > 0 && shown < 0.1:
		shown = 0.1
	}
	return strconv.FormatFloat(shown, 'f', 1, 64) + "%"
}

func decimals(x *float64) string {
	if x == nil {
		return "-"
	}
	if *x >= 1e6 || *x <= -1e6 {
		return strconv.FormatFloat(*x, 'g', 4, 64)
	}
	return strconv.FormatFloat(*x, 'f', 3, 64)
}

// latencyOf shows a latency where there is one.
func latencyOf(t Task, s float64) string {
	if t.Committed == 0 {
		return "-"
	}
	return seconds(s)
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) + "s" }
