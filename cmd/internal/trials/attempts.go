// SPDX-License-Identifier: Apache-2.0

package trials

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/cmd/internal/app"
)

// CheckAttempt refuses an --attempt that the trial never began, and says which there are; 0
// stands for none in particular.
func CheckAttempt(ctx context.Context, s bundle.Store, t Trial, number int) error {
	if number == 0 {
		return nil
	}
	all, err := bundle.ListAttempts(ctx, s, bundle.Keys{Run: t.Run}, t.Row.TrialID)
	if err != nil {
		return err
	}
	var numbers []int
	for _, a := range all {
		numbers = append(numbers, a.Claim.Attempt)
	}
	if slices.Contains(numbers, number) {
		return nil
	}
	return app.Usage(app.Hint(fmt.Errorf("--attempt %d: trial %s has %s", number, t.Name(), attemptWords(numbers)),
		"tidemill show %s without --attempt lists its attempts", ShortID(t.Row.TrialID)))
}

func attemptWords(numbers []int) string {
	slices.Sort(numbers)
	switch n := len(numbers); {
	case n == 0:
		return "not begun"
	case n == 1:
		return fmt.Sprintf("only attempt %d", numbers[0])
	case numbers[n-1]-numbers[0] == n-1:
		return fmt.Sprintf("the attempts %d to %d", numbers[0], numbers[n-1])
	}
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return "the attempts " + strings.Join(words, ", ")
}
