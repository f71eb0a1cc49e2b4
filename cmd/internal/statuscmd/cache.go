// SPDX-License-Identifier: Apache-2.0

package statuscmd

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/manifest"
)

const (
	// cacheFrom is how many commits must have been read before they are written down: few
	// are read again sooner than looked up.
	cacheFrom = 200
	// cacheAge is after how long without use a run's cache is removed.
	cacheAge = 30 * 24 * time.Hour
)

// cache has what was read of the commits of a run, in a file of this user's: commits
// never change, so they need not be read again. It is for speed alone. What can't be
// read or written is as if it weren't there, and only what the store lists is taken from
// it.
type cache struct {
	path string // "" has nothing and takes nothing
	read map[cacheKey]outcome
	more strings.Builder // lines that are not in the file
	n    int             // how many
}

type cacheKey struct {
	trial trialKey
	epoch uint32
}

// outcome is what counts of a commit.
type outcome struct {
	attempt uint32
	state   uint8 // of states
	reason  string
	micros  int64 // that the agent spent, in micro-dollars
	at      time.Time
}

// openCache reads what there is of a run. A run that was deleted and made again under its
// id is another one.
func openCache(ctx context.Context, store bundle.Store, rec manifest.RunRecord) *cache {
	base, err := os.UserCacheDir()
	if err != nil {
		return &cache{}
	}
	id, err := bundle.ReadIdentity(ctx, store)
	if err != nil || strings.ContainsAny(id.StoreUUID, `/\.`) {
		return &cache{}
	}
	name := fmt.Sprintf("%s-%d.v1", rec.RunID, rec.CreatedAt.UnixNano())
	c := &cache{path: filepath.Join(base, "tidemill", "commits", id.StoreUUID, name), read: map[cacheKey]outcome{}}
	f, err := os.Open(c.path)
	if err != nil {
		return c
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, o, ok := parseOutcome(lines.Text()); ok {
			c.read[key] = o
		}
	}
	return c
}

func (c *cache) get(key trialKey, epoch int) (outcome, bool) {
	o, ok := c.read[cacheKey{key, uint32(epoch)}]
	return o, ok
}

func (c *cache) put(key trialKey, epoch int, o outcome) {
	if c.path == "" || len(strings.Fields(o.reason)) != 1 {
		return
	}
	c.n++
	fmt.Fprintf(&c.more, "%x %d %d %d %s %d %d .\n", key, epoch, o.attempt, o.state, o.reason, o.micros, o.at.UnixMilli())
}

// parseOutcome reads a line of put. A process may have died in the middle of one, and
// another gone on behind it: neither part is taken for a whole one.
func parseOutcome(line string) (key cacheKey, o outcome, ok bool) {
	f := strings.Split(line, " ")
	if len(f) != 8 || f[7] != "." || len(f[0]) != hex.EncodedLen(len(key.trial)) {
		return key, o, false
	}
	if key.trial, ok = parseTrialKey(f[0]); !ok {
		return key, o, false
	}
	var n [5]int64
	for i, text := range []string{f[1], f[2], f[3], f[5], f[6]} {
		var err error
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil || n[i] < 0 {
			return key, o, false
		}
	}
	if n[2] >= int64(len(states)) {
		return key, o, false
	}
	key.epoch = uint32(n[0])
	return key, outcome{attempt: uint32(n[1]), state: uint8(n[2]), reason: f[4], micros: n[3], at: time.UnixMilli(n[4])}, true
}

// flush writes down what came, with one write: others may append too.
func (c *cache) flush() {
	if c.n < cacheFrom {
		return
	}
	text := c.more.String()
	c.more.Reset()
	c.n = 0
	if os.MkdirAll(filepath.Dir(c.path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(c.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(text) // see parseOutcome
	_ = f.Close()
	removeOld(filepath.Dir(filepath.Dir(c.path)))
}

// removeOld removes the caches of runs that nobody has asked about for long.
func removeOld(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*.v1"))
	for _, path := range files {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > cacheAge {
			_ = os.Remove(path)
		}
	}
}
