// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Config shapes a server.
type Config struct {
	// Dir is the directory that JetStream keeps its files in; it is created.
	// Only one server at a time may use it: the caller sees to that.
	Dir string
	// Listen is the host:port to listen on; port 0 takes a free one. Defaults to
	// no port at all: then only this process can connect.
	Listen string
	// Log gets each line that the server logs, without its end. Defaults to none.
	Log func(level Level, line string)
	// RelaxedSync gives up the fsync of each write (or batch): faster, and what
	// was confirmed in the last two minutes can be lost with the power. Defaults
	// to false.
	RelaxedSync bool
	// StartTimeout bounds how long the server may take to come up, which grows
	// with what is stored. Defaults to 1 minute.
	StartTimeout time.Duration
}

// Level says how serious a log line is.
type Level string

// The levels, as zerolog and log/slog name them.
const (
	Debug Level = "debug"
	Info  Level = "info"
	Warn  Level = "warn"
	Error Level = "error"
)

// WithDefaults returns a completed copy.
func (c Config) WithDefaults() Config {
	c.StartTimeout = cmp.Or(c.StartTimeout, time.Minute)
	if c.Log == nil {
		c.Log = func(Level, string) {}
	}
	return c
}

// Validate reports the first field that is wrong. Call it on a completed config.
func (c Config) Validate() error {
	if c.Dir == "" {
		return errors.New("embedded NATS: no directory given for its files")
	}
	if c.StartTimeout < 0 {
		return fmt.Errorf("embedded NATS: start timeout %v: want more than 0", c.StartTimeout)
	}
	if c.Listen != "" {
		if _, _, err := c.listen(); err != nil {
			return err
		}
	}
	return nil
}

// listen splits the address. The server has its own idea of port 0, so a free
// port is -1 to it.
func (c Config) listen() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", 0, fmt.Errorf("embedded NATS: listen address %q: want host:port: %w", c.Listen, err)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("embedded NATS: listen address %q: want a port from 0 to 65535", c.Listen)
	}
	if port == 0 {
		port = -1
	}
	return host, port, nil
}
