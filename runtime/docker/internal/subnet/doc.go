// SPDX-License-Identifier: Apache-2.0

// Package subnet makes networks of the Docker engine for single trials, each with a
// small subnet out of a pool of our own.
//
// The engine has about thirty subnets to give by itself and then refuses every other
// network. With a subnet that it is told it refuses one that overlaps another network
// of its own, but not one that overlaps a route of its host: that would cut the host off
// from whatever is there. So the [Pool] looks at both before it chooses: the networks of
// the engine, whoever made them, and the routes in every table of the machine that this
// process runs on. Between two processes that use the same pool the engine decides: it
// refuses one of them, who takes the next subnet.
//
// Where the worker isn't on the engine's machine, or in a network namespace of its own
// there, the host's routes can't be seen, and the pool must be chosen by a person.
//
// The engine makes networks one after the other, about nine a second, whoever asks. More
// than two requests at once only wait in the engine, where nobody can cancel them. A
// request that was made is waited for, and what it made is removed if nobody wants it any
// more.
package subnet
