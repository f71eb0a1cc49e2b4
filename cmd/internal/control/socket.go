// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tidemill/tidemill/cmd/internal/local"
	"github.com/tidemill/tidemill/internal/producer"
)

// path is where the owner of a data directory takes orders.
const path = "/v1/control"

// maxOrder bounds an order, in bytes.
const maxOrder = 1 << 20

// refusal is the body of an answer that says no.
type refusal struct {
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
}

// Route has the owner of a data directory take orders.
func Route(give func(context.Context, producer.Order) (*producer.Answer, error)) local.Route {
	return local.Route{Pattern: "POST " + path, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o producer.Order
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder)).Decode(&o); err != nil {
			http.Error(w, "no order: "+err.Error(), http.StatusBadRequest)
			return
		}
		// What was begun is carried out, whether or not the client waits.
		a, err := give(context.WithoutCancel(r.Context()), o)
		w.Header().Set("Content-Type", "application/json")
		nothing, none := errors.AsType[*producer.NothingSelectedError](err)
		refused, no := errors.AsType[*producer.RefusedError](err)
		switch {
		case none:
			w.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(w).Encode(refusal{Text: nothing.Error()}) // the client went away
		case no:
			w.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(w).Encode(refusal(*refused)) // likewise
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			_ = json.NewEncoder(w).Encode(a) // likewise
		}
	})}
}

// ask gives an order to the owner of a data directory; [local.ErrNoOwner] when there is
// none. It waits for as long as the owner works on it.
func ask(ctx context.Context, dir string, o producer.Order) (*producer.Answer, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://tidemill"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := local.Do(dir, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		var a producer.Answer
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
			return nil, fmt.Errorf("answer of the process that works %s: %w", dir, err)
		}
		return &a, nil
	case http.StatusConflict:
		var no refusal
		if err := json.NewDecoder(resp.Body).Decode(&no); err != nil {
			return nil, fmt.Errorf("answer of the process that works %s: %w", dir, err)
		}
		refused := producer.RefusedError(no)
		return nil, &refused
	}
	why, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	return nil, fmt.Errorf("the process that works %s: %s", dir, strings.TrimSpace(string(why)))
}
