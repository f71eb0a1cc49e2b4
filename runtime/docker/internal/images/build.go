// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"

	"github.com/tidemill/tidemill/runtime"
)

// Labels of the images that are built here.
const (
	LabelManaged = "dev.tidemill.managed" // "true"
	LabelBuild   = "dev.tidemill.build"   // "sha256:" and the digest of the build's input
)

// Repository is where the images that are built here are tagged.
const Repository = "tidemill/build"

// errChanged is a context that isn't any more what its digest says.
var errChanged = errors.New("the build context changed while it was read")

// ensureBuild provides the image of a build context.
func (s *Store) ensureBuild(ctx context.Context, want runtime.Image, policy string) (Image, error) {
	name := label(want)
	dir, err := filepath.Abs(want.BuildContext)
	if err != nil {
		return Image{}, &Error{Image: name, Err: err}
	}
	bc, err := s.openContext(dir, want.Dockerfile)
	var digest string
	if err == nil {
		digest, err = bc.digest(ctx)
	}
	if err != nil {
		return Image{}, s.contextTrouble(ctx, name, err)
	}
	if policy != PullAlways {
		img, err := s.built(ctx, digest)
		if err == nil {
			return img, nil
		}
		if !cerrdefs.IsNotFound(err) {
			return Image{}, s.trouble(ctx, name, err)
		}
	}
	timeout := want.BuildTimeout
	if timeout <= 0 {
		timeout = s.cfg.BuildTimeout
	}
	if err := s.hopelessly(digest); err != nil && policy != PullAlways {
		return Image{}, err
	}
	return s.flights.do(ctx, "build "+digest, func(ctx context.Context) (Image, error) {
		select {
		case s.builds <- struct{}{}:
			defer func() { <-s.builds }()
		case <-ctx.Done():
			return Image{}, context.Cause(ctx)
		}
		if err := s.ensureBases(ctx, name, bc, policy); err != nil {
			return Image{}, err
		}
		made, err := s.build(ctx, name, bc, digest, timeout)
		if err = s.ended(ctx, digest, made, err); err != nil {
			return Image{}, err
		}
		img, err := s.built(ctx, digest)
		if err != nil {
			return Image{}, s.trouble(ctx, name, fmt.Errorf("after it was built: %w", err))
		}
		img.Origin = Built
		if s.cfg.Budget > 0 {
			s.hold(img.ID, +1)
			if _, err := s.Trim(ctx); err != nil {
				s.cfg.Report(err)
			}
			s.hold(img.ID, -1)
		}
		return img, nil
	})
}

// built returns the image of a digest if it is there and ours, and notes its use.
func (s *Store) built(ctx context.Context, digest string) (Image, error) {
	tag := Repository + ":" + digest
	info, err := s.api.ImageInspect(ctx, tag)
	if err != nil {
		return Image{}, err
	}
	if info.Config == nil || info.Config.Labels[LabelBuild] != "sha256:"+digest {
		return Image{}, fmt.Errorf("%s has no label of ours: %w", tag, cerrdefs.ErrNotFound)
	}
	img := describe(tag, info)
	img.Origin, img.BuildDigest = Present, "sha256:"+digest
	return img, s.touch(ctx, &img)
}

// touch notes that a built image was used: the engine keeps the time of its last tag.
// The tag is put on the image's id, so it also proves that the image is still there.
func (s *Store) touch(ctx context.Context, img *Image) error {
	if time.Since(img.tagged) < s.cfg.Grace/4 {
		return nil
	}
	return s.api.ImageTag(ctx, img.ID, img.Ref)
}

// ensureBases provides what the build starts from, so that a missing one is told and
// tried again like any other pull.
func (s *Store) ensureBases(ctx context.Context, name string, bc *buildContext, policy string) error {
	names, err := bc.bases()
	if err != nil {
		return s.contextTrouble(ctx, name, err)
	}
	for _, base := range names {
		_, err := s.ensureRef(ctx, base, policy)
		if e, ok := errors.AsType[*Error](err); ok {
			told := *e
			told.Image, told.Err = name, fmt.Errorf("base image %s: %w", base, e.Err)
			return &told
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// build streams the context to the engine and reads what it answers. It returns the ids
// of the images that it made, in order.
func (s *Store) build(ctx context.Context, name string, bc *buildContext, digest string, timeout time.Duration) (made []string, err error) {
	work, cancel := context.WithTimeoutCause(ctx, timeout, errOutOfTime)
	defer cancel()
	pr, pw := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		h := bc.newDigest()
		err := bc.write(work, io.MultiWriter(h, pw))
		if err == nil && hex.EncodeToString(h.Sum(nil)) != digest {
			err = errChanged
		}
		pw.CloseWithError(err)
		sent <- err
	}()
	log := &buildLog{tail: tail{size: s.cfg.LogTail}}
	err = s.stream(work, pr, bc, digest, log)
	// Whatever the engine left unread ends here, and so does the writer.
	pr.CloseWithError(io.ErrClosedPipe)
	if serr := <-sent; serr != nil && !errors.Is(serr, io.ErrClosedPipe) && work.Err() == nil {
		return log.made, s.contextTrouble(ctx, name, serr)
	}
	switch {
	case err == nil:
		return log.made, nil
	case ctx.Err() != nil:
		return log.made, context.Cause(ctx)
	case work.Err() != nil:
		err = fmt.Errorf("took longer than %v", timeout)
	}
	return log.made, log.failure(name, err)
}

func (s *Store) stream(ctx context.Context, body io.Reader, bc *buildContext, digest string, log *buildLog) error {
	resp, err := s.api.ImageBuild(ctx, body, build.ImageBuildOptions{
		Version:     build.BuilderV1,
		Dockerfile:  filepath.ToSlash(bc.dockerfile),
		Tags:        []string{Repository + ":" + digest},
		Labels:      map[string]string{LabelManaged: "true", LabelBuild: "sha256:" + digest},
		Remove:      true,
		ForceRemove: true,
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return readStream(resp.Body, log.take)
}

// contextTrouble is an error with the context's directory.
func (s *Store) contextTrouble(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, permanent := errors.AsType[permanentError](err)
	return &Error{Image: name, Err: err, Permanent: permanent || errors.Is(err, os.ErrPermission)}
}
