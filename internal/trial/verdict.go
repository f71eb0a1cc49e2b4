// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The files in which a grader leaves its verdict. Where both exist, the text counts.
const (
	RewardText = "reward.txt"
	RewardJSON = "reward.json"
)

// maxRewards is how many rewards a verdict may have; all of them are in the commit.
const maxRewards = 1000

// maxRewardName is how many bytes the name of a reward may have.
const maxRewardName = 200

// nameable refuses what would break a line or a table.
func nameable(name string) bool {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return name != "" && len(name) <= maxRewardName && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, unprintable)
}

// DefaultReward is the name of the reward in a reward.txt, and the key of a
// reward.json that is the score unless the run says otherwise.
const DefaultReward = "reward"

// ParseRewardText reads exactly one finite number.
func ParseRewardText(data []byte) (map[string]float64, error) {
	fields := strings.Fields(string(data))
	if len(fields) != 1 {
		return nil, fmt.Errorf("%s holds %d words; want one finite number", RewardText, len(fields))
	}
	v, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || !isDecimal(fields[0]) {
		return nil, fmt.Errorf("%s: %s is not a number; want one finite number", RewardText, quote(fields[0]))
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, fmt.Errorf("%s: %s is not finite", RewardText, fields[0])
	}
	return map[string]float64{DefaultReward: v}, nil
}

// isDecimal refuses what Go reads and people don't mean: 0x10, 1_000. NaN and Inf
// pass, for an error of their own.
func isDecimal(s string) bool {
	return !strings.ContainsAny(s, "_xXpP")
}

// ParseRewardJSON reads a flat object of name → finite number.
func ParseRewardJSON(data []byte) (map[string]float64, error) {
	fail := func(format string, args ...any) (map[string]float64, error) {
		return nil, fmt.Errorf(RewardJSON+": "+format, args...)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	tok, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return fail("empty; want an object of name → finite number")
	}
	if err != nil {
		return fail("not JSON: %w", err)
	}
	if tok != json.Delim('{') {
		return fail("want an object of name → finite number, got %s", kind(tok))
	}
	rewards := map[string]float64{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return fail("not JSON: %w", err)
		}
		name, _ := key.(string)
		if !nameable(name) {
			return fail("%s: want a name of 1 to %d printable characters", quote(name), maxRewardName)
		}
		val, err := dec.Token()
		if err != nil {
			return fail("not JSON (NaN and Infinity are not JSON either): %w", err)
		}
		num, ok := val.(json.Number)
		if !ok {
			return fail("%s: want a finite number, got %s", quote(name), kind(val))
		}
		v, err := num.Float64()
		if err != nil || math.IsInf(v, 0) {
			return fail("%s: %s is not a finite number", quote(name), num)
		}
		if _, twice := rewards[name]; twice {
			return fail("%s is given twice", quote(name))
		}
		if len(rewards) == maxRewards {
			return fail("more than %d rewards", maxRewards)
		}
		rewards[name] = v
	}
	if _, err := dec.Token(); err != nil {
		return fail("not JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fail("something follows the object")
	}
	if len(rewards) == 0 {
		return fail("no rewards in it")
	}
	return rewards, nil
}

func kind(tok json.Token) string {
	switch v := tok.(type) {
	case json.Delim:
		if v == '[' {
			return "a list"
		}
		return "an object"
	case string:
		return "text"
	case bool:
		return "true or false"
	case json.Number:
		return "a number"
	default:
		return "null"
	}
}

func quote(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return strconv.Quote(s)
}

// primaryReward returns which of the rewards is the score: the wanted one, else
// "reward", else the only one.
func primaryReward(rewards map[string]float64, wanted string) (string, error) {
	if wanted != "" {
		if _, ok := rewards[wanted]; ok {
			return wanted, nil
		}
		// A reward.txt has one number without a name.
		if _, ok := rewards[DefaultReward]; ok && len(rewards) == 1 {
			return DefaultReward, nil
		}
		return "", fmt.Errorf("no reward named %s (grade.primary); the grader gave %s", quote(wanted), names(rewards))
	}
	if _, ok := rewards[DefaultReward]; ok {
		return DefaultReward, nil
	}
	if len(rewards) == 1 {
		return names(rewards), nil
	}
	return "", fmt.Errorf("the grader gave %s and none is called %s; name the score in grade.primary", names(rewards), DefaultReward)
}

func names(rewards map[string]float64) string {
	list := make([]string, 0, len(rewards))
	for name := range rewards {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
