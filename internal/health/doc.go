// SPDX-License-Identifier: Apache-2.0

// Package health tells supervisors how a process is: whether it should be restarted, and
// whether it can do its work now.
//
// A [Watchdog] knows the goroutines that have to come by from time to time, and names those
// that don't. A [Server] answers GET /healthz and GET /readyz over HTTP with JSON:
//
//   - /healthz is about the process alone. 503 means that a part of it hangs, which only a
//     restart mends. A store or a queue that is away is no reason.
//   - /readyz is about what it stands on. 503 means that it takes no new work, and the
//     reasons say why. Nothing has to be restarted for that.
//   - /status is what the process says of itself, for people; always 200.
package health
