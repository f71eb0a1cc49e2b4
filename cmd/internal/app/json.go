// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"io"
)

// PrintJSON prints a value for people and programs alike: indented, nothing escaped.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
