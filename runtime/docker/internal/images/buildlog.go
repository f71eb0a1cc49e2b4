// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/tidemill/tidemill/runtime"
)

// buildLog is what a build said: the end of it, the step that it was at, and the images
// that it made on the way.
type buildLog struct {
	tail
	step    string // "2/5", or empty before the first
	command string // "RUN make"
	cached  bool   // the step's image was there
	made    []string
}

var (
	stepRE = regexp.MustCompile(`^Step (\d+/\d+) : (.*)`)
	madeRE = regexp.MustCompile(`^ ---> ([0-9a-f]{12,64})\s*$`)
)

func (l *buildLog) take(m message) {
	l.WriteString(m.Stream)
	if step := stepRE.FindStringSubmatch(m.Stream); step != nil {
		l.step, l.command = step[1], strings.TrimSpace(step[2])
		l.cached = l.isFrom() // its image is the base
	}
	if strings.HasPrefix(m.Stream, " ---> Using cache") {
		l.cached = true
	}
	if id := madeRE.FindStringSubmatch(m.Stream); id != nil && !l.cached {
		l.made = append(l.made, id[1])
	}
}

func (l *buildLog) isFrom() bool { return strings.HasPrefix(strings.ToUpper(l.command), "FROM") }

// Words of the classic builder for what no second try changes.
var (
	mistakes = []string{
		"dockerfile parse error", "copy failed", "unknown instruction", "unknown flag", "failed to process",
		"no source files were specified", "the dockerfile ", "forbidden path", "no build stage in current context",
		"requires at least", "requires exactly", "invalid reference format", "when using copy with more than one",
	}
	needBuildKit = []string{"requires buildkit", "unknown flag: mount", "unknown flag: chmod", "unknown flag: link"}
)

// failure tells how a build ended, with the step and the log.
func (l *buildLog) failure(name string, err error) *Error {
	e := &Error{Image: name, Err: err, Log: slices.Clone(l.Bytes()), Truncated: l.cut}
	text := strings.ToLower(err.Error())
	says := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	se, _ := errors.AsType[*streamError](err)
	if se != nil {
		e.Code = se.code
		// The engine has its error in the stream, not in the log.
		e.Log = append(e.Log, se.message+"\n"...)
	}
	switch {
	case says(needBuildKit), strings.HasPrefix(l.command, "RUN") && strings.Contains(l.command, "<<"):
		e.Hint = "this Dockerfile needs BuildKit, which is not used here: build the image yourself and name it"
		e.Permanent = says(needBuildKit)
	case says(mistakes), l.step == "" && cerrdefs.IsInvalidArgument(err):
		e.Permanent = true
	case l.isFrom():
		v := classify(err)
		e.Hint, e.Permanent = v.hint, v.kind == refused
		if v.kind == limited {
			e.Err = fmt.Errorf("%w: %w", runtime.ErrCapacity, err)
		}
	}
	if l.step != "" {
		e.Err = fmt.Errorf("step %s (%s): %w", l.step, short(l.command), e.Err)
	}
	return e
}

// short cuts a command to what fits into a sentence.
func short(command string) string {
	const most = 120
	if r := []rune(command); len(r) > most {
		return string(r[:most]) + "…"
	}
	return command
}
