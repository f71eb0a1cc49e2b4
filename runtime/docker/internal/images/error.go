// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"

	"github.com/tidemill/tidemill/runtime"
)

// Error is an image that could not be had. One that wraps runtime.ErrCapacity will be
// there later.
type Error struct {
	// Image is the reference, or "build of DIR".
	Image string
	Err   error
	// Hint says what to do, where that is known.
	Hint string
	// Log is the end of a build's log; Truncated says that its beginning is missing.
	Log       []byte
	Truncated bool
	// Code is the exit code of the build's command that failed, else 0.
	Code int
	// Permanent: trying again won't help.
	Permanent bool
}

func (e *Error) Error() string {
	msg := "image " + e.Image + ": " + e.Err.Error()
	if e.Hint != "" {
		msg += "; " + e.Hint
	}
	return msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// BuildService is the name under which a build's log is among a sandbox's evidence.
const BuildService = "build"

// Provision makes an error of [Store.Ensure] the error of a sandbox, with the build's
// log as evidence.
func Provision(sandbox string, err error) *runtime.ProvisionError {
	pe := &runtime.ProvisionError{Stage: runtime.StageImage, Name: sandbox, Err: err}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return pe
	}
	pe.Permanent = e.Permanent
	if len(e.Log) > 0 {
		log := runtime.ServiceEvidence{Service: BuildService, Log: e.Log, Truncated: e.Truncated}
		if e.Code != 0 {
			log.ExitCode = &e.Code
		}
		pe.Evidence.Services = []runtime.ServiceEvidence{log}
	}
	return pe
}
