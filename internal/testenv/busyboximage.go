// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/docker/docker/client"
)

// BusyboxImage returns a reference to a small image with a POSIX shell and the usual
// tools: the machine's static busybox with a link for each of its applets, the users
// root, [TestUser], [OtherTestUser] and nobody, and nothing else.
func BusyboxImage(t testing.TB, cli *client.Client) string {
	t.Helper()
	binary, err := staticBusybox()
	if err != nil {
		RequireOrFail(t, fmt.Sprintf("a static busybox (Debian: busybox-static): %v", err))
	}
	return testImage{
		repository: "tidemill-test/busybox",
		inputs:     []string{"busybox 1", fmt.Sprintf("%x", sha256.Sum256(binary))},
		changes:    []string{`CMD ["sh"]`, "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		files:      func(ctx context.Context, w io.Writer) error { return busyboxTree(ctx, w, binary) },
	}.ensure(t, cli)
}

func staticBusybox() ([]byte, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return nil, errors.New("there is no busybox in PATH")
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return nil, fmt.Errorf("%s is linked dynamically", path)
		}
	}
	return binary, nil
}

func busyboxTree(ctx context.Context, w io.Writer, binary []byte) error {
	list, err := exec.CommandContext(ctx, "busybox", "--list-full").Output()
	if err != nil {
		return fmt.Errorf("busybox --list-full: %w", err)
	}
	tree := newTree(w)
	for _, dir := range []string{"bin", "sbin", "usr", "usr/bin", "usr/sbin", "usr/local", "usr/local/bin", "var"} {
		tree.dir(dir, 0o755)
	}
	tree.users("/bin/sh")
	tree.file("bin/busybox", 0o755, binary)
	for name := range strings.FieldsSeq(string(list)) {
		dir := path.Dir(name)
		if name == "bin/busybox" || dir == "." {
			continue // applets outside of the usual directories are for an initrd
		}
		tree.link(name, "/bin/busybox")
	}
	return tree.close()
}
