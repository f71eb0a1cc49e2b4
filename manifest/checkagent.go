// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

func checkAgent(d *decoder, a *Agent, base string) {
	builtIn := a.Name == OracleAgent || a.Name == NopAgent
	switch {
	case d.given("agent.name") && strings.TrimSpace(a.Name) == "":
		d.problem("agent.name", "is empty", "name the agent; oracle and nop are built in")
	case strings.ContainsFunc(a.Name, unicode.IsControl):
		d.problem("agent.name", fmt.Sprintf("%q has control characters", a.Name), "name it in characters that can be printed")
	case builtIn && len(a.Command) > 0:
		d.problem("agent.command", "the "+a.Name+" agent is built in and takes no command", "give the agent another name, or leave the command out")
	case d.given("agent.name") && !builtIn && !d.given("agent.command"):
		fix := "any agent but oracle and nop needs one, such as [sh, agent/run.sh]"
		if near := nearest(a.Name, []string{OracleAgent, NopAgent}); near != "" {
			fix = "did you mean agent " + near + "? " + strings.ToUpper(fix[:1]) + fix[1:]
		}
		d.problem("agent.command", "is missing", fix)
	}
	checkCommand(d, "agent.command", a.Command, AgentProgram)
	if d.given("agent.files") && a.Files == "" {
		d.problem("agent.files", "is empty", "name a directory, or leave it out")
	}
	if a.Files != "" {
		a.Files = anchor(base, a.Files)
		if text := notDir(a.Files); text != "" {
			d.problem("agent.files", text, "name a directory, relative to the run file")
		} else if a.Files == string(filepath.Separator) {
			d.problem("agent.files", "is the root directory", "name the directory of the agent")
		} else {
			checkScript(d, a)
		}
	}
	checkEnv(d, "agent.env", a.Env)
	checkSecrets(d, a)
	positive(d, "agent.timeout", a.Timeout)
}

// checkCommand checks an argv that was given, of one of the trial's programs.
func checkCommand(d *decoder, entry string, argv []string, program string) {
	if !d.given(entry) {
		return
	}
	if len(argv) == 0 || argv[0] == "" {
		d.problem(entry, "has no program", "write a list such as [sh, run.sh]")
	}
	for i, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			d.problem(index(entry, i), "holds a zero byte, which no program can be given", "")
		}
	}
	checkTrialVariables(d, entry, argv, program)
}

func checkEnv(d *decoder, entry string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		checkEnvName(d, join(entry, name), name)
		if strings.ContainsRune(env[name], 0) {
			d.problem(join(entry, name), "holds a zero byte, which no program can be given", "")
		}
	}
}

func checkEnvName(d *decoder, entry, name string) {
	switch {
	case !variableName.MatchString(name):
		d.problem(entry, quote(name)+" can't be a variable's name", "use letters, digits and _")
	case strings.HasPrefix(name, trialPrefix):
		d.problem(entry, "names that begin with "+trialPrefix+" are ours", "choose another name")
	}
}

func checkStorage(d *decoder, s *StorageTarget, base string) {
	if s == nil {
		return
	}
	d.require("storage.artifacts.type")
	oneOf(d, "storage.artifacts.type", s.Type, storageTypes)
	switch s.Type {
	case "local":
		d.require("storage.artifacts.path")
		if s.Path != "" {
			s.Path = anchor(base, s.Path)
		}
		for _, key := range []string{"bucket", "endpoint", "region"} {
			foreign(d, key, "s3")
		}
	case "s3":
		d.require("storage.artifacts.bucket")
		foreign(d, "path", "local")
	}
	if u, err := url.Parse(s.Endpoint); s.Endpoint != "" && (err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https")) {
		d.problem("storage.artifacts.endpoint", "is not a URL", "write for example https://s3.example.com")
	} else if err == nil && u.User != nil {
		d.problem("storage.artifacts.endpoint", "holds a user or password, which would be stored with the run", "leave it out; credentials come from the environment")
	}
}

func foreign(d *decoder, key, kind string) {
	entry := join("storage.artifacts", key)
	if d.given(entry) {
		d.problem(entry, fmt.Sprintf("belongs to type %s", kind), "leave it out")
	}
}
