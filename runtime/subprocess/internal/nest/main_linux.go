// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	wardenName = "tidemill-warden"
	wardenVar  = "TIDEMILL_NEST"
	groupVar   = "TIDEMILL_NEST_CGROUP"
	wardenSock = 3
)

// hooked: this program calls Main.
var hooked bool

// Main is the hook that a program which uses nests calls first thing in main, before
// it looks at its arguments. In the warden, which is this program executed again by
// itself, it never returns. Both the name and the variable have to be right, so that
// nobody becomes a warden by accident.
func Main() {
	if os.Getenv(wardenVar) != wardenName || os.Args[0] != wardenName {
		hooked = true
		return
	}
	// The main thread stays with this goroutine: it is the one that can't end, and so
	// it can't be a nest's.
	goruntime.LockOSThread()
	if err := watch(); err != nil {
		fmt.Fprintln(os.Stderr, "warden of nests:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// office is what the warden has.
type office struct {
	groups groups
	init   string         // the path to execute
	views  map[int]*scene // touched by serve alone

	mu    sync.Mutex
	socks map[int]bool // of nests
	ended bool
	nests sync.WaitGroup
}

func watch() error {
	group := os.Getenv(groupVar)
	os.Clearenv()
	// A thread that waits in the kernel keeps its place among the ones that run until
	// somebody takes it away, which may last. With more places than nests that are busy
	// at once nobody has to wait for that.
	goruntime.GOMAXPROCS(64)
	debug.SetMemoryLimit(64 << 20)
	// Nothing that somebody let the worker inherit goes any further.
	if err := unix.CloseRange(wardenSock, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close on exec: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("set rlimit: %w", err)
	}
	image, err := initFile()
	if err != nil {
		return err
	}
	o := &office{init: fmt.Sprintf("/proc/self/fd/%d", image), socks: map[int]bool{}, views: map[int]*scene{}}
	o.groups = findGroups(group)
	if err := sendFrame(rawSend(wardenSock), response{Hello: o.groups.hello()}, nil); err != nil {
		return fmt.Errorf("say hello: %w", err)
	}
	o.serve()
	o.end()
	return nil
}

// initFile puts init where it can be executed from, and nowhere else.
func initFile() (int, error) {
	const mfdExec = 0x10
	fd, err := unix.MemfdCreate("init", unix.MFD_CLOEXEC|mfdExec)
	if err != nil { // Linux before 6.3 doesn't know the flag
		fd, err = unix.MemfdCreate("init", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return -1, fmt.Errorf("memfd: %w", err)
	}
	if _, err := unix.Write(fd, initImage()); err != nil {
		return -1, fmt.Errorf("write init: %w", err)
	}
	// A file that is open for writing can't be executed.
	ro, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open init: %w", err)
	}
	return ro, unix.Close(fd)
}

// serve takes requests until the worker is gone.
func (o *office) serve() {
	for {
		var req request
		fds, err := recvFrame(rawRecv(wardenSock), &req)
		if err != nil {
			return
		}
		switch {
		case req.Op == opOpen && len(fds) == 2 && req.Spec != nil:
			if req.View != nil {
				o.views[req.ViewID] = &scene{view: req.View}
			}
			o.open(fds[0], fds[1], *req.Spec, o.views[req.ViewID])
		case req.Op == opLook && len(fds) == 1 && req.Look != nil:
			// On a thread of its own: it dials, and the next request shouldn't wait.
			go answer(fds[0], response{Seen: look(*req.Look)})
		case req.Op == opResize && len(fds) > 0 && req.Spec != nil:
			go func() {
				answer(fds[0], response{Error: toWire(o.resize(*req.Spec, fds[1:]))})
				closeAll(fds[1:])
			}()
		default:
			closeAll(fds)
		}
	}
}

// answer sends a response, its only one, and closes the socket that it was for.
func answer(reply int, r response, fds ...int) {
	_ = sendFrame(rawSend(reply), r, fds) // the worker may be gone
	unix.Close(reply)
}

// open makes a nest on a thread that ends with it.
func (o *office) open(reply, sock int, spec Spec, view *scene) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended || view == nil {
		closeAll([]int{reply, sock})
		return
	}
	o.socks[sock] = true
	o.nests.Add(1)
	go func() {
		defer o.nests.Done()
		// Never unlocked: with the goroutine the thread ends, and what it has become is
		// nobody's any more.
		goruntime.LockOSThread()
		err := o.nest(reply, sock, spec, view)
		o.mu.Lock()
		delete(o.socks, sock)
		o.mu.Unlock()
		if err != nil {
			answer(sock, response{Error: toWire(err)})
			return
		}
		unix.Close(sock)
	}()
}

// end closes all nests: those whose worker is dead, or forgot them.
func (o *office) end() {
	o.mu.Lock()
	o.ended = true
	for sock := range o.socks {
		_ = unix.Shutdown(sock, unix.SHUT_RD)
	}
	o.mu.Unlock()
	o.nests.Wait()
}
