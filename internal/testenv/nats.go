// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	"github.com/docker/go-connections/nat"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"
)

// NATSVariable names a NATS server with JetStream that tests may use instead of one in a
// container. Its account must be for tests alone: they delete every stream in it.
const NATSVariable = "TIDEMILL_TEST_NATS_URL"

// natsUp is how long a server in a container may take until it answers.
const natsUp = 60 * time.Second

func init() {
	// The reaper is an image that would have to be pulled. Tests end what they start.
	_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
}

// NATSURL returns where a NATS server with JetStream is: the one that
// TIDEMILL_TEST_NATS_URL names, or one in a container that ends with the test.
func NATSURL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv(NATSVariable); url != "" {
		return url
	}
	return NATS(t).URL()
}

// NATS starts a server with JetStream in a container, which ends with the test. Without
// an engine the test skips, or fails with CI=true.
func NATS(t testing.TB) *NATSNode {
	t.Helper()
	cli := Docker(t)
	n := &NATSNode{t: t, cli: cli, image: NATSImage(t, cli), port: freePort(t)}
	n.args = []string{"-js", "-sd", "/data", "-n", "single"}
	n.create()
	return n
}

// NATSCluster starts three servers in containers on a network of their own, which end
// with the test.
func NATSCluster(t testing.TB) []*NATSNode {
	t.Helper()
	cli := Docker(t)
	image := NATSImage(t, cli)
	nw, err := tcnetwork.New(t.Context(), tcnetwork.WithLabels(map[string]string{TestImageLabel: "network"}))
	if err != nil {
		t.Fatalf("network for the NATS cluster: %v", err)
	}
	t.Cleanup(func() { _ = nw.Remove(context.WithoutCancel(t.Context())) })
	names := []string{"n1", "n2", "n3"}
	var routes []string
	for _, name := range names {
		routes = append(routes, "nats://"+name+":6222")
	}
	var nodes []*NATSNode
	for _, name := range names {
		n := &NATSNode{t: t, cli: cli, image: image, port: freePort(t), network: nw.Name, name: name}
		n.args = []string{
			"-js", "-sd", "/data", "-n", name, "-cluster_name", "tidemill-test",
			"-cluster", "nats://0.0.0.0:6222", "-routes", strings.Join(routes, ","), "-no_advertise=true",
		}
		n.create()
		nodes = append(nodes, n)
	}
	return nodes
}

// NATSNode is one server in a container. Its address stays what it is over restarts.
type NATSNode struct {
	t             testing.TB
	cli           *client.Client
	image         string
	args          []string
	port          int
	network, name string // of a cluster

	c testcontainers.Container
}

// URL is where clients connect.
func (n *NATSNode) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.port) }

// Name is the server's name in its cluster, as JetStream tells of leaders.
func (n *NATSNode) Name() string { return n.name }

func (n *NATSNode) create() {
	n.t.Helper()
	req := testcontainers.ContainerRequest{
		Image: n.image, Cmd: n.args, ExposedPorts: []string{"4222/tcp"},
		Labels: map[string]string{TestImageLabel: "nats"},
		HostConfigModifier: func(h *container.HostConfig) {
			h.PortBindings = nat.PortMap{"4222/tcp": {{HostIP: "127.0.0.1", HostPort: fmt.Sprint(n.port)}}}
		},
		WaitingFor: wait.ForLog("Server is ready").WithStartupTimeout(natsUp),
	}
	if n.network != "" {
		req.Networks = []string{n.network}
		req.NetworkAliases = map[string][]string{n.network: {n.name}}
	}
	c, err := testcontainers.GenericContainer(n.t.Context(), testcontainers.GenericContainerRequest{
		ContainerRequest: req, Started: true, Logger: log.TestLogger(n.t),
	})
	// It may be there although it did not start.
	n.t.Cleanup(func() { _ = testcontainers.TerminateContainer(c) })
	if err != nil {
		n.t.Fatalf("NATS server in a container: %v", err)
	}
	n.c = c
}

func (n *NATSNode) must(err error, doing string) {
	n.t.Helper()
	if err != nil {
		n.t.Fatalf("%s NATS server %s: %v", doing, n.name, err)
	}
}

// Kill ends the server as the kernel would: it has no time for anything.
func (n *NATSNode) Kill() {
	n.t.Helper()
	ctx := n.t.Context()
	ended, failed := n.cli.ContainerWait(ctx, n.c.GetContainerID(), container.WaitConditionNotRunning)
	n.must(n.cli.ContainerKill(ctx, n.c.GetContainerID(), "KILL"), "kill")
	select {
	case <-ended:
	case err := <-failed:
		n.must(err, "wait for the end of")
	}
}

// Stop ends the server in order.
func (n *NATSNode) Stop() {
	n.t.Helper()
	patience := 30 * time.Second
	n.must(n.c.Stop(n.t.Context(), &patience), "stop")
}

// Start starts the server again, with what it had stored, and returns when it takes
// connections.
func (n *NATSNode) Start() {
	n.t.Helper()
	n.must(n.cli.ContainerStart(n.t.Context(), n.c.GetContainerID(), container.StartOptions{}), "start")
	n.await()
}

// Wipe replaces the server by a new one of the same name and address that has nothing
// stored.
func (n *NATSNode) Wipe() {
	n.t.Helper()
	n.must(testcontainers.TerminateContainer(n.c), "remove")
	n.create()
	n.await()
}

// Disconnect takes the server of a cluster off its network, and with that away from
// clients too; Reconnect puts it back.
func (n *NATSNode) Disconnect() {
	n.t.Helper()
	n.must(n.cli.NetworkDisconnect(n.t.Context(), n.network, n.c.GetContainerID(), true), "disconnect")
}

// Reconnect undoes Disconnect.
func (n *NATSNode) Reconnect() {
	n.t.Helper()
	n.must(n.cli.NetworkConnect(n.t.Context(), n.network, n.c.GetContainerID(), &network.EndpointSettings{Aliases: []string{n.name}}), "reconnect")
	n.await()
}

// await returns when the server greets: the engine's own proxy takes connections before
// there is anybody behind it.
func (n *NATSNode) await() {
	n.t.Helper()
	for end := time.Now().Add(natsUp); ; {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", n.port), time.Second)
		if err == nil {
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		if err == nil {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("NATS server %s is not back after %v: %v", n.name, natsUp, err)
		}
		time.Sleep(100 * time.Millisecond) // nothing tells when it is back
	}
}

// freePort returns a port of the loopback interface that was free a moment ago.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
