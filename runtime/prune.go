// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"time"
)

// Pruner is an optional ability of a [Runtime]: to give back what belongs to no sandbox
// and nobody needs, such as images beyond their budget and what dead owners left in the
// runtime's directory.
type Pruner interface {
	// Prune removes it and returns what it removed. A failure at one thing doesn't keep
	// the others; what was removed is returned beside the error.
	Prune(ctx context.Context, opts PruneOptions) ([]Pruned, error)
}

// PruneOptions steer Prune. The zero value removes what the runtime removes by itself.
type PruneOptions struct {
	// DryRun removes nothing and returns what would be.
	DryRun bool
	// ImageBudget is how many bytes the images may take that were built here. 0 is the
	// runtime's own budget; negative means that none which nothing uses stays.
	ImageBudget int64
}

// Pruned is something that went, or would go.
type Pruned struct {
	Kind string // image, record, file, …
	ID   string
	// Bytes that it took, 0 where nobody counted.
	Bytes int64
	// Used is when it was used last, or made; zero where nobody knows.
	Used time.Time
	// Why in words: "beyond the budget of 10 GiB".
	Why string
}
