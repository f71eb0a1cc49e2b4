// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	"github.com/tidemill/tidemill/internal/testenv"
)

// plot is a Harbor task and what its agent does about its own grade.
type plot struct {
	name string
	user string // of the agent; empty for root
	// agent is what it does, verifier what test.sh does; a verifier that is empty gives 1
	// to who left the file honest.
	agent, verifier string
	// toml is more of task.toml, to go below [verifier].
	toml string
	want string
}

const (
	forged  = "completed agent_done 0"
	nothing = "error grader_error null"
	// again writes both kinds of verdict as long as it lives.
	again = `while :; do
  echo 1 >/logs/verifier/reward.txt; echo '{"reward": 1}' >/logs/verifier/reward.json
  echo 'echo 1 >/logs/verifier/reward.txt' >/tests/test.sh
done 2>/dev/null`
	// beacon is a server that verifiers ask.
	beacon = `echo fixed >index.html; setsid httpd -f -p 127.0.0.1:7007 -h /app </dev/null >/dev/null 2>&1 &
until wget -qO- http://127.0.0.1:7007/; do sleep 0.1; done 2>/dev/null`
	asks = `[ "$(wget -qO- http://127.0.0.1:7007/)" = fixed ]; echo $((1-$?)) >/logs/verifier/reward.txt`
)

// forgeries are what agents prepare, and one that has no need to.
var forgeries = []plot{
	{name: "honest", user: "agent", agent: "touch honest", want: "completed agent_done 1"},
	{name: "honest-root", agent: "touch honest", want: "completed agent_done 1"},

	// An agent that isn't root.
	{name: "verdict-before", user: "agent", agent: `mkdir -p /logs/verifier; echo 1 >/logs/verifier/reward.txt; echo 1 >/logs/reward.txt; echo 1 >reward.txt`, want: forged},
	{name: "verdict-linked", user: "agent", agent: `mkdir mine; echo 1 >mine/reward.txt; ln -s /app/mine /logs/verifier`, want: forged},
	{name: "verdict-again", user: "agent", agent: `setsid sh -c '` + shellQuoted(again) + `' &`, want: forged},
	{name: "tests-before", user: "agent", agent: `mkdir /tests; echo 'echo 1 >/logs/verifier/reward.txt' >/tests/test.sh`, want: forged},
	{name: "tests-linked", user: "agent", agent: `mkdir mine; echo 'echo 1 >/logs/verifier/reward.txt' >mine/test.sh; ln -s /app/mine /tests`, want: forged},
	{name: "logs-moved", user: "agent", agent: `mv /logs mine; mkdir -p /logs/verifier; rm -r /logs/agent /logs/artifacts; ln -s / /logs/artifacts`, want: forged},

	// One that is, but leaves nobody behind.
	{name: "root-verdict-before", agent: `mkdir -p /logs/verifier; echo 1 >/logs/verifier/reward.txt; echo 1 >/logs/reward.txt`, want: forged},
	{name: "root-verdict-linked", agent: `mkdir mine; echo 1 >mine/reward.txt; ln -s /app/mine /logs/verifier`, want: forged},
	{name: "root-verdict-file", agent: `echo 1 >/logs/verifier; ln -s /app/reward.txt /logs/reward.txt`, want: forged},
	{name: "root-tests-before", agent: `mkdir /tests; echo 'echo 1 >/logs/verifier/reward.txt' >/tests/test.sh; chmod 0 /tests`, want: forged},
	{name: "root-tests-linked", agent: `mkdir mine; echo 'echo 1 >/logs/verifier/reward.txt' >mine/test.sh; ln -s /app/mine /tests; ln -s test.sh mine/link`, want: forged},
}

