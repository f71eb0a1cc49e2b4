// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
)

// Defaults of Harbor, in its units.
const (
	harborBuildTimeout  = 600 // seconds
	harborVerifyTimeout = 600
	harborCPUs          = 1
	harborMemoryMB      = 2048
)

// TaskInfoFile is beside the instruction of tasks that name tools for their agent: a JSON
// object with mcp_servers and skills_dir.
const TaskInfoFile = "task.json"

// environment reads what the sandbox is made of.
func (l *harborLoad) environment() {
	d, e, t := l.d, &l.file.Environment, l.task
	positiveNumber(d, "environment.build_timeout_sec", e.BuildTimeout)
	if d.given("environment.docker_image") && e.DockerImage == "" {
		d.problem("environment.docker_image", "is empty", "name an image, or leave it out")
	}
	switch dir := filepath.Join(l.dir, environmentDir); {
	case e.DockerImage != "":
		t.Image = e.DockerImage
	case isFile(filepath.Join(dir, dockerfileName)):
		t.Build = &Build{
			Context: dir, Dockerfile: dockerfileName,
			Timeout: seconds(d.or("environment.build_timeout_sec", e.BuildTimeout, harborBuildTimeout)),
		}
	case l.pack.options.imageless != "" && !isFile(filepath.Join(dir, composeName)): // which was refused
		d.problem("environment.docker_image", "is missing: runtime "+l.pack.options.imageless+" needs an image, and there is no environment/"+dockerfileName+" and no runtime.image in the run file",
			"name an image, write a Dockerfile, or "+leaveOut)
	}
	l.resources()
	t.Env, t.SecretEnv = l.env.table("environment.env", e.Env, nil, nil)
	if t.Workdir = e.Workdir; d.given("environment.workdir") && !path.IsAbs(e.Workdir) {
		d.problem("environment.workdir", quote(e.Workdir)+" is not an absolute path", "write for example /app")
	}
	t.Healthcheck = l.healthcheck("environment.healthcheck", e.Healthcheck)
	l.servers()
}

// resources are the limits. What the file doesn't say has Harbor's defaults where there is
// a container to limit. storage_mb is no limit: it says what room a task wants to find,
// and nothing that Harbor runs on a machine enforces it.
func (l *harborLoad) resources() {
	d, e, r := l.d, &l.file.Environment, &l.task.Resources
	positiveNumber(d, "environment.cpus", e.CPUs)
	positiveNumber(d, "environment.memory_mb", e.MemoryMB)
	zeroOrMore(d, "environment.storage_mb", e.StorageMB)
	atLeast(d, "environment.gpus", e.GPUs, 0)
	l.older("memory", Size(e.Memory), mebibytes(e.MemoryMB))
	l.older("storage", Size(e.Storage), mebibytes(e.StorageMB))
	if l.task.Image != "" || l.task.Build != nil {
		r.CPUs, r.Memory = harborCPUs, mebibytes(harborMemoryMB)
	}
	r.CPUs = d.or("environment.cpus", e.CPUs, r.CPUs)
	switch {
	case d.given("environment.memory_mb"):
		r.Memory = mebibytes(min(e.MemoryMB, maxNumber))
	case d.given("environment.memory"):
		r.Memory = Size(e.Memory)
	}
	r.GPUs, r.GPUTypes = e.GPUs, e.GPUTypes
}

// older tells that a key has another name now, and refuses two that don't agree.
func (l *harborLoad) older(key string, old, now Size) {
	entry, newer := "environment."+key, "environment."+key+"_mb"
	if !l.d.given(entry) || l.d.bad[l.d.places[entry]] {
		return
	}
	if l.d.given(newer) && old != now {
		l.d.problem(entry, fmt.Sprintf("is %s, and %s_mb is %s", old, key, now), "leave "+key+" out")
		return
	}
	if old == 0 && key == "memory" {
		l.d.problem(entry, "is 0", "use a larger size, or leave it out")
	}
}

// healthcheck reads a healthcheck; nil stays nil.
func (l *harborLoad) healthcheck(entry string, h *harborHealthcheck) *Healthcheck {
	if h == nil {
		return nil
	}
	d := l.d
	at := func(key string) string { return join(entry, key) }
	if !d.given(at("command")) {
		d.problem(at("command"), "is missing", "write the command of the shell that tells health")
	} else if h.Command == "" {
		d.problem(at("command"), "is empty", "write the command of the shell that tells health")
	}
	zeroOrMore(d, at("interval_sec"), h.Interval)
	positiveNumber(d, at("timeout_sec"), h.Timeout)
	zeroOrMore(d, at("start_period_sec"), h.StartPeriod)
	zeroOrMore(d, at("start_interval_sec"), h.StartInterval)
	if d.given(at("retries")) {
		atLeast(d, at("retries"), h.Retries, 1)
	}
	return &Healthcheck{
		Command:       []string{"bash", "-c", h.Command},
		Interval:      seconds(d.or(at("interval_sec"), h.Interval, 5)),
		Timeout:       seconds(d.or(at("timeout_sec"), h.Timeout, 30)),
		StartPeriod:   seconds(h.StartPeriod),
		StartInterval: seconds(d.or(at("start_interval_sec"), h.StartInterval, 5)),
		Retries:       int(d.or(at("retries"), float64(h.Retries), 3)),
	}
}

// harborTransports are the ways to talk to a server; the last is another name of the
// second.
var harborTransports = []string{"sse", "streamable-http", "stdio", "http"}

// servers checks what the agent may use as tools.
func (l *harborLoad) servers() {
	d := l.d
	for i := range l.file.Environment.MCPServers {
		s, entry := &l.file.Environment.MCPServers[i], index("environment.mcp_servers", i)
		if s.Name == "" {
			d.problem(join(entry, "name"), "is missing", "name the server")
		}
		oneOf(d, join(entry, "transport"), s.Transport, harborTransports)
		switch s.Transport {
		case "":
			s.Transport = harborTransports[0]
		case "http":
			s.Transport = "streamable-http"
		}
		need, value := "url", s.URL
		if s.Transport == "stdio" {
			need, value = "command", s.Command
		}
		if value == "" && slices.Contains(harborTransports, s.Transport) {
			d.problem(join(entry, need), "is missing: transport "+s.Transport+" needs it", "")
		}
	}
}

// input are the files beside the instruction.
func (l *harborLoad) input() map[string][]byte {
	e := &l.file.Environment
	if len(e.MCPServers) == 0 && e.SkillsDir == "" {
		return nil
	}
	body, err := json.MarshalIndent(struct {
		MCPServers []harborMCP `json:"mcp_servers,omitempty"`
		SkillsDir  string      `json:"skills_dir,omitempty"`
	}{e.MCPServers, e.SkillsDir}, "", "  ")
	if err != nil {
		l.c.add(Problem{Entry: "environment.mcp_servers", Text: err.Error()})
		return nil
	}
	return map[string][]byte{TaskInfoFile: append(body, '\n')}
}
