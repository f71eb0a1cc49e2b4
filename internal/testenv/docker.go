// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docker/docker/client"
)

// engineTimeout is how long an engine may take to answer whether it is there.
const engineTimeout = 20 * time.Second

// Docker returns a client of the engine that DOCKER_HOST names, or the one on its usual
// socket. The test's end closes it. Without an engine the test skips, or fails with
// CI=true.
func Docker(t testing.TB) *client.Client {
	t.Helper()
	cli, err := dial(t.Context())
	if err != nil {
		RequireOrFail(t, fmt.Sprintf("Docker: %v", err))
	}
	t.Cleanup(func() { _ = cli.Close() })
	return cli
}

func dial(ctx context.Context) (*client.Client, error) {
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	if _, err := cli.Ping(ctx); err != nil {
		_ = cli.Close()
		return nil, err
	}
	return cli, nil
}
