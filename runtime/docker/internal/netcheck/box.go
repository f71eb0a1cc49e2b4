// SPDX-License-Identifier: Apache-2.0

package netcheck

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

// toolPath is the only file of the image.
const toolPath = "/boxtool"

// repository is the name of the image; its tag is the check's name.
const repository = "tidemill-netcheck"

// importImage makes an image of nothing but the tool, without any registry.
func (l *lab) importImage(ctx context.Context) (id string, err error) {
	version, err := l.api.ServerVersion(ctx)
	if err != nil {
		return "", fmt.Errorf("ask the engine for its architecture: %w", err)
	}
	elf, err := boxtool.ELF(version.Arch)
	if err != nil {
		return "", err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	header := &tar.Header{Name: toolPath[1:], Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(elf))}
	if err := errors.Join(w.WriteHeader(header), second(w.Write(elf)), w.Close()); err != nil {
		return "", err
	}
	var changes []string
	for k, v := range l.labels() {
		if strings.ContainsAny(k+v, "\r\n") {
			return "", fmt.Errorf("label %q=%q has a line break, which an image's can't have", k, v)
		}
		changes = append(changes, "LABEL "+quoted(k)+"="+quoted(v))
	}
	progress, err := l.api.ImageImport(ctx, image.ImportSource{Source: &layer, SourceName: "-"}, repository,
		image.ImportOptions{Tag: l.name, Changes: changes})
	if err != nil {
		return "", fmt.Errorf("import the image of the check: %w", err)
	}
	defer func() { _ = progress.Close() }()
	return imported(progress)
}

// quoted is a text in a line of a Dockerfile, as it is.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`).Replace(s) + `"`
}

func second[T any](_ T, err error) error { return err }

// imported reads the progress of an import to its end. The last status is the image's id.
func imported(progress io.Reader) (id string, err error) {
	dec := json.NewDecoder(progress)
	for {
		var message struct{ Status, Error string }
		if err := dec.Decode(&message); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", fmt.Errorf("import the image of the check: progress: %w", err)
		}
		if message.Error != "" {
			return "", fmt.Errorf("import the image of the check: %s", message.Error)
		}
		id = message.Status
	}
	if id == "" {
		return "", errors.New("import the image of the check: the engine named no image")
	}
	return id, nil
}

// boxName is the name of a container, and what its neighbours call it.
func (l *lab) boxName(role string) string { return l.name + "-" + role }

// box makes and starts a container as trials have it, with the tool and its arguments
// for PID 1.
func (l *lab) box(ctx context.Context, role, network string, change func(*container.HostConfig), args ...string) (id string, err error) {
	cfg, host := l.o.Box()
	cfg.Image, cfg.Entrypoint, cfg.Cmd, cfg.Labels = l.imageID, []string{toolPath}, args, l.labels()
	host.NetworkMode = container.NetworkMode(network)
	if change != nil {
		change(host)
	}
	made, err := l.api.ContainerCreate(ctx, cfg, host, nil, nil, l.boxName(role))
	if err != nil {
		return "", fmt.Errorf("make the %s box: %w", role, err)
	}
	if err := l.api.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		return "", fmt.Errorf("start the %s box: %w", role, err)
	}
	return made.ID, nil
}

// removeBox removes a container that may be gone already, or be about to go.
func (l *lab) removeBox(ctx context.Context, id string) error {
	err := l.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("remove box %s of the check: %w", id, err)
	}
	return nil
}

func (l *lab) addressOf(ctx context.Context, id string) (netip.Addr, error) {
	info, err := l.api.ContainerInspect(ctx, id)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("ask for the neighbour's address: %w", err)
	}
	for _, n := range info.NetworkSettings.Networks {
		if ip, err := netip.ParseAddr(n.IPAddress); err == nil {
			return ip, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("the neighbour has no address in network %s", l.network.Name)
}

// probe tries the targets from inside a box, and returns the tool's byte about each.
func (l *lab) probe(ctx context.Context, id string, targets []target) ([]byte, error) {
	argv := []string{toolPath, boxtool.Probe}
	for _, t := range targets {
		arg, err := t.socket.Arg()
		if err != nil {
			return nil, err
		}
		argv = append(argv, arg)
	}
	made, err := l.api.ContainerExecCreate(ctx, id, container.ExecOptions{Cmd: argv, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	conn, err := l.api.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, conn.Close) // a read from it knows no context
	defer stop()
	var out, errOut bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &errOut, conn.Reader); err != nil {
		return nil, fmt.Errorf("probe: read its answers: %w", err)
	}
	if out.Len() != len(targets) {
		return nil, fmt.Errorf("probe: %d answers to %d questions: %s", out.Len(), len(targets), errOut.Bytes())
	}
	return out.Bytes(), nil
}
