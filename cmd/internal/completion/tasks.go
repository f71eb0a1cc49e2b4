// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/manifest"
)

// debugArgs completes a run file and a task of its packs, or with --rm a trial.
func debugArgs(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if remove, err := cmd.Flags().GetBool("rm"); err == nil && remove {
		return first(trialNames)(cmd, args, typed)
	}
	switch len(args) {
	case 0:
		return files(cmd, args, typed)
	case 1:
		return tasksOf(cmd, args[0], typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
	return nothing(cmd, args, typed)
}

// tasksOf reads the tasks of a run file, as far as the time allows.
func tasksOf(cmd *cobra.Command, file, typed string) []cobra.Completion {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	load := manifest.LoadOptions{Vars: map[string]string{}, LookupEnv: os.LookupEnv}
	vars, _ := cmd.Flags().GetStringArray("var")
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		load.Vars[name] = value
	}
	runs, err := manifest.Load(file, load)
	if err != nil || len(runs) == 0 {
		return nil
	}
	q := &query{ctx: ctx, typed: typed}
	for _, dir := range runs[0].Packs {
		pack, err := manifest.OpenPack(dir, runs[0].PackOptions(load))
		if err != nil {
			return q.out
		}
		for ref, err := range pack.Tasks(ctx) {
			if err != nil && ref.ID != "" {
				continue // it can't run; others can
			}
			if err != nil || !q.add(ref.ID, "") {
				return q.out
			}
		}
	}
	return q.out
}
