// SPDX-License-Identifier: Apache-2.0

package manifest

// packFileName is what makes a directory a pack.
const packFileName = "pack.yaml"

// kindDataset is one task template and a file with a row for each task.
const kindDataset = "dataset"

// packKinds are the kinds that this version knows.
var packKinds = []string{kindDataset}

// packFile is pack.yaml. Its paths are relative to the pack; all but the dataset's stay
// inside it.
type packFile struct {
	Version     int    `yaml:"version"`
	Kind        string `yaml:"kind"`
	Name        string `yaml:"name,omitempty"`
	Description string `yaml:"description,omitempty"`
	Category    string `yaml:"category,omitempty"`

	Dataset struct {
		Path    string `yaml:"path"`
		IDField string `yaml:"id_field"`
	} `yaml:"dataset"`
	// AgentFields are the fields of a row that the agent may see.
	AgentFields []string `yaml:"agent_fields,omitempty"`
	// Instruction and the values of Env are text/template over the agent fields.
	Instruction string            `yaml:"instruction"`
	Env         map[string]string `yaml:"env,omitempty"`
	Files       string            `yaml:"files,omitempty"`

	Setup  *packProgram `yaml:"setup,omitempty"`
	Oracle *packProgram `yaml:"oracle,omitempty"`
	Grade  packGrade    `yaml:"grade"`

	AgentTimeout   Duration       `yaml:"agent_timeout,omitempty"`
	AgentProcesses string         `yaml:"agent_processes,omitempty"`
	Artifacts      []string       `yaml:"artifacts,omitempty"`
	Regrade        *packRegrade   `yaml:"regrade,omitempty"`
	Metadata       map[string]any `yaml:"metadata,omitempty"`
}

// packRegrade says what is enough to grade a trial of the pack once more.
type packRegrade struct {
	From string `yaml:"from"`
}

type packProgram struct {
	Command []string `yaml:"command"`
	Files   string   `yaml:"files,omitempty"`
	Timeout Duration `yaml:"timeout,omitempty"`
}

// packGrade is a packProgram that judges.
type packGrade struct {
	Command []string `yaml:"command"`
	Files   string   `yaml:"files,omitempty"`
	Timeout Duration `yaml:"timeout,omitempty"`
	// IgnoreExitCode: a verdict counts whatever the exit code of the grader.
	IgnoreExitCode bool `yaml:"ignore_exit_code,omitempty"`
}

func (g packGrade) program() *packProgram {
	return &packProgram{Command: g.Command, Files: g.Files, Timeout: g.Timeout}
}
