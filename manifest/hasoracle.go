// SPDX-License-Identifier: Apache-2.0

package manifest

// HasOracle reports whether the pack brings a solution for its tasks.
func (p *Pack) HasOracle() bool { return p.spec.Oracle != nil }
