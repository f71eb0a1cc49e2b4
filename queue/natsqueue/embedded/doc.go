// SPDX-License-Identifier: Apache-2.0

// Package embedded runs a NATS server inside this process, so that one machine
// needs nothing installed.
//
// [Start] returns a server with JetStream in files below a directory. It listens
// nowhere unless it is told to, installs no signal handlers, and says nothing but
// to the function that it is given. [Server.Connect] gives connections that are
// set up as natsqueue wants them.
//
// It is the only package of ours that links the NATS server.
package embedded
