// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// TrialID returns the id of a trial: the first 32 hex characters of the sha256 of
// the JSON array [storeUUID, runID, taskID, trialIndex], written without spaces and
// without HTML escaping. The same trial has the same id wherever it is computed, and
// no two stores share one.
//
// docs/bundle-format.md has test vectors.
func TrialID(storeUUID, runID, taskID string, trialIndex int) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode([]any{storeUUID, runID, taskID, trialIndex}); err != nil {
		panic(fmt.Sprintf("three strings and a number always encode: %v", err))
	}
	sum := sha256.Sum256(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
	return hex.EncodeToString(sum[:16])
}

// NewUUID returns a random (version 4) UUID.
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// NewNonce returns 32 random hex characters.
func NewNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
