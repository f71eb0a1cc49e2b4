// SPDX-License-Identifier: Apache-2.0

// Package images makes sure that the image a sandbox is made from is on the engine: it
// is there, or it is pulled, or it is built.
//
// [Store.Ensure] is the one call to know; a run goes through [Store.Run], so that a
// tag means the same image for all its trials on this worker.
//
// # Pulls
//
// One reference is pulled by one request at a time, whoever waits for it. Trouble of
// the network or the registry is tried again with exponential backoff and full jitter.
// A registry that says "too many requests" to the end is no capacity
// (runtime.ErrCapacity), so that the trial waits uncharged; "not found" and "denied"
// are permanent. Credentials are Docker's own: config.json and its helpers, read anew
// for each pull, handed to the engine and to nobody else.
//
// # Builds
//
// A build is named by its input: tidemill/build:<digest>, where the digest is over the
// names, modes and contents of the context in order, without what .dockerignore leaves
// out, and over the Dockerfile's name. Owners and times are not part of it, and the
// engine is sent the same stream, in which every file belongs to root and has one fixed
// time. An image that has the tag and our label is used as it is. Base images are
// pulled ahead by the rules above. The builder is the engine's classic one, which every
// engine has; a Dockerfile that needs BuildKit is refused by it.
//
// # The budget
//
// Only images that were built here are ever removed: they have our label, no name but
// ours, no container, no run that holds them, and were not used for a while. Last use
// is the time at which the image was tagged last, kept by the engine and so shared by
// all workers that use it. Removal is by id and never forced.
package images
