// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/types"
	"github.com/docker/docker/api/types/registry"
)

// hubKey is under what Docker keeps the credentials for docker.io.
const hubKey = "https://index.docker.io/v1/"

// auth returns the credentials for a registry, encoded for the engine; empty where
// there are none. Without them a pull may still do, so an error is only worth telling
// when the registry refuses. It never holds a helper's output, which may be a secret.
func (s *Store) auth(ctx context.Context, domain string) (string, error) {
	key := domain
	if domain == "docker.io" {
		key = hubKey
	}
	type answer struct {
		found types.AuthConfig
		err   error
	}
	// A helper is a program that may ask somebody and wait. It can't be told to stop, so
	// a caller that doesn't wait any longer leaves it behind.
	got := make(chan answer, 1)
	go func() {
		file, err := config.Load(s.cfg.DockerConfig)
		if err != nil {
			got <- answer{err: err}
			return
		}
		found, err := file.GetAuthConfig(key)
		got <- answer{found, err}
	}()
	select {
	case a := <-got:
		if a.err != nil {
			text, _, _ := strings.Cut(a.err.Error(), ", out:")
			return "", fmt.Errorf("reading Docker's credentials for %s: %w", domain, errors.New(text))
		}
		if a.found == (types.AuthConfig{}) || a.found == (types.AuthConfig{ServerAddress: a.found.ServerAddress}) {
			return "", nil
		}
		return registry.EncodeAuthConfig(registry.AuthConfig{
			Username: a.found.Username, Password: a.found.Password, Auth: a.found.Auth,
			ServerAddress: a.found.ServerAddress,
			IdentityToken: a.found.IdentityToken, RegistryToken: a.found.RegistryToken,
		})
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
