// SPDX-License-Identifier: Apache-2.0

// Package live looks into what runs now: the process that works a data directory shows
// its attempts on the directory's socket, and clients follow their logs and run commands
// in their sandboxes.
//
// The owner answers
//
//	GET /v1/attempts/TRIAL                what runs, as JSON; 404 when nothing does
//	GET /v1/attempts/TRIAL/logs/NAME      the framed log so far; with ?follow=1 to its end
//	GET /v1/attempts/TRIAL/exec?spec=…    upgrades to a stream of frames, see frame.go
package live