// verifiers are those that ask a server, and those that get something wrong.
var verifiers = []plot{
	// A server that goes on, and one that isn't there.
	{name: "served", user: "agent", agent: beacon, verifier: asks, want: "completed agent_done 1"},
	{name: "not-served", user: "agent", agent: "true", verifier: asks, want: forged},

	// Verifiers that are broken give no score, and those that end with 1 do.
	{name: "no-verdict", agent: "touch honest", verifier: "exit 0", want: nothing},
	{name: "not-finite", agent: "touch honest", verifier: "echo NaN >/logs/verifier/reward.txt", want: nothing},
	{name: "empty", agent: "touch honest", verifier: ": >/logs/verifier/reward.txt", want: nothing},
	{name: "linked", agent: "echo 1 >mine", verifier: "ln -s /app/mine /logs/verifier/reward.txt", want: nothing},
	{name: "nested", agent: "touch honest", verifier: `echo '{"reward": {"a": 1}}' >/logs/verifier/reward.json`, want: nothing},
	{name: "too-late", agent: "touch honest", verifier: "echo 1 >/logs/verifier/reward.txt; sleep 1000", toml: "timeout_sec = 1", want: nothing},
	{name: "exits-1", agent: "touch honest", verifier: "echo 1 >/logs/verifier/reward.txt; exit 1", want: "completed agent_done 1"},
	{name: "both", agent: "touch honest", verifier: `echo 0.5 >/logs/verifier/reward.txt; echo '{"reward": 1}' >/logs/verifier/reward.json`, want: "completed agent_done 0.5"},
	{name: "several", agent: "touch honest", verifier: `echo '{"reward": 0.25, "style": 1}' >/logs/verifier/reward.json`, want: "completed agent_done 0.25"},
}

// shellQuoted is for a text between single quotes.
func shellQuoted(s string) string {
	out := ""
	for _, r := range s {
		if r == '\'' {
			out += `'\''`
		} else {
			out += string(r)
		}
	}
	return out
}

// writePlots writes a pack of tasks, whose oracle is what the agent does.
func (h *harbour) writePlots(pack, image string, list []plot) {
	h.Helper()
	for _, p := range list {
		dir := pack + "/" + p.name + "/"
		user := ""
		if p.user != "" {
			user = fmt.Sprintf("user = %q\n", p.user)
		}
		verifier := p.verifier
		if verifier == "" {
			verifier = `[ -e /app/honest ]; echo $((1-$?)) >/logs/verifier/reward.txt`
		}
		h.write(dir+"task.toml", fmt.Sprintf("[agent]\ntimeout_sec = 60\n%s[verifier]\nuser = \"root\"\n%s\n[environment]\ndocker_image = %q\nallow_internet = false\nworkdir = \"/app\"\n",
			user, p.toml, image))
		h.write(dir+"instruction.md", "Say honestly whether you did it.\n")
		h.write(dir+"solution/solve.sh", "#!/bin/sh\n"+p.agent+"\n")
		h.write(dir+"tests/test.sh", "#!/bin/sh\n"+verifier+"\n")
	}
}

// Whatever an agent prepares, the verdict is the verifier's; and what a verifier gets wrong
// is no score.
func TestHarborVerdicts(t *testing.T) {
	t.Parallel()
	h := newQuay(t)
	image := testenv.BusyboxImage(t, h.cli)
	h.writePlots("forgeries", image, forgeries)
	h.writePlots("verifiers", image, verifiers)
	// Where the agent's processes end, root may leave behind what it likes.
	ended := []plot{
		{name: "honest", agent: "touch honest", want: "completed agent_done 1"},
		{name: "root-verdict-again", agent: `setsid sh -c '` + shellQuoted(again) + `' & sleep 1`, want: forged},
		{name: "not-served-any-more", agent: beacon, verifier: asks, want: forged},
	}
	h.writePlots("ended", image, ended)
	const file = `version: 1
name: verdicts
packs: [./%s]
agent: {name: oracle}
runtime: {type: docker}
%s
`
	for _, run := range []struct {
		pack, more string
		plots      []plot
		code       int // 3: there are trials without a score
	}{
		{"forgeries", "", forgeries, 0},
		{"verifiers", "", verifiers, 3},
		{"ended", "agent_processes: end", ended, 0},
	} {
		h.write(run.pack+".yaml", fmt.Sprintf(file, run.pack, run.more))
		v := h.sail(run.code, run.pack, "--slots", "4", run.pack+".yaml")
		for _, p := range run.plots {
			v.landed(p.name, p.want)
		}
	}
}
