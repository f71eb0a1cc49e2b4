// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
)

// many is an object of n rewards.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"r%d":1`, i)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// rewardTexts and rewardObjects have for each form the number, or the error.
var rewardTexts = map[string]any{
	"1":         1.0,
	"0.5\n":     0.5,
	" \t-2.5e1": -25.0,
	"+1":        1.0,
	".5":        0.5,
	"0":         0.0,
	"1e-400":    0.0, // as near as a float gets
	"":          "reward.txt holds 0 words; want one finite number",
	" \n":       "reward.txt holds 0 words; want one finite number",
	"1 2":       "reward.txt holds 2 words; want one finite number",
	"1\n0\n":    "reward.txt holds 2 words; want one finite number",
	"NaN":       "reward.txt: NaN is not finite",
	"inf":       "reward.txt: inf is not finite",
	"-Infinity": "reward.txt: -Infinity is not finite",
	"1e999":     `reward.txt: "1e999" is not a number; want one finite number`,
	"0x10":      `reward.txt: "0x10" is not a number; want one finite number`,
	"1_000":     `reward.txt: "1_000" is not a number; want one finite number`,
	"[1]":       `reward.txt: "[1]" is not a number; want one finite number`,
	"1,0":       `reward.txt: "1,0" is not a number; want one finite number`,
	"true":      `reward.txt: "true" is not a number; want one finite number`,
	"1\x00":     `reward.txt: "1\x00" is not a number; want one finite number`,
}

var rewardObjects = map[string]any{
	`{"reward": 1}`:              map[string]float64{"reward": 1},
	`{"a": 0.5, "b": -1e2}`:      map[string]float64{"a": 0.5, "b": -100},
	"\n{\"a\": 0}\n":             map[string]float64{"a": 0},
	`{"": 1}`:                    `reward.json: "": want a name of 1 to 200 printable characters`,
	`{" a": 1}`:                  `reward.json: " a": want a name`,
	"{\"a\\n\": 1}":              "reward.json: \"a\\n\": want a name",
	`{"ä b": 1}`:                 map[string]float64{"ä b": 1},
	"{\"" + long(201) + "\":1}":  `reward.json: "` + long(60) + `…": want a name`,
	many(1000):                   nil, // just enough
	many(1001):                   "reward.json: more than 1000 rewards",
	``:                           "reward.json: empty; want an object of name → finite number",
	`{}`:                         "reward.json: no rewards in it",
	`[1]`:                        "reward.json: want an object of name → finite number, got a list",
	`1`:                          "reward.json: want an object of name → finite number, got a number",
	`"1"`:                        "reward.json: want an object of name → finite number, got text",
	`null`:                       "reward.json: want an object of name → finite number, got null",
	`{"a": {"b": 1}}`:            `reward.json: "a": want a finite number, got an object`,
	`{"a": [1]}`:                 `reward.json: "a": want a finite number, got a list`,
	`{"a": "1"}`:                 `reward.json: "a": want a finite number, got text`,
	`{"a": true}`:                `reward.json: "a": want a finite number, got true or false`,
	`{"a": null}`:                `reward.json: "a": want a finite number, got null`,
	`{"a": 1e999}`:               `reward.json: "a": 1e999 is not a finite number`,
	`{"a": 1, "a": 0}`:           `reward.json: "a" is given twice`,
	`{"a": 1, "\u0061": 0}`:      `reward.json: "a" is given twice`,
	`{"a": 1} {"a": 0}`:          "reward.json: something follows the object",
	`{"a": 1} x`:                 "reward.json: something follows the object",
	`{"a": NaN}`:                 "reward.json: not JSON (NaN and Infinity are not JSON either): invalid character 'N' looking for beginning of value",
	`{"a": 1`:                    "reward.json: not JSON: EOF",
	`{"a": `:                     "reward.json: not JSON (NaN and Infinity are not JSON either): EOF",
	`{a: 1}`:                     "reward.json: not JSON: invalid character 'a'",
	`reward: 1`:                  "reward.json: not JSON: invalid character 'r' looking for beginning of value",
	`{"a": 01}`:                  "reward.json: not JSON: invalid character '1' after object key:value pair",
	"{\"" + long(100) + "\":[]}": `reward.json: "` + long(60) + `…": want a finite number, got a list`,
}

func long(n int) string { return strings.Repeat("x", n) }

func TestParseRewardText(t *testing.T) {
	for text, want := range rewardTexts {
		got, err := ParseRewardText([]byte(text))
		switch want := want.(type) {
		case float64:
			if err != nil || !maps.Equal(got, map[string]float64{DefaultReward: want}) {
				t.Errorf("%q: %v, %v; want %v", text, got, err, want)
			}
		case string:
			if err == nil || err.Error() != want || got != nil {
				t.Errorf("%q: %v, %v; want the error %s", text, got, err, want)
			}
		}
	}
}

func TestParseRewardJSON(t *testing.T) {
	for text, want := range rewardObjects {
		got, err := ParseRewardJSON([]byte(text))
		switch want := want.(type) {
		case nil:
			if err != nil {
				t.Errorf("%.40q: %v", text, err)
			}
		case map[string]float64:
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("%q: %v, %v; want %v", text, got, err, want)
			}
		case string:
			if err == nil || !strings.HasPrefix(err.Error(), want) || got != nil {
				t.Errorf("%.40q: %v, %v; want the error %s", text, got, err, want)
			}
		}
	}
}

func TestPrimaryReward(t *testing.T) {
	for _, c := range []struct {
		rewards     map[string]float64
		wanted      string
		name, wrong string
	}{
		{map[string]float64{"reward": 1}, "", "reward", ""},
		{map[string]float64{"reward": 1, "style": 0}, "", "reward", ""},
		{map[string]float64{"style": 1}, "", "style", ""},
		{map[string]float64{"style": 1, "tests": 0}, "tests", "tests", ""},
		{map[string]float64{"reward": 1, "tests": 0}, "tests", "tests", ""},
		{map[string]float64{"reward": 1}, "tests", "reward", ""}, // reward.txt has no name
		{map[string]float64{"reward": 1, "style": 0}, "tests", "", `no reward named "tests" (grade.primary); the grader gave reward, style`},
		{map[string]float64{"style": 1}, "tests", "", `no reward named "tests" (grade.primary); the grader gave style`},
		{map[string]float64{"style": 1, "tests": 0}, "", "", "the grader gave style, tests and none is called reward; name the score in grade.primary"},
	} {
		name, err := primaryReward(c.rewards, c.wanted)
		if name != c.name || (err == nil) != (c.wrong == "") || err != nil && err.Error() != c.wrong {
			t.Errorf("%v, %q: %q, %v; want %q, %s", c.rewards, c.wanted, name, err, c.name, c.wrong)
		}
	}
}

func finite(t *testing.T, rewards map[string]float64, err error) {
	if (err == nil) == (len(rewards) == 0) {
		t.Fatalf("%v, %v: want rewards or an error", rewards, err)
	}
	for name, v := range rewards {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("%s is %v", name, v)
		}
	}
}

func FuzzParseRewardText(f *testing.F) {
	for text := range rewardTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rewards, err := ParseRewardText(data)
		finite(t, rewards, err)
	})
}

func FuzzParseRewardJSON(f *testing.F) {
	for text := range rewardObjects {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rewards, err := ParseRewardJSON(data)
		finite(t, rewards, err)
		if len(rewards) > maxRewards {
			t.Fatalf("%d rewards", len(rewards))
		}
	})
}
