// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	wordRE     = regexp.MustCompile(`^\s*([A-Za-z]+)\s+(.*)$`)
	fromFlagRE = regexp.MustCompile(`^--from=(\S+)$`)
	variableRE = regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|([A-Za-z_][A-Za-z0-9_]*))`)
)

// bases returns the images that a Dockerfile builds upon, each once, in order: FROM and
// COPY --from, with the defaults of ARG put in. It leaves out scratch, the Dockerfile's
// own stages, and what it can't tell; those are the engine's to find.
func bases(dockerfile []byte) []string {
	var found []string
	stages, args, inStage := map[string]bool{}, map[string]string{}, false
	add := func(name string) {
		name, ok := expand(name, args)
		switch {
		case !ok, name == "", name == "scratch", stages[strings.ToLower(name)], slices.Contains(found, name):
		default:
			found = append(found, name)
		}
	}
	for _, line := range instructions(string(dockerfile)) {
		m := wordRE.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		words := strings.Fields(m[2])
		switch strings.ToUpper(m[1]) {
		case "ARG":
			for _, w := range words {
				// After the first FROM an ARG is the stage's own and not for FROM.
				if name, value, ok := strings.Cut(w, "="); ok && !inStage {
					args[name], _ = expand(strings.Trim(value, `"'`), args)
				}
			}
		case "FROM":
			inStage = true
			words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") })
			if len(words) == 0 {
				continue
			}
			add(words[0])
			if len(words) == 3 && strings.EqualFold(words[1], "as") {
				stages[strings.ToLower(words[2])] = true
			}
		case "COPY":
			for _, w := range words {
				flag := fromFlagRE.FindStringSubmatch(w)
				if flag == nil {
					continue
				}
				if _, err := strconv.Atoi(flag[1]); err != nil {
					add(flag[1])
				}
			}
		}
	}
	return found
}

// instructions joins continued lines and drops comments.
func instructions(text string) []string {
	escape := `\`
	var out []string
	var open strings.Builder
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "#") {
			if i < 3 && strings.Contains(strings.ReplaceAll(trimmed, " ", ""), "escape=`") {
				escape = "`"
			}
			continue
		}
		if rest, more := strings.CutSuffix(strings.TrimRight(line, " \t"), escape); more {
			open.WriteString(rest + " ")
			continue
		}
		open.WriteString(line)
		if s := open.String(); strings.TrimSpace(s) != "" {
			out = append(out, s)
		}
		open.Reset()
	}
	if s := open.String(); strings.TrimSpace(s) != "" {
		out = append(out, s)
	}
	return out
}

// expand puts the values of ARGs in. It gives up on a variable without one.
func expand(s string, args map[string]string) (string, bool) {
	s, known := strings.Trim(s, `"'`), true
	s = variableRE.ReplaceAllStringFunc(s, func(v string) string {
		m := variableRE.FindStringSubmatch(v)
		if value := args[m[1]+m[3]]; value != "" {
			return value
		}
		known = known && m[2] != ""
		return m[2]
	})
	return s, known && !strings.Contains(s, "$")
}

// bases reads the Dockerfile's.
func (bc *buildContext) bases() ([]string, error) {
	data, err := os.ReadFile(filepath.Join(bc.dir, bc.dockerfile))
	if err != nil {
		return nil, err
	}
	return bases(data), nil
}
