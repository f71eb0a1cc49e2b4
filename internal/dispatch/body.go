// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tidemill/tidemill/bundle"
)

// Body returns the body of a job: where its trial stands in the plan.
func Body(ref bundle.PlanRef) []byte {
	b, err := json.Marshal(ref)
	if err != nil {
		panic(fmt.Sprintf("two numbers always encode: %v", err))
	}
	return b
}

// ParseBody reads what [Body] wrote, and refuses everything else: a body that is
// misread runs another trial.
func ParseBody(body []byte) (bundle.PlanRef, error) {
	ref, err := parseBody(body)
	if err != nil {
		return bundle.PlanRef{}, fmt.Errorf("job body %.80q: %w; want {\"part\":N,\"row\":N}", body, err)
	}
	return ref, nil
}

func parseBody(body []byte) (ref bundle.PlanRef, err error) {
	var raw struct {
		Part *int `json:"part"`
		Row  *int `json:"row"`
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&raw); err != nil {
		return ref, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return ref, errors.New("something follows")
	}
	switch {
	case raw.Part == nil || raw.Row == nil:
		return ref, errors.New("a number is missing")
	case *raw.Part < 0 || *raw.Row < 0:
		return ref, errors.New("negative numbers")
	}
	return bundle.PlanRef{Part: *raw.Part, Row: *raw.Row}, nil
}
