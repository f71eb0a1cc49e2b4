// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The words that an entry may have. They are listed in messages in this order.
var (
	networkPolicies = []string{"no_internet", "limited_internet", "full_internet", TaskNetwork}
	agentProcesses  = []string{"end", "keep"}
	priorities      = []string{"low", "normal", "high"}
	retryClasses    = []string{"infra", "provider", "grader", "task"}
	storageTypes    = []string{"local", "s3"}
)

var (
	runName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
	typeName = regexp.MustCompile(`^[a-z0-9]+$`)
)

// maxName leaves room for a time and a number behind the name in a run id.
const maxName = 40

// checkRun checks what the types can't say: required entries, words, bounds and
// relations. Paths become absolute on the way.
func checkRun(d *decoder, r *Run, o LoadOptions, base string) {
	d.require("version", "name", "packs", "agent.name", "runtime.type")
	d.word("name", r.Name, runName, maxName)
	packs := checkPacks(d, r, base)
	checkGlobs(d, "select.tasks", r.Select.Tasks)
	checkGlobs(d, "select.exclude", r.Select.Exclude)
	atLeast(d, "select.limit", r.Select.Limit, 0)
	atLeast(d, "repeats", r.Repeats, 1)
	atMost(d, "repeats", r.Repeats, maxRepeats)
	checkAgent(d, &r.Agent, base)
	positive(d, "grade.timeout", r.Grade.Timeout)
	checkRuntime(d, r)
	checkRuntimeType(d, r, o, packs)
	checkPolicy(d, r, packs.harbor)
	checkTaskSecrets(d, r.TaskSecrets)
	oneOf(d, "agent_processes", r.AgentProcesses, agentProcesses)
	checkRetry(d, r.Retry)
	checkLimits(d, r)
	checkStorage(d, r.Storage.Artifacts, base)
	d.word("pool", r.Pool, runName, 63)
	oneOf(d, "priority", r.Priority, priorities)
}

// packsSeen is what the formats of a run's packs come to.
type packsSeen struct {
	harbor  bool   // all of them are of Harbor tasks
	dataset string // the first that isn't, as it was written
}

// checkPacks finds the packs.
func checkPacks(d *decoder, r *Run, base string) packsSeen {
	seen := packsSeen{harbor: len(r.Packs) > 0}
	if d.given("packs") && len(r.Packs) == 0 {
		d.problem("packs", "is empty", "list one directory at least")
	}
	for i, p := range r.Packs {
		entry := index("packs", i)
		if p == "" {
			continue // a wrong type was reported, or nothing was written
		}
		r.Packs[i] = anchor(base, p)
		format, text, fix := packFormat(r.Packs[i])
		seen.harbor = seen.harbor && format != nativeFormat
		if text == "" && format == nativeFormat && seen.dataset == "" {
			seen.dataset = p
		}
		if text != "" {
			d.problem(entry, text, fix)
		} else if j := slices.Index(r.Packs, r.Packs[i]); j < i {
			d.problem(entry, "is the same directory as packs["+fmt.Sprint(j)+"]", "list each pack once")
		}
	}
	return seen
}

func notDir(dir string) string {
	info, err := os.Stat(dir)
	switch {
	case err != nil && os.IsNotExist(err):
		return "no such directory: " + dir
	case err != nil:
		return "can't be looked at: " + err.Error()
	case !info.IsDir():
		return "is not a directory: " + dir
	}
	return ""
}

func checkRuntime(d *decoder, r *Run) {
	positive(d, "runtime.timeout", r.Runtime.Timeout)
	res := r.Runtime.Resources
	atLeast(d, "runtime.resources.cpus", res.CPUs, 0)
	atLeast(d, "runtime.resources.pids", res.Pids, 0)
	atLeast(d, "runtime.resources.files", res.Files, 0)
	atLeast(d, "runtime.resources.gpus", res.GPUs, 0)
	if len(res.GPUTypes) > 0 && res.GPUs == 0 {
		d.problem("runtime.resources.gpu_types", "needs runtime.resources.gpus", "say how many GPUs a trial gets")
	}
}

