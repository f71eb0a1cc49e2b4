// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// report is what a trial of the fleet came to.
type report struct {
	Seed    uint64  `json:"seed"`
	Trials  int     `json:"trials"`
	Fleet   int     `json:"workers_at_a_time"`
	Slots   int     `json:"slots"`
	LeaseS  float64 `json:"lease_s"`
	Nodes   string  `json:"nats_nodes"`
	WallS   float64 `json:"wall_s"`
	RunS    float64 `json:"run_s"`
	Stalled bool    `json:"stalled"`

	Faults     map[kind]*count `json:"faults"`
	NeverBegun int             `json:"faults_never_begun"`

	Lost     int `json:"lost"`
	Double   int `json:"double"`
	Wrong    int `json:"wrong_verdicts"`
	Unscored int `json:"unscored"`

	Attempts   int    `json:"attempts"`
	Wasted     int    `json:"wasted_attempts"`
	Crashed    int    `json:"attempts_without_end"`
	Superseded int    `json:"superseded"`
	HandedOver int    `json:"stopped"`
	Skewed     int    `json:"claimed_by_a_wrong_clock"`
	Bundles    int    `json:"bundles_verified"`
	Without    int    `json:"ended_without_bundle"`
	Unsent     int    `json:"bundles_unsent"`
	Deliveries uint64 `json:"deliveries"`

	Workers             int `json:"worker_processes"`
	StoreRequests       int `json:"store_requests"`
	StoreRequestsBroken int `json:"store_requests_broken"`

	Reruns    []rerun            `json:"reruns"`
	RerunBar  float64            `json:"rerun_bar_s"`
	Elections map[kind][]float64 `json:"elections_s"`

	Problems []string `json:"problems"`
	Log      []entry  `json:"log"`
	Plan     []fault  `json:"plan"`
}

// count is how often a kind of fault was there.
type count struct {
	Planned  int `json:"planned"`
	Injected int `json:"injected"`
	Skipped  int `json:"skipped,omitempty"` // this machine can't have it
}

func newReport(plan []fault) report {
	p := report{Faults: map[kind]*count{}, Elections: map[kind][]float64{}, Plan: plan, Problems: []string{}}
	for _, f := range plan {
		p.count(f.Kind).Planned++
	}
	return p
}

func (p *report) count(k kind) *count {
	if p.Faults[k] == nil {
		p.Faults[k] = &count{}
	}
	return p.Faults[k]
}

func (p *report) add(f finding) {
	one := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	p.Lost += one(f.lost)
	p.Double += one(f.double)
	p.Wrong += one(f.wrong)
	p.Unscored += one(f.unscored)
	p.Attempts += f.attempts
	p.Wasted += max(0, f.attempts-1)
	p.Crashed += f.crashed
	p.Superseded += f.superseded
	p.HandedOver += f.handedOver
	p.Skewed += f.skewed
	p.Bundles += f.bundles
	p.Without += f.without
	p.Reruns = append(p.Reruns, f.reruns...)
}

// figures are the rows of the table.
func (p *report) figures() [][2]string {
	rows := [][2]string{
		{"trials planned", fmt.Sprint(p.Trials)},
		{"lost", fmt.Sprint(p.Lost)},
		{"committed twice", fmt.Sprint(p.Double)},
		{"wrong verdicts", fmt.Sprint(p.Wrong)},
		{"given up unscored, after trouble of ours", fmt.Sprint(p.Unscored)},
		{"attempts", fmt.Sprint(p.Attempts)},
		{"of them beyond the first of a trial", fmt.Sprint(p.Wasted)},
		{"of them without an end: their worker died", fmt.Sprint(p.Crashed)},
		{"of them superseded: another was committed first", fmt.Sprint(p.Superseded)},
		{"of them handed over or stopped", fmt.Sprint(p.HandedOver)},
		{"of them claimed by a clock that was off", fmt.Sprint(p.Skewed)},
		{"bundles whose every file has its sha256", fmt.Sprint(p.Bundles)},
		{"attempts that ended and left no bundle", fmt.Sprint(p.Without)},
		{"bundles left with a worker, unsent", fmt.Sprint(p.Unsent)},
		{"deliveries by the queue, a second before the end", fmt.Sprint(p.Deliveries)},
		{"of them beyond one a trial", fmt.Sprint(int(p.Deliveries) - p.Trials)},
		{"worker processes", fmt.Sprint(p.Workers)},
		{"requests to the store", fmt.Sprint(p.StoreRequests)},
		{"of them broken on purpose", fmt.Sprint(p.StoreRequestsBroken)},
		{"from kill -9 until the trial runs again", p.rerunText(rerun.all)},
		{"the same less the time in which the queue had no leader", p.rerunText(rerun.own)},
		{"the same where queue and store were whole meanwhile", p.rerunText(rerun.calm)},
		{"what was broken while those waited that are late without a leader's absence", p.lateText()},
	}
	for _, k := range allKinds {
		if list := p.Elections[k]; len(list) > 0 {
			rows = append(rows, [2]string{"from " + string(k) + " until others lead", spread(list)})
		}
	}
	return append(rows, [2]string{"time", fmt.Sprintf("%.0f s of work, %.0f s in all", p.RunS, p.WallS)})
}

// What of a rerun counts, and whether it does.
func (r rerun) all() (float64, bool)  { return r.Seconds, true }
func (r rerun) own() (float64, bool)  { return r.Own, true }
func (r rerun) calm() (float64, bool) { return r.Seconds, len(r.Meanwhile) == 0 }

// rerunText says how soon trials of killed workers ran again, by one way to count, and how
// many later than the bar.
func (p *report) rerunText(by func(rerun) (float64, bool)) string {
	var list []float64
	over := 0
	for _, r := range p.Reruns {
		seconds, counts := by(r)
		if !counts {
			continue
		}
		list = append(list, seconds)
		if seconds > p.RerunBar {
			over++
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s; %d later than lease + 5 s", spread(list), over)
}

// lateText counts what was broken while those waited that ran again too late by [rerun.own].
func (p *report) lateText() string {
	counts := map[string]int{}
	for _, r := range p.Reruns {
		if r.Own > p.RerunBar {
			counts[cmp.Or(strings.Join(words(r.Meanwhile), "+"), "nothing")]++
		}
	}
	var list []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s: %d", what, counts[what]))
	}
	return cmp.Or(strings.Join(list, ", "), "none is")
}

func words(kinds []kind) (list []string) {
	for _, k := range kinds {
		list = append(list, string(k))
	}
	return list
}

// spread is median and maximum of some seconds.
func spread(list []float64) string {
	list = slices.Sorted(slices.Values(list))
	return fmt.Sprintf("median %.1f s, at most %.1f s, of %d", list[len(list)/2], list[len(list)-1], len(list))
}

// markdown is the report for people.
func (p *report) markdown(command string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Seed %d, %d trials, %d workers of %d slots, leases of %v, NATS in %s:\n\n    %s\n\n", p.Seed, p.Trials, p.Fleet, p.Slots,
		time.Duration(p.LeaseS*float64(time.Second)), p.Nodes, command)
	b.WriteString("| fault | planned | injected |\n|---|---|---|\n")
	for _, k := range allKinds {
		if c := p.Faults[k]; c != nil {
			note := ""
			if c.Skipped > 0 {
				note = fmt.Sprintf(" (%d not possible here)", c.Skipped)
			}
			fmt.Fprintf(&b, "| `%s` | %d | %d%s |\n", k, c.Planned, c.Injected, note)
		}
	}
	b.WriteString("\n| figure | |\n|---|---|\n")
	for _, row := range p.figures() {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	return b.String()
}
