// SPDX-License-Identifier: Apache-2.0

package bundle

import "strings"

// AllAttempts is where the attempt records of all trials of the run begin.
func (k Keys) AllAttempts() string { return k.base() + "attempts/" }

// ParseAttempt reads the key of a claim, or of an attempt's end, as it is below
// [Keys.AllAttempts].
func (k Keys) ParseAttempt(key string) (trial string, attempt int, end, ok bool) {
	rest, found := strings.CutPrefix(key, k.AllAttempts())
	trial, name, cut := strings.Cut(rest, "/")
	if !found || !cut || trial == "" {
		return "", 0, false, false
	}
	attempt, end, ok = parseAttemptName(name)
	return trial, attempt, end, ok
}
