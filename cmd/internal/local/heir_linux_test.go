// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// heirVar makes the test binary an owner of the directory that it names, who dies and
// leaves a child that has the lock until its stdin ends.
const heirVar = "TIDEMILL_TEST_HEIR"

func init() {
	dir := os.Getenv(heirVar)
	if dir == "" {
		return
	}
	d, err := Acquire(dir, "tidemill test")
	if err == nil {
		child := exec.Command("cat")
		child.Stdin, child.ExtraFiles = os.Stdin, []*os.File{d.lock}
		child.Env = []string{"PATH=" + os.Getenv("PATH")}
		err = child.Start()
	}
	fmt.Println(os.Getpid(), err)
	os.Exit(0)
}

// leaveHeir makes a directory whose owner is dead and whose lock is held nevertheless,
// until the function that it returns is called.
func leaveHeir(t *testing.T, root string) (pid int, end func()) {
	t.Helper()
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), heirVar+"="+root)
	cmd.Stdin = in
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if err := errors.Join(cmd.Wait(), in.Close()); err != nil {
		t.Fatal(err)
	}
	if line != fmt.Sprintf("%d <nil>\n", cmd.Process.Pid) {
		t.Fatalf("the owner says %q", line)
	}
	end = sync.OnceFunc(func() { hold.Close() })
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

// A dead owner's lock is waited for while something that it was about to start still holds
// it.
func TestTheLockOfADeadOwnerIsWaitedFor(t *testing.T) {
	root := t.TempDir()
	_, end := leaveHeir(t, root)
	opened := watchOpens(t, filepath.Join(root, hidden, "lock"))
	type result struct {
		d   *Dir
		err error
	}
	done := make(chan result, 1)
	go func() {
		d, err := Acquire(root, "tidemill run")
		done <- result{d, err}
	}()
	// It has looked once, found the lock taken, and looked again.
	for range 2 {
		select {
		case <-opened:
		case r := <-done:
			t.Fatalf("it didn't wait: %v", r.err)
		}
	}
	end()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	if err := r.d.Release(); err != nil {
		t.Fatal(err)
	}
}

// But not for ever: whoever holds it may be at work there.
func TestTheLockOfADeadOwnerIsNotWaitedForForEver(t *testing.T) {
	root := t.TempDir()
	pid, end := leaveHeir(t, root)
	_, err := Acquire(root, "tidemill run")
	busy, ok := errors.AsType[*BusyError](err)
	if !ok || busy.Owner.PID != pid || !strings.HasPrefix(err.Error(), fmt.Sprintf("%s is in use by tidemill test (process %d, since ", root, pid)) {
		t.Errorf("error %v; want a BusyError with process %d", err, pid)
	}
	end()
}

// Of many who want a directory at the same time one gets it, and all others are told who.
func TestOneOfManyOwns(t *testing.T) {
	root := filepath.Join(t.TempDir(), "data")
	const many = 16
	begin, dirs, errs := make(chan struct{}), make([]*Dir, many), make([]error, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			<-begin
			dirs[i], errs[i] = Acquire(root, "tidemill run")
		})
	}
	close(begin)
	wg.Wait()
	owners := 0
	for i, err := range errs {
		if err == nil {
			owners++
			defer dirs[i].Release()
		} else if _, ok := errors.AsType[*BusyError](err); !ok {
			t.Errorf("error %v; want a BusyError", err)
		}
	}
	if owners != 1 {
		t.Errorf("%d of %d own the directory; want one", owners, many)
	}
}

// watchOpens tells of each time that a file is opened.
func watchOpens(t *testing.T, path string) <-chan struct{} {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	opened, done := make(chan struct{}, 1000), make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EBADF) {
				return
			}
			for range n / unix.SizeofInotifyEvent { // of a file they come without a name
				opened <- struct{}{}
			}
		}
	}()
	t.Cleanup(func() {
		f.Close()
		<-done
	})
	return opened
}
