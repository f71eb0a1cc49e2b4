// SPDX-License-Identifier: Apache-2.0

package showcmd

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
	"github.com/tidemill/tidemill/cmd/internal/statuscmd"
	"github.com/tidemill/tidemill/cmd/internal/stores"
	"github.com/tidemill/tidemill/manifest"
)

// runDescription is a run with what it was made from.
type runDescription struct {
	*statuscmd.Description
	PlanDigest    string   `json:"plan_digest"`
	Packs         []pack   `json:"packs"`
	Repeats       int      `json:"repeats"`
	NetworkPolicy string   `json:"network_policy"`
	Command       []string `json:"command,omitempty"`
	Path          string   `json:"path"` // a directory, or a URL
}

type pack struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Tasks  int    `json:"tasks"`
}

func (o options) run(ctx context.Context, cmd *cobra.Command, store bundle.Store, rec manifest.RunRecord) error {
	if o.attempt != 0 {
		return app.Usage(app.Hint(errors.New("--attempt is about a trial, and a run is named"), "name a trial as %s/TASK#INDEX", rec.RunID))
	}
	w := cmd.OutOrStdout()
	d, err := statuscmd.Describe(ctx, cmd.ErrOrStderr(), store, o.store.Where(), &o.queue, rec.RunID)
	if err != nil {
		return err
	}
	prefix := bundle.Keys{Run: rec.RunID}.Prefix()
	full := runDescription{
		Description: d, PlanDigest: rec.Plan.Digest, Packs: []pack{}, Repeats: rec.Run.Repeats,
		NetworkPolicy: rec.Run.NetworkPolicy, Command: rec.Run.Agent.Command,
		Path: stores.Join(store.URL(), strings.TrimSuffix(prefix, "/")),
	}
	for _, p := range rec.Packs {
		full.Packs = append(full.Packs, pack(p))
	}
	if o.json {
		return app.PrintJSON(w, full)
	}
	if err := d.Write(w); err != nil {
		return err
	}
	r := newRows(w)
	r.add("command", "%s", strings.Join(full.Command, " "))
	for _, p := range full.Packs {
		r.add("pack", "%s, %s, sha256 %s", p.Name, app.Count(p.Tasks, "task"), p.SHA256)
	}
	r.add("repeats", "%d", full.Repeats)
	r.add("network", "%s", full.NetworkPolicy)
	r.add("plan", "%s", full.PlanDigest)
	r.add("files", "%s", full.Path)
	return r.w.Flush()
}
