// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// LogFlags choose what is logged, and how.
type LogFlags struct {
	Level  string
	Format string
}

// Register adds the flags to a command and all below it.
func (f *LogFlags) Register(cmd *cobra.Command) {
	p := cmd.PersistentFlags()
	p.StringVar(&f.Level, "log-level", "warn", "least severe messages to log: debug, info, warn or error")
	p.StringVar(&f.Format, "log-format", "auto", "auto, text or json; auto is text on a terminal")
}

// levels are those that a person may ask for.
var levels = map[string]zerolog.Level{
	"debug": zerolog.DebugLevel, "info": zerolog.InfoLevel, "warn": zerolog.WarnLevel, "error": zerolog.ErrorLevel,
}

// Logger returns a logger to stderr. Messages are about the program's own doing; what
// trials print goes into their bundles.
func (f LogFlags) Logger(w io.Writer) (zerolog.Logger, error) {
	level, ok := levels[f.Level]
	if !ok {
		return zerolog.Nop(), Usage(fmt.Errorf("--log-level %q: want debug, info, warn or error", f.Level))
	}
	switch f.Format {
	case "json":
	case "text":
		w = pretty(w)
	case "auto":
		if IsTerminal(w) {
			w = pretty(w)
		}
	default:
		return zerolog.Nop(), Usage(fmt.Errorf("--log-format %q: want auto, text or json", f.Format))
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger(), nil
}

func pretty(w io.Writer) io.Writer {
	return zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !Color(w)}
}

// IsTerminal reports whether a writer is a person's screen, or says so of itself.
func IsTerminal(w io.Writer) bool {
	switch w := w.(type) {
	case *os.File:
		return term.IsTerminal(int(w.Fd()))
	case interface{ IsTerminal() bool }:
		return w.IsTerminal()
	}
	return false
}

// Color reports whether a writer may be given colours: a terminal that knows them, and
// nobody who asked for none.
func Color(w io.Writer) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
