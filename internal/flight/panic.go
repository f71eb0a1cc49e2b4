// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic that was caught, as an error.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Safely calls do and turns a panic in it into a [PanicError]. It is for the borders
// where one failure must not take down its neighbours; state that do shared with
// others must be sound all the same.
func Safely(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return do()
}
