// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"strconv"
	"strings"
)

// tomlLines finds the line of each entry of a TOML file. Of a file that isn't valid it
// finds those before the trouble, which the parser tells. deep is the line where something
// is nested deeper than maxDepth or has a longer name than maxEntry, 0 without.
func tomlLines(data []byte) (lines map[string]int, deep int) {
	s := &tomlScanner{data: data, line: 1, lines: map[string]int{}, tables: map[string]int{}}
	for s.blank(); s.at < len(s.data); s.blank() {
		if !s.statement() {
			break
		}
	}
	return s.lines, s.deep
}

type tomlScanner struct {
	data     []byte
	at, line int
	lines    map[string]int
	// tables counts the tables of each array of tables, and table is the entry of the
	// one that the statements belong to.
	tables map[string]int
	table  string
	deep   int
}

func (s *tomlScanner) peek() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *tomlScanner) skip(n int) {
	end := min(s.at+n, len(s.data))
	s.line += bytes.Count(s.data[s.at:end], []byte("\n"))
	s.at = end
}

func (s *tomlScanner) begins(text string) bool { return bytes.HasPrefix(s.data[s.at:], []byte(text)) }

// spaces passes over spaces, blank over comments and line ends too.
func (s *tomlScanner) spaces() {
	for s.peek() == ' ' || s.peek() == '\t' {
		s.at++
	}
}

func (s *tomlScanner) blank() {
	if s.at == 0 && s.begins(byteOrderMark) {
		s.at = len(byteOrderMark)
	}
	for s.at < len(s.data) {
		switch s.peek() {
		case ' ', '\t', '\r', '\n':
			s.skip(1)
		case '#':
			s.comment()
		default:
			return
		}
	}
}

func (s *tomlScanner) comment() {
	if n := bytes.IndexByte(s.data[s.at:], '\n'); n >= 0 {
		s.at += n
	} else {
		s.at = len(s.data)
	}
}

// statement reads a header or a key with its value.
func (s *tomlScanner) statement() bool {
	switch {
	case s.begins("[["):
		return s.header("[[", "]]")
	case s.begins("["):
		return s.header("[", "]")
	}
	return s.pair(s.table, 0)
}

func (s *tomlScanner) header(open, shut string) bool {
	line := s.line
	s.skip(len(open))
	keys, ok := s.keys()
	if !ok || !s.begins(shut) {
		return false
	}
	s.skip(len(shut))
	entry := ""
	for i, k := range keys {
		entry = join(entry, k)
		if last := i == len(keys)-1; last && open == "[[" {
			s.tables[entry]++
			s.note(entry, line)
		}
		if n, ok := s.tables[entry]; ok {
			entry = index(entry, n-1)
		}
		if !s.note(entry, line) {
			return false
		}
	}
	s.table = entry
	return true
}

// maxEntry is how many bytes the path of an entry may have: each is kept whole, and a
// hostile file could have a long one before each of very many keys.
const maxEntry = 2048

// note keeps the first line on which an entry stands. It returns false for a path that is
// too long.
func (s *tomlScanner) note(entry string, line int) bool {
	if len(entry) > maxEntry {
		s.deep = line
		return false
	}
	if _, ok := s.lines[entry]; !ok && len(s.lines) < maxNodes {
		s.lines[entry] = line
	}
	return true
}

// keys reads a dotted key.
func (s *tomlScanner) keys() ([]string, bool) {
	var keys []string
	for {
		if len(keys) > maxDepth {
			s.deep = s.line
			return nil, false
		}
		s.spaces()
		from := s.at
		switch s.peek() {
		case '"', '\'':
			if !s.text() {
				return nil, false
			}
			key := string(s.data[from:s.at])
			if plain, err := strconv.Unquote(key); err == nil && key[0] == '"' {
				key = plain
			} else {
				key = key[1 : len(key)-1]
			}
			keys = append(keys, key)
		default:
			for s.at < len(s.data) && strings.IndexByte(" \t\r\n.=[]{}#\"',", s.peek()) < 0 {
				s.at++
			}
			if s.at == from {
				return nil, false
			}
			keys = append(keys, string(s.data[from:s.at]))
		}
		s.spaces()
		if s.peek() != '.' {
			return keys, true
		}
		s.at++
	}
}

// pair reads key = value.
func (s *tomlScanner) pair(table string, depth int) bool {
	line := s.line
	keys, ok := s.keys()
	if !ok || s.peek() != '=' {
		return false
	}
	s.at++
	entry := table
	for _, k := range keys {
		if entry = join(entry, k); !s.note(entry, line) {
			return false
		}
	}
	s.spaces()
	return s.value(entry, depth)
}

func (s *tomlScanner) value(entry string, depth int) bool {
	if depth > maxDepth {
		s.deep = s.line
		return false
	}
	switch s.peek() {
	case '"', '\'':
		return s.text()
	case '[':
		return s.list(']', func(i int) bool {
			at := index(entry, i)
			return s.note(at, s.line) && s.value(at, depth+1)
		})
	case '{':
		return s.list('}', func(int) bool { return s.pair(entry, depth+1) })
	}
	from := s.at
	for s.at < len(s.data) && strings.IndexByte(",]}#\r\n", s.peek()) < 0 {
		s.at++
	}
	return s.at > from
}

// list reads what stands in brackets, with commas between.
func (s *tomlScanner) list(shut byte, item func(i int) bool) bool {
	s.at++
	for i := 0; ; i++ {
		if s.blank(); s.peek() == shut {
			s.at++
			return true
		}
		if !item(i) {
			return false
		}
		if s.blank(); s.peek() == ',' {
			s.at++
		} else if s.peek() != shut {
			return false
		}
	}
}

// text passes over a text in any of the four kinds of quotes.
func (s *tomlScanner) text() bool {
	quote := string(s.peek())
	if s.begins(strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	s.skip(len(quote))
	for s.at < len(s.data) {
		switch {
		case s.begins(quote):
			s.skip(len(quote))
			for len(quote) == 3 && s.peek() == quote[0] { // up to two may stand before the end
				s.at++
			}
			return true
		case quote[0] == '"' && s.peek() == '\\':
			s.skip(2)
		case len(quote) == 1 && s.peek() == '\n':
			return false
		default:
			s.skip(1)
		}
	}
	return false
}
