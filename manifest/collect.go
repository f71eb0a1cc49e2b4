// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"path"
	"strings"
)

// place is where it is kept, below the artifacts.
func (c Collect) place() string {
	if c.Destination != "" {
		return path.Clean(c.Destination)
	}
	return lastName(c.Source)
}

func lastName(source string) string { return path.Base(path.Clean(source)) }

// collect translates a list of artifacts. Several with the same last name get their whole
// paths as destinations. before are those that are kept with them.
func (l *harborLoad) collect(entry string, list []harborArtifact, before []Collect) []Collect {
	named := map[string]int{}
	for _, a := range list {
		if a.Destination == "" {
			named[lastName(a.Source)]++
		}
	}
	taken := map[string]string{} // source by place
	for _, c := range before {
		taken[c.place()] = c.Source
	}
	var out []Collect
	for i, a := range list {
		if text, fix := badArtifact(a); text != "" {
			l.d.problem(index(entry, i), text, fix)
			continue
		}
		c := Collect(a)
		if c.Destination == "" && named[lastName(c.Source)] > 1 {
			c.Destination = strings.Trim(c.Source, "/")
		}
		if source, ok := taken[c.place()]; ok && source != c.Source {
			l.d.problem(index(entry, i), quote(c.place())+" is the place of "+source+", too", "give it another destination")
		}
		taken[c.place()] = c.Source
		out = append(out, c)
	}
	return out
}

// badArtifact says what is wrong with an artifact of a Harbor task, or "".
func badArtifact(a harborArtifact) (text, fix string) {
	switch {
	case strings.Trim(a.Source, "/") == "" || path.Clean(a.Source) == ".":
		return "names no file or directory", "write a path, such as /app/result.json"
	case goesUp(a.Source):
		return quote(a.Source) + " has a .. in it", "write the path without"
	case strings.ContainsAny(a.Source+a.Destination, "\x00"):
		return "holds a zero byte, which no path can", ""
	case path.IsAbs(a.Destination) || strings.Contains(a.Destination, `\`) || goesUp(a.Destination):
		return quote(a.Destination) + " is not a place among the artifacts", "write a relative path with /, without .."
	case a.Destination != "" && path.Clean(a.Destination) == ".":
		return quote(a.Destination) + " names no file or directory", "name one, or leave it out"
	}
	return "", ""
}

// goesUp says that a path goes up somewhere.
func goesUp(p string) bool { return strings.Contains("/"+p+"/", "/../") }
