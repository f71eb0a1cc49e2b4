// SPDX-License-Identifier: Apache-2.0

package producer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/producer"
	"github.com/tidemill/tidemill/internal/trial"
	"github.com/tidemill/tidemill/manifest"
)

const regradable = packFile + "artifacts: [out.txt]\nregrade: {from: artifacts}\n"

// openPack makes a pack and opens it.
func (l *lab) openPack(name, file string, tasks ...string) *manifest.Pack {
	l.t.Helper()
	l.write(name+"/pack.yaml", file)
	l.rows(name, tasks...)
	p, err := manifest.OpenPack(l.dir+"/"+name, manifest.LoadOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func (l *lab) regrade(rec manifest.RunRecord, o producer.Regrade) (*producer.Reopened, error) {
	o.TempDir = l.dir
	return l.producer().Regrade(l.t.Context(), rec, o)
}

func TestRegrade(t *testing.T) {
	l := newLab(t)
	l.openPack("pack", regradable, "a", "b", "c", "d")
	rec := l.submit(l.draft("agent_processes: end\n"), "r1").Record
	rows, _ := l.planned(rec)
	l.jobs(rec)
	for i, how := range []string{"passed", "failed", "unscored", "passed"} {
		l.end("r1", rows[i], 1, how)
	}
	list := `{"schema_version":1,"kept":[],"skipped":[{"path":"workdir/out.txt","bytes":9,"reason":"larger"}],"skipped_total":1}`
	key := bundle.Keys{Run: "r1"}.AttemptFiles("d", 0, 1) + trial.ArtifactsFile
	if err := l.store.Put(t.Context(), key, strings.NewReader(list), -1); err != nil {
		t.Fatal(err)
	}
	re, err := l.regrade(rec, producer.Regrade{By: "me"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "left out", map[string]int{
		"it ended with setup_error before there was something to grade": 1, "workdir/out.txt was not collected: larger": 1,
	}, re.LeftOut)
	same(t, "jobs", []string{"0.2", "1.2"}, l.jobs(rec))
	if re.Control.Args["packs"] != nil {
		t.Errorf("args %v: no pack was given", re.Control.Args)
	}
	// A corrected pack is in the store before the decision names it.
	fixed := l.openPack("fixed", strings.Replace(regradable, "command: [grade]", "command: [better]", 1), "c", "b", "a", "d")
	if re, err = l.regrade(rec, producer.Regrade{Packs: []*manifest.Pack{fixed}}); err != nil {
		t.Fatal(err)
	}
	sum, err := fixed.Archive(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "packs", any(map[string]any{rec.Packs[0].SHA256: sum}), re.Control.Args["packs"])
	if len(l.objects(bundle.PackKey(sum))) != 1 {
		t.Error("the pack is not in the store")
	}
	same(t, "decisions", []string{"regrade: 0→2 1→2", "regrade: 0→2 1→2"}, l.decisions("r1", rows))
	same(t, "taken over", map[string]int{bundle.ControlRegrade: 2}, re.TakenOver)

	// A retry takes over what is open of it, and says whose verdicts the others show.
	l.end("r1", rows[0], 2, "passed")
	again := producer.Order{Kind: bundle.ControlRetry, Select: producer.Selection{Tasks: []string{"b"}}}
	a := l.must(rec, again)
	same(t, "graders before the retry", map[string]int{sum: 2}, a.OtherGraders)
	if a.TakenOver != 1 {
		t.Errorf("%d taken over", a.TakenOver)
	}
	a = l.must(rec, again)
	same(t, "graders after it", map[string]int{sum: 1}, a.OtherGraders)

	// And a regrade takes over what a retry put back.
	if re, err = l.regrade(rec, producer.Regrade{}); err != nil {
		t.Fatal(err)
	}
	same(t, "taken over of the retry", map[string]int{bundle.ControlRetry: 1}, re.TakenOver)
	a = l.must(rec, producer.Order{Kind: bundle.ControlRetry, Select: producer.Selection{Tasks: []string{"d"}}})
	if len(a.OtherGraders) > 0 {
		t.Errorf("graders %v, but all is the run's own", a.OtherGraders)
	}
}

func TestRegradeIsRefused(t *testing.T) {
	two := "packs: [pack, other]\n"
	for name, c := range map[string]struct {
		file, extra string
		given       func(l *lab) []*manifest.Pack
		want, fix   string
	}{
		"a pack that doesn't say so": {packFile, "", nil, "doesn't say that what is collected is enough", "give the pack with --pack DIR"},
		"processes that are gone":    {regradable + "agent_processes: keep\n", "", nil, "agent_processes: keep", "run it again"},
		"processes, by the run":      {regradable, "agent_processes: keep\n", nil, "agent_processes: keep", "run it again"},
		"a pack of another name": {regradable, two, func(l *lab) []*manifest.Pack {
			return []*manifest.Pack{l.openPack("third", regradable, "a")}
		}, "pack third: run r1 has no pack of this name; it has pack, other", "has the name of the one that it corrects"},
		"a pack given twice": {regradable, "", func(l *lab) []*manifest.Pack {
			p := l.openPack("pack", regradable+"category: x\n", "a")
			return []*manifest.Pack{p, p}
		}, "pack pack is given twice", ""},
		"another pack that doesn't say so": {regradable, "", func(l *lab) []*manifest.Pack {
			return []*manifest.Pack{l.openPack("pack", packFile, "a")}
		}, "doesn't say that what is collected is enough", "write"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "a")
			l.openPack("pack", c.file, "a")
			l.openPack("other", regradable, "b")
			if strings.HasPrefix(c.extra, "packs") {
				l.write("run.yaml", strings.Replace(runFile, "packs: [pack]\n", c.extra, 1))
				c.extra = ""
			}
			rec := l.submit(l.draft(c.extra), "r1").Record
			rows, _ := l.planned(rec)
			l.end("r1", rows[0], 1, "failed")
			o := producer.Regrade{Select: producer.Selection{Tasks: []string{"a"}}}
			if c.given != nil {
				o.Packs = c.given(l)
			}
			_, err := l.regrade(rec, o)
			refused, ok := errors.AsType[*producer.RefusedError](err)
			if !ok || !strings.Contains(refused.Text, c.want) || !strings.Contains(refused.Fix, c.fix) {
				t.Errorf("got %v (%+v), want %q, %q", err, refused, c.want, c.fix)
			}
			same(t, "decisions", []string(nil), l.decisions("r1", rows))
		})
	}
}
