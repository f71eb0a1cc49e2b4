// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"bytes"
	"io"
	"strings"

	"github.com/tidemill/tidemill/runtime"
)

func allBytes() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

func testStdin(f *fixture) {
	sb := f.open()
	cat := f.h.Programs.Program(Cat())
	big := strings.Repeat(allBytes(), 4096) // 1 MiB
	for what, in := range map[string]string{"empty": "", "every byte": allBytes(), "no newline at the end": "a\nb", "1 MiB": big} {
		r := f.exec(sb, runtime.Command{Argv: cat, Stdin: strings.NewReader(in)})
		if r.err != nil || !r.exit.OK() || r.stdout != in {
			f.Errorf("stdin %s: exit %+v, error %v, %d bytes came back of %d", what, r.exit, r.err, len(r.stdout), len(in))
		}
	}

	// Without a reader stdin is at its end, and not the worker's own.
	if r := f.exec(sb, runtime.Command{Argv: cat}); r.err != nil || !r.exit.OK() || r.stdout != "" {
		f.Errorf("no stdin: exit %+v, error %v, stdout %q", r.exit, r.err, r.stdout)
	}
	// Programs needn't read what they are given.
	if r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(), Stdin: strings.NewReader(big)}); r.err != nil || !r.exit.OK() {
		f.Errorf("a program that ignores 1 MiB of stdin: exit %+v, error %v", r.exit, r.err)
	}
	// A reader that never ends doesn't outlive the program.
	open, feed := io.Pipe()
	defer func() { _ = feed.Close() }()
	if r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Exit(4)), Stdin: open}); r.err != nil || r.exit.Code != 4 {
		f.Errorf("a program with an open stdin: exit %+v, error %v", r.exit, r.err)
	}
}

func testStreams(f *fixture) {
	sb := f.open()
	r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Out(allBytes()), Err("\xff\xfe not UTF-8"), Out("end"))})
	if r.err != nil || r.stdout != allBytes()+"end" || r.stderr != "\xff\xfe not UTF-8" {
		f.Errorf("error %v, stdout %q, stderr %q", r.err, r.stdout, r.stderr)
	}

	// One writer for both, without a lock: the runtime writes one at a time.
	var both bytes.Buffer
	r = f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Out("12"), Err("345"), Out("6789")), Stdout: &both, Stderr: &both})
	if r.err != nil || both.Len() != 9 {
		f.Errorf("one writer for both streams: error %v, %q", r.err, both.String())
	}

	// Nil discards.
	ctx, cancel := f.patience()
	defer cancel()
	if exit, err := sb.Exec(ctx, runtime.Command{Argv: f.h.Programs.Program(Out("a"), Err("b"), Exit(5))}); err != nil || exit.Code != 5 {
		f.Errorf("without writers: exit %+v, error %v", exit, err)
	}
}

// counter counts and keeps nothing.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func testFlood(f *fixture) {
	const kib = 10 << 10
	sb := f.open()
	var stdout, stderr counter
	r := f.exec(sb, runtime.Command{Argv: f.h.Programs.Program(Flood(kib), Exit(9)), Stdout: &stdout, Stderr: &stderr})
	if r.err != nil || r.exit.Code != 9 {
		f.Errorf("exit %+v, error %v", r.exit, r.err)
	}
	if stdout != kib<<10 || stderr != kib<<10 {
		f.Errorf("%d bytes on stdout and %d on stderr, want %d on each", stdout, stderr, kib<<10)
	}
}

func testStreamsWhileRunning(f *fixture) {
	sb := f.open()
	answers, questions := io.Pipe()
	r := f.start(sb, runtime.Command{Argv: f.h.Programs.Program(Out("hello\n"), Cat(), Out("bye\n")), Stdin: answers})
	r.awaitLine("hello")
	if _, err := io.WriteString(questions, "more\n"); err != nil {
		f.Fatalf("stdin of a running program: %v", err)
	}
	r.awaitLine("more")
	_ = questions.Close()
	if exit, err := r.wait(); err != nil || !exit.OK() || r.out.String() != "hello\nmore\nbye\n" {
		f.Errorf("exit %+v, error %v, stdout %q", exit, err, r.out.String())
	}
}
