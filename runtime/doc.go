// SPDX-License-Identifier: Apache-2.0

// Package runtime is the contract for running commands in an isolated place and
// getting files in and out of it.
//
// A [Runtime] is a provider of sandboxes: a subprocess in a directory, a
// container, a stack of containers, a remote machine. The order of calls is:
//
//	Runtime.Prepare      once per worker and run: pull, build, warm up
//	Environment.Open     once per attempt: provision and await ready
//	Sandbox.CopyIn/Exec/EndProcesses/CopyOut/Evidence
//	Sandbox.Close        always, after anything
//	Environment.Close    when the worker is through with the run
//	Runtime.Close        when the worker stops
//
// and, beside all that, Runtime.List and Runtime.Destroy to sweep what a crash
// left behind.
//
// # Laws
//
//   - Names: the resource name of a sandbox is Spec.Name, the trial id. Without a
//     name it is "tm-" and 12 hex characters. Names are checked by [CheckName]
//     before anything is created.
//   - Own by handle, destroy by handle: a sandbox records what it owns only after
//     it was created, and destroys only that. A name is never proof of ownership.
//     A second Open of a name with a live owner returns a [ConflictError] and
//     leaves the owner untouched.
//   - A failed Open has cleaned up after itself and returns a [ProvisionError].
//   - A program that fails is a result ([Exit]); only trouble of the runtime is an
//     error. A program that can't be started is a [StartError].
//   - A policy, limit or user that can't be enforced is refused ([UnsupportedError]),
//     never ignored. [Properties] says up front what can.
//   - Sandboxes see the environment that they are given and nothing of ours.
//   - Close is idempotent, finishes although its context ended (it has a budget of
//     its own), and leaves no process and no resource behind.
//
// # Places
//
// Files live in places (see [Place]) whose paths differ between runtimes. Programs
// get them as environment variables; callers ask [Sandbox.Path]. A place other than
// the workdir exists only after something was copied into it with
// [CopyOptions.Fresh] or plainly; tests and solution arrive only in their phase, and are
// taken away with [CopyOptions.Gone].
//
// The package imports nothing of ours. Implementations pass the suite in
// runtimetest. A file that needs the standard library's package too imports that
// as goruntime.
package runtime
