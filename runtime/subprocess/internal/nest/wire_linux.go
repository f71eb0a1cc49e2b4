// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Worker and warden talk in frames over stream sockets: four bytes of length, then
// JSON. Descriptors travel with a frame's first byte. Every request brings a socket of
// its own for the response, so nothing has to be matched up or waited for in line.

// request is what a worker asks. Which fields count depends on Op.
type request struct {
	Op      string
	Spec    *Spec       `json:",omitempty"` // open, resize
	ViewID  int         `json:",omitempty"` // open: the number that the worker gives to Spec.View
	View    *View       `json:",omitempty"` // open: the first time
	Run     *runRequest `json:",omitempty"` // run
	Command uint64      `json:",omitempty"` // signal
	Signal  int         `json:",omitempty"` // signal
	Look    *Look       `json:",omitempty"` // look
}

// Operations: open, resize and look go to the warden, all others and look to a nest.
const (
	opOpen   = "open"   // + the nest's end of its socket
	opResize = "resize" // + a directory of the disk, if there is one
	opRun    = "run"    // + stdin, stdout, stderr
	opSignal = "signal" // to a command's process group
	opEnd    = "end"    // every process of the nest but its init
	opSocket = "socket" // a TCP socket of the nest's network
	opLook   = "look"
)

// Strings that are a program's may hold any bytes, which JSON strings can't.
type runRequest struct {
	ID        uint64
	Argv, Env []anyBytes
	Path, Dir anyBytes
	Online    bool  `json:",omitempty"`
	OpenFiles int64 `json:",omitempty"`
	FileSize  int64 `json:",omitempty"`
}

type anyBytes string

func (s anyBytes) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(s)) }

func (s *anyBytes) UnmarshalJSON(data []byte) error {
	var b []byte
	err := json.Unmarshal(data, &b)
	*s = anyBytes(b)
	return err
}

func toBytes(list []string) []anyBytes {
	out := make([]anyBytes, len(list))
	for i, s := range list {
		out[i] = anyBytes(s)
	}
	return out
}

func fromBytes(list []anyBytes) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// response is one answer.
type response struct {
	Error  *wireError `json:",omitempty"`
	Init   int        `json:",omitempty"` // open: the process id, as the warden sees it
	Status *Status    `json:",omitempty"` // run
	Seen   *wireSeen  `json:",omitempty"` // look
	Hello  *hello     `json:",omitempty"` // the warden's first word
}

// hello says what the warden can do here.
type hello struct {
	// Groups are the directories below which it makes control groups.
	Groups []string
	// NoMemory and NoPids say why there are no such limits.
	NoMemory, NoPids string
}

type wireSeen struct {
	Dial, Read, Write []*wireError
	Entries           []int
}

const (
	frameMax = 16 << 20 // more than a program's arguments and environment can be
	fdsMax   = 8
)

func encodeFrame(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(body) > frameMax {
		return nil, fmt.Errorf("%w: arguments and environment of %d bytes", unix.E2BIG, len(body))
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...), nil
}

// sendFrame writes a frame; send is one try of sendmsg and returns how much it took.
func sendFrame(send func(p, oob []byte) (int, error), v any, fds []int) error {
	frame, err := encodeFrame(v)
	if err != nil {
		return err
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	for len(frame) > 0 {
		n, err := send(frame, oob)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		frame, oob = frame[n:], nil
	}
	return nil
}

// recvFrame reads a frame and the descriptors that came with it; recv is one try of
// recvmsg. [io.EOF] means that the other side closed the socket.
func recvFrame(recv func(p, oob []byte) (n, oobn int, err error), v any) ([]int, error) {
	var fds []int
	fail := func(err error) ([]int, error) {
		closeAll(fds)
		return nil, err
	}
	read := func(p []byte) error {
		for off := 0; off < len(p); {
			oob := make([]byte, unix.CmsgSpace(fdsMax*4))
			n, oobn, err := recv(p[off:], oob)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return err
			}
			fds = append(fds, parseRights(oob[:oobn])...)
			if n == 0 {
				if off > 0 {
					return io.ErrUnexpectedEOF
				}
				return io.EOF
			}
			off += n
		}
		return nil
	}
	var header [4]byte
	if err := read(header[:]); err != nil {
		return fail(err)
	}
	length := binary.LittleEndian.Uint32(header[:])
	if length > frameMax {
		return fail(fmt.Errorf("a frame of %d bytes", length))
	}
	body := make([]byte, length)
	if err := read(body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fail(err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fail(fmt.Errorf("a frame that can't be read: %w", err))
	}
	return fds, nil
}

func parseRights(oob []byte) []int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var fds []int
	for _, m := range messages {
		if got, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// The warden's side blocks its thread.

func rawSend(fd int) func(p, oob []byte) (int, error) {
	return func(p, oob []byte) (int, error) { return unix.SendmsgN(fd, p, oob, nil, unix.MSG_NOSIGNAL) }
}

func rawRecv(fd int) func(p, oob []byte) (int, int, error) {
	return func(p, oob []byte) (int, int, error) {
		n, oobn, _, _, err := unix.Recvmsg(fd, p, oob, unix.MSG_CMSG_CLOEXEC)
		return n, oobn, err
	}
}

// The worker's side waits for the poller.

func fileSend(f *os.File) func(p, oob []byte) (int, error) {
	return func(p, oob []byte) (n int, err error) {
		conn, err := f.SyscallConn()
		if err != nil {
			return 0, err
		}
		waitErr := conn.Write(func(fd uintptr) bool {
			n, err = unix.SendmsgN(int(fd), p, oob, nil, unix.MSG_NOSIGNAL)
			return !errors.Is(err, unix.EAGAIN)
		})
		return n, errors.Join(err, waitErr)
	}
}

func fileRecv(f *os.File) func(p, oob []byte) (int, int, error) {
	return func(p, oob []byte) (n, oobn int, err error) {
		conn, err := f.SyscallConn()
		if err != nil {
			return 0, 0, err
		}
		waitErr := conn.Read(func(fd uintptr) bool {
			n, oobn, _, _, err = unix.Recvmsg(int(fd), p, oob, unix.MSG_CMSG_CLOEXEC)
			return !errors.Is(err, unix.EAGAIN)
		})
		if waitErr != nil {
			err = waitErr
		}
		return n, oobn, err
	}
}

// socketPair returns our end, which the poller watches, and theirs, which blocks.
func socketPair() (ours *os.File, theirs int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, os.NewSyscallError("socketpair", err)
	}
	if _, err := unix.FcntlInt(uintptr(fds[0]), unix.F_SETFL, unix.O_NONBLOCK); err != nil { // it has no other flags
		closeAll(fds[:])
		return nil, -1, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fds[0]), "nest"), fds[1], nil
}