func checkPolicy(d *decoder, r *Run, harbor bool) {
	if r.Runtime.Type == "subprocess" && r.NetworkPolicy == "" {
		n := d.places["runtime"] // what makes it necessary; the line of the file's first key says nothing
		d.c.add(Problem{
			Line: n.Line, Col: n.Column, Entry: "network_policy", Text: "is missing: a subprocess run has no default",
			Fix: "write network_policy: full_internet, or another of " + strings.Join(networkPolicies, ", "),
		})
	}
	if r.NetworkPolicy == "" && r.Runtime.Type != "subprocess" {
		r.NetworkPolicy = "no_internet"
		if harbor {
			r.NetworkPolicy = TaskNetwork
		}
	}
	oneOf(d, "network_policy", r.NetworkPolicy, networkPolicies)
	r.LimitedInternetAllowlist = checkAllowlist(d, r.NetworkPolicy, r.LimitedInternetAllowlist)
}

func checkRetry(d *decoder, r Retry) {
	atLeast(d, "retry.max_attempts", r.MaxAttempts, 1)
	if d.given("retry.on") && len(r.On) == 0 {
		d.problem("retry.on", "is empty", "leave it out for the default, or write max_attempts: 1 for no retries")
	}
	for i, class := range r.On {
		oneOf(d, index("retry.on", i), class, retryClasses)
	}
	positive(d, "retry.min_backoff", r.MinBackoff)
	positive(d, "retry.max_backoff", r.MaxBackoff)
	if r.MaxBackoff > 0 && r.MaxBackoff < r.MinBackoff {
		d.problem("retry.max_backoff", fmt.Sprintf("%s is less than min_backoff, %s", r.MaxBackoff, r.MinBackoff), "make it as long at least")
	}
}

func checkLimits(d *decoder, r *Run) {
	atLeast(d, "limits.max_in_flight", r.Limits.MaxInFlight, 0)
	atLeast(d, "limits.max_starts_per_second", r.Limits.MaxStartsPerSecond, 0)
	atLeast(d, "limits.max_budget_usd", r.Limits.MaxBudgetUSD, 0)
	positive(d, "limits.deadline", r.Limits.Deadline)
	atLeast(d, "limits.breaker.max_infra_share", r.Limits.Breaker.MaxInfraShare, 0)
	atMost(d, "limits.breaker.max_infra_share", r.Limits.Breaker.MaxInfraShare, 1)
	atLeast(d, "limits.breaker.min_attempts", r.Limits.Breaker.MinAttempts, 0)
	positive(d, "limits.breaker.window", r.Limits.Breaker.Window)
	atLeast(d, "capture.log_tail", r.Capture.LogTail, 1)
	atLeast(d, "capture.max_artifacts", r.Capture.MaxArtifacts, 0)
	checkRelativeGlobs(d, "capture.artifacts", r.Capture.Artifacts)
}

// word checks a name. An empty one is reported where it was written.
func (d *decoder) word(entry, value string, re *regexp.Regexp, most int) {
	switch {
	case !d.given(entry):
	case !re.MatchString(value):
		fix := "use small letters, digits and -, beginning with a letter or digit"
		if re == typeName {
			fix = "use small letters and digits"
		}
		d.problem(entry, quote(value)+" is not a name", fix)
	case len(value) > most:
		d.problem(entry, fmt.Sprintf("is %d characters long", len(value)), fmt.Sprintf("use %d at most", most))
	}
}

func oneOf(d *decoder, entry, value string, allowed []string) {
	if !d.given(entry) || slices.Contains(allowed, value) {
		return
	}
	fix := "use one of " + strings.Join(allowed, ", ")
	if near := nearest(value, allowed); near != "" {
		fix = "did you mean " + near + "? Allowed: " + strings.Join(allowed, ", ")
	}
	d.problem(entry, quote(value)+" is not known here", fix)
}

func atLeast[T int | int64 | float64](d *decoder, entry string, value, least T) {
	if value < least {
		d.problem(entry, fmt.Sprintf("is %v", value), fmt.Sprintf("use %v or more", least))
	}
}

// maxRepeats is where a slip of the keyboard is likelier than a wish.
const maxRepeats = 100_000

func atMost[T int | int64 | float64](d *decoder, entry string, value, most T) {
	if value > most {
		d.problem(entry, fmt.Sprintf("is %v", value), fmt.Sprintf("use %v or less", most))
	}
}

// positive refuses a zero that was written: left out is how one asks for the default.
func positive(d *decoder, entry string, value Duration) {
	if n := d.places[entry]; n != nil && value == 0 && strings.HasPrefix(n.Value, "0") {
		d.problem(entry, "is 0", "use a longer time, or leave it out")
	}
}

// anchor makes a path absolute.
func anchor(base, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path)
}
