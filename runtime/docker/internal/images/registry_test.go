// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
)

// registryServer serves images to the engine from memory, in the distribution
// protocol's second version. Engines talk plain HTTP to registries on loopback.
type registryServer struct {
	*httptest.Server
	host string

	mu        sync.Mutex
	manifests map[string][]byte // "name:tag" and "name@digest"
	blobs     map[string][]byte
	user      string // "name:password"; empty lets everybody in
	asked     map[string]int
	quit      chan struct{}
	before    func(w http.ResponseWriter, r *http.Request, manifest int) bool // answered?
}

const (
	manifestType = "application/vnd.docker.distribution.manifest.v2+json"
	configType   = "application/vnd.docker.container.image.v1+json"
	layerType    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

func newRegistry(t testing.TB) *registryServer {
	r := &registryServer{manifests: map[string][]byte{}, blobs: map[string][]byte{}, asked: map[string]int{}, quit: make(chan struct{})}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		close(r.quit)
		r.Close()
	})
	r.host = strings.TrimPrefix(r.URL, "http://")
	return r
}

// manifestsAsked is how many requests for manifests came.
func (s *registryServer) manifestsAsked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked["manifests"]
}

func (s *registryServer) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *registryServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v2/"), "/")
	kind, n := "", 0
	if len(parts) >= 3 {
		kind = parts[len(parts)-2]
	}
	s.mu.Lock()
	s.asked[kind]++
	if kind == "manifests" {
		n = s.asked[kind]
	}
	user, before := s.user, s.before
	s.mu.Unlock()

	if name, password, _ := r.BasicAuth(); user != "" && name+":"+password != user {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
		return
	}
	if n > 0 && before != nil && before(w, r, n) {
		return
	}
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if kind == "" {
		return
	}
	name, id := strings.Join(parts[:len(parts)-2], "/"), parts[len(parts)-1]
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case "manifests":
		sep := ":"
		if strings.HasPrefix(id, "sha256:") {
			sep = "@"
		}
		body, ok := s.manifests[name+sep+id]
		if !ok {
			refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown")
			return
		}
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", digestOf(body))
		_, _ = w.Write(body)
	case "blobs":
		body, ok := s.blobs[id]
		if !ok {
			refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", "blob unknown")
			return
		}
		_, _ = w.Write(body)
	}
}

func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, text)
}

func digestOf(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// put makes an image with one file and returns its reference and the engine's id.
func (s *registryServer) put(t testing.TB, name, content string) (ref, id string) {
	t.Helper()
	var layer bytes.Buffer
	tw := tar.NewWriter(&layer)
	err := tw.WriteHeader(&tar.Header{Name: "content", Mode: 0o644, Size: int64(len(content))})
	if err == nil {
		_, err = tw.Write([]byte(content))
	}
	if err != nil || tw.Close() != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	if _, err := zw.Write(layer.Bytes()); err != nil || zw.Close() != nil {
		t.Fatal(err)
	}
	config := marshal(t, map[string]any{
		"architecture": goruntime.GOARCH, "os": "linux",
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digestOf(layer.Bytes())}},
		"config": map[string]any{
			"WorkingDir": "/srv", "User": "7:8", "Env": []string{"A=b"}, "Entrypoint": []string{"/e"}, "Cmd": []string{"c"},
			"Volumes": map[string]any{"/v2": struct{}{}, "/v1": struct{}{}},
		},
	})
	descriptor := func(kind string, b []byte) map[string]any {
		return map[string]any{"mediaType": kind, "size": len(b), "digest": digestOf(b)}
	}
	manifest := marshal(t, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": descriptor(configType, config),
		"layers": []any{descriptor(layerType, packed.Bytes())},
	})
	s.set(func() {
		s.manifests[name] = manifest
		repository, _, _ := strings.Cut(name, ":")
		s.manifests[repository+"@"+digestOf(manifest)] = manifest
		s.blobs[digestOf(config)], s.blobs[digestOf(packed.Bytes())] = config, packed.Bytes()
	})
	return s.host + "/" + name, digestOf(config)
}

func marshal(t testing.TB, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
