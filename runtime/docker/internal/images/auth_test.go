// SPDX-License-Identifier: Apache-2.0

package images

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

const secret = "s3cret-of-the-test"

// dockerConfig writes a config.json and returns its directory.
func dockerConfig(t testing.TB, format string, args ...any) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), fmt.Appendf(nil, format, args...), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// helper puts a credential helper into PATH.
func helper(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "docker-credential-tmtest")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestCredentialsAreDockersOwn(t *testing.T) {
	api := newEngine(t)
	basic := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, row := range map[string]struct {
		config func(host string) string // config.json
		helper string
		env    bool // by DOCKER_CONFIG
		ok     bool
		texts  []string
	}{
		"none": {func(string) string { return `{}` }, "", false, false, []string{"log in"}},
		"in config.json": {
			func(h string) string { return fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, h, basic("u:"+secret)) }, "", false, true, nil,
		},
		"in DOCKER_CONFIG": {
			func(h string) string { return fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, h, basic("u:"+secret)) }, "", true, true, nil,
		},
		"wrong": {
			func(h string) string { return fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, h, basic("u:not-"+secret)) }, "", false, false, []string{"log in"},
		},
		"for another registry": {
			func(string) string {
				return fmt.Sprintf(`{"auths":{"other.example":{"auth":%q}}}`, basic("u:"+secret))
			}, "", false, false, []string{"log in"},
		},
		"from the registry's helper": {
			func(h string) string { return fmt.Sprintf(`{"credHelpers":{%q:"tmtest"}}`, h) },
			`echo '{"ServerURL":"x","Username":"u","Secret":"` + secret + `"}'`, false, true, nil,
		},
		"from the helper for all": {
			func(string) string { return `{"credsStore":"tmtest"}` },
			`echo '{"ServerURL":"x","Username":"u","Secret":"` + secret + `"}'`, false, true, nil,
		},
		"from a helper that fails": {
			func(h string) string { return fmt.Sprintf(`{"credHelpers":{%q:"tmtest"}}`, h) },
			`echo 'I know ` + secret + `'; exit 1`, false, false,
			[]string{"log in", "no credentials were sent", "exit status 1"},
		},
		"from a helper that isn't there": {
			func(h string) string { return fmt.Sprintf(`{"credHelpers":{%q:"tmtest-none"}}`, h) },
			"", false, false,
			[]string{"docker-credential-tmtest-none"},
		},
		"in a broken file": {func(string) string { return `{` }, "", false, false, []string{"config.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			reg := newRegistry(t)
			reg.set(func() { reg.user = "u:" + secret })
			ref, id := reg.put(t, "private:1", name)
			removeAfter(t, api, ref)
			dir := dockerConfig(t, "%s", row.config(reg.host))
			if row.helper != "" {
				helper(t, row.helper)
			}
			if row.env {
				t.Setenv("DOCKER_CONFIG", dir)
				dir = ""
			}
			s := newStore(t, api, func(c *Config) { c.DockerConfig = dir })
			got, err := s.Ensure(within(t), runtime.Image{Ref: ref})
			if row.ok {
				if err != nil || got.ID != id {
					t.Errorf("%+v, %v; want %s", got, err, id)
				}
				return
			}
			wantError(t, err, true, row.texts...)
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

// Without credentials a public image can still be had.
func TestAFailingHelperDoesNotStopAPublicImage(t *testing.T) {
	api, reg := newEngine(t), newRegistry(t)
	ref, id := reg.put(t, "public:1", "x")
	removeAfter(t, api, ref)
	s := newStore(t, api, func(c *Config) { c.DockerConfig = dockerConfig(t, `{"credsStore":"tmtest-none"}`) })
	if got, err := s.Ensure(within(t), runtime.Image{Ref: ref}); err != nil || got.ID != id {
		t.Errorf("%+v, %v; want %s", got, err, id)
	}
}
