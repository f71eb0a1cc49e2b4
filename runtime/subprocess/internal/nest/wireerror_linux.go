// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"errors"
	"fmt"
	"syscall"
)

// wireError is an error on its way from the warden to the worker.
type wireError struct {
	Kind   string        `json:",omitempty"`
	Name   string        `json:",omitempty"` // of the program, or the limit
	Text   string        `json:",omitempty"`
	Number syscall.Errno `json:",omitempty"`
}

const (
	kindStart = "start"
	kindLost  = "lost"
	kindLimit = "limit"
)

func (e *wireError) Error() string { return e.Text }

func (e *wireError) Unwrap() error {
	if e.Number == 0 {
		return nil
	}
	return e.Number
}

func toWire(err error) *wireError {
	if err == nil {
		return nil
	}
	w := &wireError{Text: err.Error()}
	errors.As(err, &w.Number)
	var start *StartError
	var limit *LimitError
	switch {
	case errors.As(err, &start):
		w.Kind, w.Name, w.Text = kindStart, start.Name, start.Err.Error()
	case errors.As(err, &limit):
		w.Kind, w.Name, w.Text = kindLimit, limit.Limit, limit.Reason
	case errors.Is(err, ErrLost):
		w.Kind = kindLost
	}
	return w
}

func fromWire(w *wireError) error {
	if w == nil {
		return nil
	}
	switch w.Kind {
	case kindStart:
		return &StartError{Name: w.Name, Err: &wireError{Text: w.Text, Number: w.Number}}
	case kindLimit:
		return &LimitError{Limit: w.Name, Reason: w.Text}
	case kindLost:
		return fmt.Errorf("%w: %s", ErrLost, w.Text)
	}
	return w
}
