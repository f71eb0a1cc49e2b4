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

// Logger returns a logger to stderr. Messages are about the program's own doing; what
// trials print goes into their bundles.
func (f LogFlags) Logger(w io.Writer) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(f.Level)
	if err != nil || f.Level == "" {
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
	return zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: os.Getenv("NO_COLOR") != "" || !IsTerminal(w)}
}

// IsTerminal reports whether a writer is a person's screen.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
