// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

// account is a user by numbers, as files have it.
type account struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// usersMax bounds what is read of /etc/passwd and /etc/group.
const usersMax = 4 << 20

// checkUser accepts what the engine does: "name", "uid", and either with ":group".
func checkUser(user string) error {
	name, group, grouped := strings.Cut(user, ":")
	bad := strings.ContainsAny(user, "\x00\n/") || strings.Contains(group, ":") || grouped && (name == "" || group == "")
	if bad || strings.HasPrefix(user, "-") {
		return refuse("user", user, "name", "uid", "name:group", "uid:gid")
	}
	return nil
}

// account looks a user up by the container's own files, which are read through the
// engine, so that it works in an image without any program.
func (e *engine) account(ctx context.Context, id, user string) (account, error) {
	if user == "" {
		return account{}, nil
	}
	if err := checkUser(user); err != nil {
		return account{}, err
	}
	name, group, grouped := strings.Cut(user, ":")
	passwd, err := e.table(ctx, id, "/etc/passwd")
	if err != nil {
		return account{}, err
	}
	a, found := lookUpUser(passwd, name)
	if uid, err := strconv.ParseUint(name, 10, 31); err == nil && !found {
		a, found = account{UID: int(uid)}, true // the engine's group for it is 0
	}
	if !found {
		return account{}, refuse("user", user, "one of the image's /etc/passwd", "a number")
	}
	if !grouped {
		return a, nil
	}
	if gid, err := strconv.ParseUint(group, 10, 31); err == nil {
		a.GID = int(gid)
		return a, nil
	}
	groups, err := e.table(ctx, id, "/etc/group")
	if err != nil {
		return account{}, err
	}
	for _, fields := range groups {
		if gid, err := strconv.Atoi(fields[2]); err == nil && fields[0] == group {
			a.GID = gid
			return a, nil
		}
	}
	return account{}, refuse("user", user, "a group of the image's /etc/group", "a number")
}

// lookUpUser prefers a name over a number, as the engine does.
func lookUpUser(passwd [][]string, name string) (account, bool) {
	for _, by := range []int{0, 2} {
		for _, fields := range passwd {
			if len(fields) < 4 || fields[by] != name {
				continue
			}
			uid, uerr := strconv.Atoi(fields[2])
			gid, gerr := strconv.Atoi(fields[3])
			if uerr == nil && gerr == nil {
				return account{uid, gid}, true
			}
		}
	}
	return account{}, false
}

// table reads a file of lines with colons; of a file that isn't there it is empty.
func (e *engine) table(ctx context.Context, id, path string) ([][]string, error) {
	data, err := e.readFile(ctx, id, path, usersMax)
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for line := range bytes.Lines(data) {
		if fields := strings.Split(strings.TrimRight(string(line), "\r\n"), ":"); len(fields) > 2 {
			rows = append(rows, fields)
		}
	}
	return rows, nil
}

// user is who a command runs as.
func (s *Sandbox) user(cmd runtime.Command) string {
	if cmd.User != "" {
		return cmd.User
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.spec.Users[s.phase]; u != "" {
		return u
	}
	return s.imageUser()
}

func (s *Sandbox) imageUser() string {
	if s.box.User == "" {
		return "0"
	}
	return s.box.User
}

// accounts resolves the users of a spec while no program has run in the container, so that
// one that there isn't is refused early.
func (o *opening) accounts(ctx context.Context) error {
	for _, p := range phases {
		user := o.spec.Users[p]
		if user == "" {
			continue
		}
		a, err := o.rt.engine.account(ctx, o.box.ID, user)
		if unsupported := (*runtime.UnsupportedError)(nil); errors.As(err, &unsupported) {
			return &refusedError{fmt.Errorf("user of the %s phase: %w", p, err)}
		}
		if err != nil {
			return err
		}
		if p == runtime.Agent {
			o.box.Agent = a
		}
	}
	if o.spec.Users[runtime.Agent] != "" {
		return nil
	}
	a, err := o.rt.engine.account(ctx, o.box.ID, o.box.User)
	o.box.Agent = a
	return err
}
