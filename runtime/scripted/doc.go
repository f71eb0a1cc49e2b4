// SPDX-License-Identifier: Apache-2.0

// Package scripted is a runtime in memory that does what a task tells it to do, bad
// things included.
//
// It is a real implementation of package runtime: sandboxes have files, processes,
// names and owners, and pass the suite in runtimetest. Only its programs are not
// real. A command's Argv is a list of instructions, one an element, carried out one
// after another:
//
//	["print hello", "write verifier/reward.txt 1", "sleep 2s", "exit 3"]
//
// So the request to misbehave travels in the task (a dataset row, a run file), and a
// test reads like the situation that it is about. An instruction that isn't known,
// or has wrong arguments, is a StartError that says so; everything is read before
// anything is carried out. A program whose instructions came to their end exits with
// 0; one that meets an error (no such file, no space) says so on stderr and exits
// with 1.
//
// An Argv that is a shell with a script (bash FILE, sh -c TEXT) stands for the
// instructions in the script, one a line, without lines that begin with "#". So the
// files of tasks whose programs are scripts can hold instructions too.
//
// # Arguments
//
// Arguments are separated by one space. One that starts with a double quote is a Go
// string: "\xff\x00 and spaces". TEXT is the rest of the instruction, as it is or as
// one Go string. In a PATH $NAME stands for a variable of the command; a relative
// PATH is below a place if its first part is a place's name (tests/x,
// verifier/reward.txt, input/row.json), else below the command's directory;
// ./tests/x is always the latter.
//
// # Instructions of commands
//
//	print TEXT, warn TEXT          a line on stdout, on stderr
//	emit TEXT, emit-err TEXT       the same without a newline
//	flood N                        N KiB on each stream, in turns
//	cat                            stdin to stdout
//	args                           first only: print the rest of Argv, a NUL behind each
//	env, echo-env NAME             the environment, the value of one variable
//	pwd, whoami, phase             directory, user, phase and policy
//
//	write PATH TEXT, append PATH TEXT
//	big-file PATH SIZE             a file of zero bytes that costs no memory
//	read PATH                      print a file
//	copy PATH PATH, rename PATH PATH, remove PATH, mkdir PATH
//	symlink TARGET PATH, fifo PATH
//	require-file PATH, require-no-file PATH
//	judge PATH TEXT                write the reward: 1 if the file has the text, else 0
//	nan                            write a reward that is no number
//
//	exit CODE, kill SIGNAL         end, by a code or by a signal's number
//	oom, fork-bomb, fill-disk      run into a limit; "oom box" takes the sandbox along
//	no-start                       a StartError
//	error TEXT                     Exec returns an error, as in trouble of the runtime
//	lose-sandbox                   the sandbox dies: ErrLost from here on
//
//	hold                           wait for ever
//	leave-process [PATH]           a process that outlives the program; its id to a file
//	leave-daemon [PATH]            the same in a session of its own
//	background ["…","…"]           a process with instructions of its own
//	alive PATH                     print alive or dead for the process in a file
//	ignore-term                    nothing: processes here are killed for good
//
//	fetch URL                      print what an ingress answers; else exit 7
//	serve PORT TEXT                answer HTTP on a port, to be reached by Endpoint
//
//	run PATH#FIELD                 the instructions in a field of a JSON file: a text
//	                               (one a line, or a JSON array) or a list of texts;
//	                               FIELD may be a.b; without #FIELD the whole file.
//	                               The file is read when the command starts
//
// # Instructions of everyone
//
//	sleep DURATION                 by Config.Clock
//	block NAME                     wait until a test releases the point, see [Control]
//	signal NAME                    tell a test and go on
//	log SERVICE TEXT               a line of evidence; "-" is the service without a name
//	first N INSTRUCTION            only the first N times for this sandbox name
//	on-attempt N INSTRUCTION       only in attempt N by the sandbox's labels
//
// # Opening, closing, preparing
//
// Spec.Env, the env of a pack, has the script of Open in SCRIPT_OPEN and that of Close in
// SCRIPT_CLOSE; the runtime option "prepare" has that of Prepare. Each holds
// instructions one a line, or a JSON array.
//
//	fail STAGE TEXT                Open: a ProvisionError with the evidence so far
//	fail-permanent STAGE TEXT      the same, and trying again won't help
//	fail-times N STAGE TEXT        the first N times for this sandbox name
//	capacity [TEXT]                ErrCapacity
//	lose-sandbox                   Open succeeds and the sandbox is dead
//	missing TEXT                   evidence that could not be collected
//	service-oom SERVICE, service-exit SERVICE CODE, service-restarts SERVICE N
//
//	fail TEXT, capacity [TEXT]     Close and Prepare; what failed to close is still
//	                               there, and the next Close tries again
//
// # Limitations
//
// Nothing is built: an image is a name, whatever its build context has. All services of a
// sandbox share one file system and one environment. Users are names; they matter for
// private places and for nothing else. Policies are recorded ("phase" prints them), and
// there is no network beside ingress and serve.
package scripted
