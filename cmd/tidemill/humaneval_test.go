// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/report"
	"github.com/tidemill/tidemill/internal/testenv"
)

// TestHumanEval runs the first tasks of HumanEval through the command, as the example
// has them: with the canonical solutions all pass, with an agent that does nothing none
// does. make humaneval runs all of them.
func TestHumanEval(t *testing.T) {
	testenv.Python(t)
	data := filepath.Join(testenv.Cases(t), "humaneval", "HumanEval.jsonl.gz")
	if _, err := os.Stat(data); err != nil {
		t.Skipf("needs the data set: %v", err)
	}
	const tasks, repeats = 8, 2
	for agent, rate := range map[string]float64{"oracle": 1, "nop": 0} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			cmd := exec.CommandContext(t.Context(), "tidemill", "run", "--json", "--data", dir,
				"--var", "HUMANEVAL="+data, "--run-id", "slice", slice(t, "run-"+agent+".yaml", tasks))
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("tidemill run: %v\n%s", err, &stderr)
			}
			var agg report.Aggregate
			if err := json.Unmarshal(stdout.Bytes(), &agg); err != nil {
				t.Fatalf("aggregate.json on stdout: %v", err)
			}
			if !agg.Complete || agg.TotalTasks != tasks || agg.TotalTrials != tasks*repeats || agg.Scored != tasks*repeats {
				t.Errorf("complete %t, %d tasks, %d trials, %d scored; want all of %d × %d",
					agg.Complete, agg.TotalTasks, agg.TotalTrials, agg.Scored, tasks, repeats)
			}
			if agg.SuccessRate == nil || *agg.SuccessRate != rate {
				t.Errorf("success rate %v; want %v", agg.SuccessRate, rate)
			}
			for _, task := range agg.Tasks {
				if want := int64(rate * repeats); task.Successful != want {
					t.Errorf("%s: %d of %d trials passed; want %d", task.TaskID, task.Successful, task.TotalTrials, want)
				}
			}
			// Its processes have the data directory in their environment.
			testenv.NoLeaks(t, dir)
			for _, place := range []string{"work", "worker/spool"} {
				if left, _ := os.ReadDir(filepath.Join(dir, ".tidemill", place)); len(left) > 0 {
					t.Errorf("left in %s: %v", place, left)
				}
			}
		})
	}
}

// slice writes a run file of the example again, for its first tasks only.
func slice(t *testing.T, name string, tasks int) string {
	t.Helper()
	example := filepath.Join(testenv.Root(t), "examples", "humaneval")
	body, err := os.ReadFile(filepath.Join(example, name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(body)
	if strings.Count(text, "./pack]") != 1 || strings.Contains(text, "select:") {
		t.Fatalf("%s is not what this test changes:\n%s", name, text)
	}
	text = strings.Replace(text, "./pack]", filepath.Join(example, "pack")+"]", 1)
	limit, _ := json.Marshal(map[string]int{"limit": tasks})
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text+"select: "+string(limit)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
