// SPDX-License-Identifier: Apache-2.0

package netcheck

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/tidemill/tidemill/runtime"
	"github.com/tidemill/tidemill/runtime/docker/internal/boxtool"
)

// observation is the tool's byte about each target, from the three points of view.
type observation struct {
	targets                   []target
	closed, control, switched []byte
}

// The targets that the control must reach.
const (
	whatNeighbour = "reached a neighbour on a bridge network"
	whatName      = "found a neighbour's name"
)

// finding is what an answer shows.
type finding int

const (
	reached  finding = iota
	closed           // by itself: nothing left the box
	silent           // nothing came back
	doubtful         // an error that no closed box gives
)

// find reads an answer.
func (t target) find(answer byte) finding {
	errno := syscall.Errno(answer)
	switch {
	case answer == 0:
		return reached
	case t.kind == raw:
		if errno == syscall.EPERM || errno == syscall.EACCES {
			return closed
		}
	case t.socket.Mask != 0 && answer == boxtool.Refused:
		return closed // the resolver doesn't know the name
	case t.kind == inside && errno == syscall.ECONNREFUSED:
		return closed // nobody listens there in the box
	case errno == syscall.ECONNREFUSED || errno == syscall.ECONNRESET || answer == boxtool.Refused:
		return reached // somebody said so
	case errno == syscall.ENETUNREACH || errno == syscall.EPERM || errno == syscall.EACCES:
		return closed
	case errno == syscall.ETIMEDOUT || errno == syscall.EHOSTUNREACH:
		return silent
	}
	return doubtful
}

// judge says what holds.
func (s *observation) judge() Result {
	r := Result{Why: map[runtime.NetworkPolicy]string{}}
	if why := s.openNetwork(); why != "" {
		r.Why[runtime.FullInternet] = why
		r.Why[runtime.NoInternet] = "That nothing is reached without a network would prove nothing: " + lowerFirst(why)
		r.Switch = r.Why[runtime.NoInternet]
		return r
	}
	r.Policies = append(r.Policies, runtime.FullInternet)
	if why := s.closedBox("A box without a network", s.closed); why != "" {
		r.Why[runtime.NoInternet], r.Switch = why, why
		return r
	}
	r.Policies = append(r.Policies, runtime.NoInternet)
	r.Switch = s.closedBox("A box that was taken off its network", s.switched)
	return r
}

// openNetwork says why the control proves nothing; empty if it does prove.
func (s *observation) openNetwork() string {
	for i, t := range s.targets {
		if (t.what == whatNeighbour || t.what == whatName) && s.control[i] != 0 {
			return fmt.Sprintf("A box on a plain bridge network, which should have %s, has not (%s).",
				t.what, describe(s.control[i]))
		}
	}
	return ""
}

// closedBox says in a sentence what a box reached, or what isn't known of it; empty if
// it is closed.
func (s *observation) closedBox(box string, answers []byte) string {
	var open, unknown []string
	for i, t := range s.targets[:len(answers)] {
		switch t.find(answers[i]) {
		case reached:
			open = append(open, t.what)
		case silent:
			if s.control[i] != 0 {
				unknown = append(unknown, fmt.Sprintf("whether it %s (%s, but so for a box on a bridge)", t.what, describe(answers[i])))
			}
		case doubtful:
			unknown = append(unknown, fmt.Sprintf("whether it %s (%s)", t.what, describe(answers[i])))
		case closed:
		}
	}
	switch {
	case len(open) > 0:
		return box + " " + some(open) + "."
	case len(unknown) > 0:
		return box + " may not be closed; it can't be told " + some(unknown) + "."
	}
	return ""
}

// some lists the first few.
func some(list []string) string {
	const few = 4
	if len(list) > few {
		list = append(list[:few:few], fmt.Sprintf("%d more", len(list)-few))
	}
	return strings.Join(list, ", ")
}

func describe(answer byte) string {
	if answer == boxtool.Refused {
		return "the answer was no"
	}
	return syscall.Errno(answer).Error()
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
