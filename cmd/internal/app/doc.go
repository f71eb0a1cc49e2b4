// SPDX-License-Identifier: Apache-2.0

// Package app is what every command shares: exit codes, logging, signals, and where the
// values of flags come from.
//
// # What goes where
//
// Results go to stdout, everything else to stderr. A message to a person says what went
// wrong and what to do next; on a terminal it is text, elsewhere logs are JSON lines.
package app
