// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"gopkg.in/yaml.v3"
)

// taskFileName is what makes a directory a Harbor task.
const taskFileName = "task.toml"

// harborFile is task.toml, version 1.x of its schema. A key that isn't here is told and
// passed over, as Harbor does: tasks are written by others, for newer versions too.
type harborFile struct {
	SchemaVersion harborWord       `yaml:"schema_version"`
	Version       harborWord       `yaml:"version"` // the older name of schema_version
	Source        string           `yaml:"source"`
	Artifacts     []harborArtifact `yaml:"artifacts"`
	StepRewards   string           `yaml:"multi_step_reward_strategy"`

	Task        harborAbout       `yaml:"task"`
	Metadata    map[string]any    `yaml:"metadata"`
	Agent       harborAgent       `yaml:"agent"`
	Verifier    harborVerifier    `yaml:"verifier"`
	Solution    harborSolution    `yaml:"solution"`
	Environment harborEnvironment `yaml:"environment"`
	Steps       []harborStep      `yaml:"steps"`
}

type harborAbout struct {
	Name        string   `yaml:"name"`
	Version     any      `yaml:"version"`
	Description string   `yaml:"description"`
	Authors     []any    `yaml:"authors"`
	Keywords    []string `yaml:"keywords"`
}

// harborNetwork is what an environment or a phase may reach.
type harborNetwork struct {
	Mode  string   `yaml:"network_mode"`
	Hosts []string `yaml:"allowed_hosts"`
}

type harborAgent struct {
	Timeout float64    `yaml:"timeout_sec"` // seconds, as every time here
	User    harborWord `yaml:"user"`
	Mode    string     `yaml:"network_mode"`
	Hosts   []string   `yaml:"allowed_hosts"`
}

func (a harborAgent) network() harborNetwork { return harborNetwork{a.Mode, a.Hosts} }

type harborVerifier struct {
	Timeout         float64           `yaml:"timeout_sec"`
	Env             map[string]string `yaml:"env"`
	User            harborWord        `yaml:"user"`
	Mode            string            `yaml:"network_mode"`
	Hosts           []string          `yaml:"allowed_hosts"`
	EnvironmentMode string            `yaml:"environment_mode"`
	Environment     map[string]any    `yaml:"environment"`
}

func (v harborVerifier) network() harborNetwork { return harborNetwork{v.Mode, v.Hosts} }

type harborSolution struct {
	Env map[string]string `yaml:"env"`
}

type harborEnvironment struct {
	BuildTimeout  float64            `yaml:"build_timeout_sec"`
	DockerImage   string             `yaml:"docker_image"`
	OS            string             `yaml:"os"`
	CPUs          float64            `yaml:"cpus"`
	MemoryMB      float64            `yaml:"memory_mb"`
	Memory        harborSize         `yaml:"memory"` // the older name of memory_mb
	StorageMB     float64            `yaml:"storage_mb"`
	Storage       harborSize         `yaml:"storage"` // the older name of storage_mb
	GPUs          int                `yaml:"gpus"`
	GPUTypes      []string           `yaml:"gpu_types"`
	TPU           map[string]any     `yaml:"tpu"`
	AllowInternet bool               `yaml:"allow_internet"`
	Mode          string             `yaml:"network_mode"`
	Hosts         []string           `yaml:"allowed_hosts"`
	Env           map[string]string  `yaml:"env"`
	MCPServers    []harborMCP        `yaml:"mcp_servers"`
	SkillsDir     string             `yaml:"skills_dir"`
	Workdir       string             `yaml:"workdir"`
	Healthcheck   *harborHealthcheck `yaml:"healthcheck"`
}

func (e harborEnvironment) network() harborNetwork { return harborNetwork{e.Mode, e.Hosts} }

// harborMCP is a server that an agent may use as a tool. It is passed on in these words.
type harborMCP struct {
	Name      string   `yaml:"name" json:"name"`
	Transport string   `yaml:"transport" json:"transport"`
	URL       string   `yaml:"url" json:"url,omitempty"`
	Command   string   `yaml:"command" json:"command,omitempty"`
	Args      []string `yaml:"args" json:"args,omitempty"`
}

type harborHealthcheck struct {
	Command       string  `yaml:"command"`
	Interval      float64 `yaml:"interval_sec"`
	Timeout       float64 `yaml:"timeout_sec"`
	StartPeriod   float64 `yaml:"start_period_sec"`
	StartInterval float64 `yaml:"start_interval_sec"`
	Retries       int     `yaml:"retries"`
}

type harborStep struct {
	Name        string             `yaml:"name"`
	MinReward   harborMinReward    `yaml:"min_reward"`
	Artifacts   []harborArtifact   `yaml:"artifacts"`
	Agent       harborAgent        `yaml:"agent"`
	Verifier    harborVerifier     `yaml:"verifier"`
	Healthcheck *harborHealthcheck `yaml:"healthcheck"`
}

// harborWord is text that may be written as a number: a version, a user.
type harborWord string

func (w *harborWord) decodeNode(d *decoder, n *yaml.Node, entry string) {
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float":
		*w = harborWord(n.Value)
	default:
		d.wrong(n, entry, "text or a number", "")
	}
}

// harborArtifact is a path, or a table with one.
type harborArtifact struct {
	Source      string `yaml:"source"`
	Destination string `yaml:"destination"`
}

func (a *harborArtifact) decodeNode(d *decoder, n *yaml.Node, entry string) {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		a.Source = n.Value
	case n.Kind == yaml.MappingNode:
		type table harborArtifact // the same without this method
		decodeInto(d, n, entry, (*table)(a))
	default:
		d.wrong(n, entry, "a path, or a table with source and destination", "")
	}
}

// harborMinReward is a number for the score, or a table of numbers by reward.
type harborMinReward struct {
	score  *float64
	byName map[string]float64
}

func (r *harborMinReward) decodeNode(d *decoder, n *yaml.Node, entry string) {
	if n.Kind == yaml.MappingNode {
		decodeInto(d, n, entry, &r.byName)
		return
	}
	var score float64
	if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" {
		d.wrong(n, entry, "a number, or a table of numbers by reward", "")
		return
	}
	decodeInto(d, n, entry, &score)
	if !d.bad[n] {
		r.score = &score
	}
}
