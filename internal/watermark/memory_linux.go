// SPDX-License-Identifier: Apache-2.0

package watermark

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory returns how many bytes of memory programs may still take: what the machine has
// available, or what the process's own control group has left where that is less.
func Memory() (int64, error) { return memoryIn("/") }

// memoryIn is Memory with /proc and /sys somewhere else.
func memoryIn(root string) (int64, error) {
	info, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0, fmt.Errorf("available memory: %w", err)
	}
	have, ok := field(info, "MemAvailable:")
	if !ok {
		return 0, errors.New("available memory: /proc/meminfo doesn't say it")
	}
	return min(have<<10, groupLeft(root)), nil
}

// groupLeft is what the control groups of this process leave it, from its own upwards. Where
// there is no limit, or none that can be read, it is all that there could be.
func groupLeft(root string) int64 {
	const mount = "sys/fs/cgroup"
	self, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return math.MaxInt64
	}
	path, found := "", false
	for line := range strings.Lines(string(self)) {
		if path, found = strings.CutPrefix(strings.TrimSpace(line), "0::"); found { // version 2
			break
		}
	}
	if !found {
		return math.MaxInt64
	}
	left := int64(math.MaxInt64)
	for path = filepath.Clean("/" + path); ; path = filepath.Dir(path) {
		left = min(left, oneGroup(filepath.Join(root, mount, path)))
		if path == "/" {
			return left
		}
	}
}

func oneGroup(dir string) int64 {
	limit, ok := number(filepath.Join(dir, "memory.max")) // "max" is no number
	used, known := number(filepath.Join(dir, "memory.current"))
	if !ok || !known {
		return math.MaxInt64
	}
	// Files that nobody needs now are counted as used, and go when room is needed.
	stat, _ := os.ReadFile(filepath.Join(dir, "memory.stat"))
	cache, _ := field(stat, "inactive_file")
	return max(limit-used+cache, 0)
}

func number(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field is the number behind a word at the beginning of a line.
func field(text []byte, name string) (int64, bool) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] != name {
			continue
		}
		n, err := strconv.ParseInt(words[1], 10, 64)
		return n, err == nil
	}
	return 0, false
}
