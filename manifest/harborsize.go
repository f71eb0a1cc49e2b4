// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// harborSize is a size in the older way of writing: "2G", "512M", "64K".
type harborSize Size

func (s *harborSize) decodeNode(d *decoder, n *yaml.Node, entry string) {
	const fix = `write for example "2G" or "512M"`
	if n.ShortTag() != "!!str" {
		d.wrong(n, entry, "a size", fix)
		return
	}
	text := strings.ToUpper(strings.TrimSpace(n.Value))
	if text == "" {
		d.wrong(n, entry, "a size", fix)
		return
	}
	factor, known := map[byte]float64{'G': 1 << 30, 'M': 1 << 20, 'K': 1 << 10}[text[len(text)-1]]
	v, err := strconv.ParseFloat(text[:len(text)-1], 64)
	if !known || err != nil || !(v >= 0) || v*factor >= math.MaxInt64 {
		d.wrong(n, entry, "a size", fix)
		return
	}
	*s = harborSize(v * factor)
}

// mebibytes is a number of them as a size. What is too large was reported by positiveNumber.
func mebibytes(n float64) Size { return Size(n * (1 << 20)) }

// maxNumber is far above any size in mebibytes or time in seconds that is meant, and far
// below what a 64-bit number of bytes or nanoseconds holds.
const maxNumber = 1e9

// positiveNumber checks a number that was written and has to be above 0.
func positiveNumber(d *decoder, entry string, v float64) {
	if d.given(entry) {
		switch {
		case !(v > 0):
			d.problem(entry, fmt.Sprintf("is %v", v), "use a number above 0, or leave it out")
		case v > maxNumber:
			d.problem(entry, fmt.Sprintf("is %v", v), fmt.Sprintf("use %v at most", float64(maxNumber)))
		}
	}
}

// zeroOrMore checks a number that was written and may be 0.
func zeroOrMore(d *decoder, entry string, v float64) {
	if v != 0 {
		positiveNumber(d, entry, v)
	}
}

// seconds turns a number of them that was checked into a duration.
func seconds(v float64) Duration { return Duration(min(v, maxNumber) * float64(time.Second)) }

// or returns a number that the file gave, else another one.
func (d *decoder) or(entry string, v, otherwise float64) float64 {
	if d.given(entry) {
		return v
	}
	return otherwise
}

// decodeInto decodes a node into what p points at.
func decodeInto[T any](d *decoder, n *yaml.Node, entry string, p *T) {
	d.decode(n, reflect.ValueOf(p).Elem(), entry)
}
