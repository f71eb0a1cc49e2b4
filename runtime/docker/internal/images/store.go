// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/tidemill/tidemill/runtime"
)

// API is the part of the engine's client that is used here.
type API interface {
	ImageInspect(ctx context.Context, ref string, opts ...client.ImageInspectOption) (image.InspectResponse, error)
	ImagePull(ctx context.Context, ref string, opts image.PullOptions) (io.ReadCloser, error)
	ImageBuild(ctx context.Context, tar io.Reader, opts build.ImageBuildOptions) (build.ImageBuildResponse, error)
	ImageTag(ctx context.Context, source, target string) error
	ImageList(ctx context.Context, opts image.ListOptions) ([]image.Summary, error)
	ImageRemove(ctx context.Context, id string, opts image.RemoveOptions) ([]image.DeleteResponse, error)
	ContainerList(ctx context.Context, opts container.ListOptions) ([]container.Summary, error)
}

var _ API = (*client.Client)(nil)

// Store provides the images of one engine. All methods may be called from many
// goroutines at once.
type Store struct {
	api     API
	cfg     Config
	flights flights
	builds  chan struct{} // holds one value for each running build
	trims   sync.Mutex

	mu     sync.Mutex
	held   map[string]int     // image id → how many runs hold it
	failed map[string]failure // build digest → how it failed
}

// New returns a store. The configuration is completed and checked.
func New(api API, cfg Config) (*Store, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Store{
		api: api, cfg: cfg, builds: make(chan struct{}, cfg.Builds),
		held: map[string]int{}, failed: map[string]failure{},
	}, nil
}

// Pull policies.
const (
	PullAuto   = "auto"   // what is missing is pulled or built
	PullAlways = "always" // pulled, or built from pulled bases, even if it is there
	PullNever  = "never"  // nothing is pulled
)

// Ensure makes sure that an image is on the engine. An error is an [Error], or the
// cause of ctx when that ended.
func (s *Store) Ensure(ctx context.Context, want runtime.Image) (Image, error) {
	policy := want.PullPolicy
	switch policy {
	case "":
		policy = PullAuto
	case PullAuto, PullAlways, PullNever:
	default:
		return Image{}, &Error{
			Image: label(want), Permanent: true,
			Err: fmt.Errorf("pull policy %q: want auto, always or never", want.PullPolicy),
		}
	}
	switch {
	case want.Ref != "":
		return s.ensureRef(ctx, want.Ref, policy)
	case want.BuildContext != "":
		return s.ensureBuild(ctx, want, policy)
	default:
		return Image{}, &Error{
			Image: label(want), Permanent: true,
			Err: errors.New("neither a reference nor a build context is given: name one of them"),
		}
	}
}

func label(want runtime.Image) string {
	switch {
	case want.Ref != "":
		return want.Ref
	case want.BuildContext != "":
		return "build of " + want.BuildContext
	default:
		return "(none)"
	}
}

// ensureRef provides an image that has a name, or an engine's id.
func (s *Store) ensureRef(ctx context.Context, ref, policy string) (Image, error) {
	parsed, err := reference.ParseAnyReference(ref)
	if err != nil {
		return Image{}, &Error{
			Image: ref, Permanent: true,
			Err: fmt.Errorf("%w: want a reference such as python:3.12-slim or name@sha256:…", err),
		}
	}
	named, pullable := parsed.(reference.Named)
	if policy != PullAlways || !pullable {
		img, err := s.inspect(ctx, ref)
		if err == nil {
			img.Origin = Present
			return img, nil
		}
		if !cerrdefs.IsNotFound(err) {
			return Image{}, s.trouble(ctx, ref, err)
		}
	}
	switch {
	case !pullable:
		return Image{}, &Error{
			Image: ref, Permanent: true, Err: errors.New("the engine has no image with this id"),
			Hint: "an id can't be pulled: name the image by name:tag or name@sha256:…",
		}
	case policy == PullNever:
		return Image{}, &Error{
			Image: ref, Permanent: true,
			Err:  errors.New("it is not on this engine, and its pull policy is never"),
			Hint: "load, pull or build it on this machine, or set pull_policy: auto",
		}
	}
	named = reference.TagNameOnly(named)
	return s.flights.do(ctx, "pull "+named.String(), func(ctx context.Context) (Image, error) {
		if err := s.pull(ctx, ref, named); err != nil {
			return Image{}, err
		}
		img, err := s.inspect(ctx, named.String())
		if err != nil {
			return Image{}, s.trouble(ctx, ref, fmt.Errorf("after it was pulled: %w", err))
		}
		img.Ref, img.Origin = ref, Pulled
		return img, nil
	})
}

// inspect asks the engine for an image.
func (s *Store) inspect(ctx context.Context, ref string) (Image, error) {
	info, err := s.api.ImageInspect(ctx, ref)
	if err != nil {
		return Image{}, err
	}
	return describe(ref, info), nil
}

// trouble is an error of the engine, unless the caller ended it.
func (s *Store) trouble(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &Error{Image: name, Err: err}
}
