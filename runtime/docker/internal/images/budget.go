// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
)

// candidate is an image on the engine.
type candidate struct {
	id     string
	size   int64
	chain  []string // see chain
	ours   bool     // built here, and known by no name but ours
	tagged time.Time
}

// Trim removes images that were built here and are not in use, those first whose last
// use is longest ago, until the rest fits into the budget. It returns the ids of what
// it removed. Without a budget it does nothing.
func (s *Store) Trim(ctx context.Context) ([]string, error) {
	if s.cfg.Budget <= 0 {
		return nil, nil
	}
	removed, err := s.Shrink(ctx, s.cfg.Budget, false)
	var ids []string
	for _, u := range removed {
		ids = append(ids, u.ID)
	}
	return ids, err
}

// Budget is the configured one, 0 without one.
func (s *Store) Budget() int64 { return s.cfg.Budget }

// Unused is an image that was built here and that nothing uses.
type Unused struct {
	ID   string
	Size int64     // with what it was built upon
	Used time.Time // for the last time
}

// Shrink is Trim with another budget, in bytes, and says more of what it removed. A dry
// one removes nothing and says what would go.
func (s *Store) Shrink(ctx context.Context, budget int64, dry bool) ([]Unused, error) {
	s.trims.Lock() // two at once would remove more than they need to
	defer s.trims.Unlock()
	all, err := s.candidates(ctx)
	if err != nil {
		return nil, fmt.Errorf("docker images: counting what they take: %w", err)
	}
	if taken(all) <= budget {
		return nil, nil
	}
	busy, err := s.busy(ctx)
	if err != nil {
		return nil, fmt.Errorf("docker images: looking for those in use: %w", err)
	}
	var removed []Unused
	var errs []error
	queue := slices.Clone(all)
	slices.SortFunc(queue, func(a, b candidate) int { return a.tagged.Compare(b.tagged) })
	for _, c := range queue {
		if !c.ours || busy[c.id] || s.isHeld(c.id) || time.Since(c.tagged) < s.cfg.Grace {
			continue
		}
		if taken(all) <= budget {
			break
		}
		if !dry {
			// By id, so that a tag that moved takes nothing else along; never forced, so that
			// the engine has the last word on what is in use.
			_, err = s.api.ImageRemove(ctx, c.id, image.RemoveOptions{PruneChildren: true})
		}
		switch {
		case err == nil:
			removed = append(removed, Unused{ID: c.id, Size: c.size, Used: c.tagged})
		case cerrdefs.IsNotFound(err):
		case cerrdefs.IsConflict(err):
			continue
		default:
			errs = append(errs, fmt.Errorf("docker images: removing %s: %w", c.id, err))
			continue
		}
		all = slices.DeleteFunc(all, func(o candidate) bool { return o.id == c.id })
	}
	return removed, errors.Join(errs...)
}

// candidates lists the engine's images, ours and others.
func (s *Store) candidates(ctx context.Context) ([]candidate, error) {
	list, err := s.api.ImageList(ctx, image.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []candidate
	for _, sum := range list {
		info, err := s.api.ImageInspect(ctx, sum.ID)
		if cerrdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c := candidate{id: info.ID, size: info.Size, chain: chain(info.RootFS.Layers), tagged: info.Metadata.LastTagTime}
		if info.Config != nil && info.Config.Labels[LabelManaged] == "true" && info.Config.Labels[LabelBuild] != "" {
			foreign := func(tag string) bool { return !strings.HasPrefix(tag, Repository+":") }
			c.ours = len(info.RepoTags) > 0 && len(info.RepoDigests) == 0 && !slices.ContainsFunc(info.RepoTags, foreign)
		}
		out = append(out, c)
	}
	return out, nil
}

// taken is how many bytes our images take beyond what the images they were built upon
// take anyway. Layers that two of ours share without there being an image of just those
// count twice.
func taken(all []candidate) int64 {
	ends := map[string]int64{} // the last layer's chain → size of an image that ends there
	for _, c := range all {
		if n := len(c.chain); n > 0 {
			ends[c.chain[n-1]] = c.size
		}
	}
	var sum int64
	counted := map[string]bool{}
	for _, c := range all {
		n := len(c.chain)
		if !c.ours || n == 0 || counted[c.chain[n-1]] {
			continue
		}
		counted[c.chain[n-1]] = true
		var base int64
		for i := n - 2; i >= 0; i-- {
			if size, ok := ends[c.chain[i]]; ok {
				base = size
				break
			}
		}
		sum += max(0, c.size-base)
	}
	return sum
}

// chain names each layer together with all those below it.
func chain(layers []string) []string {
	out := make([]string, len(layers))
	h := sha256.New()
	for i, l := range layers {
		io.WriteString(h, l+"\n")
		out[i] = string(h.Sum(nil))
	}
	return out
}

// busy returns the ids of the images that containers were made from, in any state.
func (s *Store) busy(ctx context.Context) (map[string]bool, error) {
	list, err := s.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs()})
	if err != nil {
		return nil, err
	}
	busy := map[string]bool{}
	for _, c := range list {
		busy[c.ImageID] = true
	}
	return busy, nil
}
