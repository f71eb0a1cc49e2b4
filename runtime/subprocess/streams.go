// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemill/tidemill/runtime"
)

// pipeMax is what a program without privileges can make a pipe hold.
const pipeMax = 1 << 20

// streams are the pipes of a command. Package os/exec would make them too, but waits
// for children that keep them open either for ever or only for a fixed time, in which
// a slow writer loses what the program itself had printed.
type streams struct {
	theirs []int // descriptors
	outs   []*outStream
	in     *inStream
}

// outStream takes what the program prints to its writer.
type outStream struct {
	pipe *os.File
	to   io.Writer
	done chan struct{}
	err  error
}

// inStream takes what a reader gives to the program.
type inStream struct {
	pipe *os.File
	done chan struct{}
	err  error
}

// devNull is opened once and for all, not three times for each command.
var devNull = sync.OnceValues(func() (int, error) {
	fd, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	return fd, nil
})

// open makes the pipes that the command needs, and returns the descriptors of its streams.
func (s *streams) open(c runtime.Command) (files [3]int, err error) {
	*s = streams{}
	defer func() {
		if err != nil {
			s.closeTheirs()
			s.closeOurs()
		}
	}()
	null, err := devNull()
	if err != nil {
		return files, err
	}
	files = [3]int{null, null, null}
	switch in := c.Stdin.(type) {
	case nil:
	case *os.File:
		files[0] = int(in.Fd())
	default:
		r, w, err := pipe()
		if err != nil {
			return files, err
		}
		files[0] = r
		s.theirs = append(s.theirs, r)
		s.in = &inStream{pipe: watched(w), done: make(chan struct{})}
	}
	if c.Stdout != nil {
		if files[1], err = s.out(c.Stdout); err != nil {
			return files, err
		}
		if same(c.Stdout, c.Stderr) {
			files[2] = files[1]
			return files, nil
		}
	}
	if c.Stderr != nil {
		if files[2], err = s.out(c.Stderr); err != nil {
			return files, err
		}
	}
	return files, nil
}

func (s *streams) out(to io.Writer) (int, error) {
	r, w, err := pipe()
	if err != nil {
		return -1, err
	}
	s.theirs = append(s.theirs, w)
	s.outs = append(s.outs, &outStream{pipe: watched(r), to: to, done: make(chan struct{})})
	return w, nil
}

// watched is our end of a pipe, for which the poller waits. The program's end isn't, and
// what it reads or writes waits for itself.
func watched(fd int) *os.File {
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK) // it has no other flags
	return os.NewFile(uintptr(fd), "|")
}

// same compares writers, of which some can't be compared.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }()
	return a == b
}

func (s *streams) closeTheirs() {
	for _, fd := range s.theirs {
		unix.Close(fd)
	}
	s.theirs = nil
}

func (s *streams) closeOurs() {
	for _, o := range s.outs {
		o.pipe.Close()
	}
	if s.in != nil {
		s.in.pipe.Close()
	}
}

func (s *streams) serve(c runtime.Command) {
	for _, o := range s.outs {
		go o.serve()
	}
	if s.in != nil {
		go s.in.serve(c.Stdin)
	}
}

// finish is called when the program has ended.
func (s *streams) finish(grace time.Duration) error {
	var errs []error
	deadline := time.Now().Add(grace)
	for _, o := range s.outs {
		_ = o.pipe.SetReadDeadline(deadline)
	}
	for _, o := range s.outs {
		<-o.done
		o.pipe.Close()
		errs = append(errs, o.err)
	}
	if s.in != nil {
		s.in.pipe.Close()
		select {
		case <-s.in.done:
			errs = append(errs, s.in.err)
		case <-time.After(grace):
		}
	}
	return errors.Join(errs...)
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// serve reads to the end of the stream, or after finish, to the end of what is in the
// pipe already: the program wrote that before it ended, and its children may go on
// for ever.
func (o *outStream) serve() {
	defer close(o.done)
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	for {
		n, err := o.pipe.Read(*b)
		o.write((*b)[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			o.drain(*b)
			return
		}
		if err != nil {
			return // the end, or a pipe that was closed under us
		}
	}
}

func (o *outStream) drain(b []byte) {
	_ = o.pipe.SetReadDeadline(time.Time{})
	conn, err := o.pipe.SyscallConn()
	if err != nil {
		return
	}
	for total := 0; total < pipeMax; {
		var n int
		var err error
		// To return true says not to wait when there is nothing.
		if conn.Read(func(fd uintptr) bool { n, err = unix.Read(int(fd), b); return true }) != nil {
			return
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		o.write(b[:n])
		total += n
	}
}

// write goes on reading for a writer that failed: the program didn't do anything
// wrong, and a closed pipe would kill it.
func (o *outStream) write(p []byte) {
	if len(p) == 0 || o.err != nil {
		return
	}
	if _, err := o.to.Write(p); err != nil {
		o.err = fmt.Errorf("keep output: %w", err)
	}
}

func (i *inStream) serve(from io.Reader) {
	defer close(i.done)
	_, err := io.Copy(i.pipe, from)
	if cerr := i.pipe.Close(); err == nil {
		err = cerr
	}
	// A program need not read what it is given.
	if err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, os.ErrClosed) {
		i.err = fmt.Errorf("give input: %w", err)
	}
}
