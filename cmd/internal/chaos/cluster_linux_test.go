// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"github.com/tidemill/tidemill/internal/testenv"
)

// node is a NATS server of the cluster. What it can't do fails the test.
type node interface {
	Name() string
	URL() string
	Kill()  // kill -9
	Stop()  // in order
	Start() // with what it had stored
	Wipe()  // replaced by one that has nothing stored
}

var (
	_ node = (*testenv.NATSNode)(nil)
	_ node = (*process)(nil)
)

// startNodes starts three servers: containers where there is an engine, or plain processes.
func startNodes(t *testing.T, how, dir string) (nodes []node, what string) {
	t.Helper()
	if how == "auto" {
		how = "processes"
		if engine(t) {
			how = "containers"
		}
	}
	switch how {
	case "containers":
		for _, n := range testenv.NATSCluster(t) {
			nodes = append(nodes, n)
		}
	case "processes":
		nodes = startProcesses(t, dir)
	default:
		t.Fatalf("-chaos.nodes %q: want auto, containers or processes", how)
	}
	return nodes, how
}

// engine reports whether a container engine answers.
func engine(t *testing.T) bool {
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return false
	}
	defer cli.Close()
	_, err = cli.Ping(t.Context())
	return err == nil
}

// process is a NATS server that is a process of this machine.
type process struct {
	t       *testing.T
	program string
	name    string
	dir     string // what it stores
	log     string
	port    int
	args    []string

	cmd *exec.Cmd
}

func startProcesses(t *testing.T, dir string) (nodes []node) {
	t.Helper()
	program := filepath.Join(dir, "nats-server")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/nats-io/nats-server/v2")
	build.Dir = testenv.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build nats-server: %v\n%s", err, out)
	}
	ports := freePorts(t, 6)
	var routes []string
	for n := range 3 {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[3+n]))
	}
	for n := range 3 {
		name := fmt.Sprint("n", n+1)
		p := &process{
			t: t, program: program, name: name, dir: filepath.Join(dir, "nats-"+name),
			log: filepath.Join(dir, "nats-"+name+".log"), port: ports[n],
		}
		p.args = []string{
			"-js", "-sd", p.dir, "-n", name, "-a", "127.0.0.1", "-p", fmt.Sprint(p.port), "-l", p.log,
			"-cluster_name", "tidemill-chaos", "-cluster", routes[n], "-routes", strings.Join(routes, ","), "-no_advertise",
		}
		p.launch()
		t.Cleanup(p.Kill)
		nodes = append(nodes, p)
	}
	for _, n := range nodes {
		n.(*process).await()
	}
	return nodes
}

func (p *process) Name() string { return p.name }
func (p *process) URL() string  { return fmt.Sprintf("nats://127.0.0.1:%d", p.port) }
func (p *process) Kill()        { p.end(syscall.SIGKILL) }
func (p *process) Stop()        { p.end(syscall.SIGTERM) }

func (p *process) Start() {
	p.t.Helper()
	p.launch()
	p.await()
}

func (p *process) Wipe() {
	p.t.Helper()
	p.Kill()
	if err := os.RemoveAll(p.dir); err != nil {
		p.t.Fatal(err)
	}
	p.Start()
}

func (p *process) launch() {
	p.t.Helper()
	p.cmd = exec.Command(p.program, p.args...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("NATS server %s: %v", p.name, err)
	}
}

func (p *process) end(sig os.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig)
	_ = p.cmd.Wait()
	p.cmd = nil
}

// await returns when the server takes connections.
func (p *process) await() {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		c, err := net.DialTimeout("tcp", host(p), time.Second)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("NATS server %s is not up after a minute: %v; see %s", p.name, err, p.log)
		}
		time.Sleep(50 * time.Millisecond) // nothing tells when it is up
	}
}

// host is host:port of a node.
func host(n node) string {
	u, err := url.Parse(n.URL())
	if err != nil {
		return ""
	}
	return u.Host
}

// freePorts returns different ports that were free a moment ago.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
