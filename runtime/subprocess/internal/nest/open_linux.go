// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// nest makes a nest of this thread, keeps it until the worker closes it, and removes
// it. What it returns is what could not be removed.
func (o *office) nest(reply, sock int, spec Spec, view *scene) error {
	spec.View = view.view
	t := &tenant{sock: sock, init: -1, talk: -1, disk: -1, procs: map[int]*proc{}}
	dirs, err := t.enter(o, spec, view)
	if err != nil {
		if cerr := t.leave(); cerr != nil {
			err = fmt.Errorf("%w; and %w", err, cerr)
		}
		answer(reply, response{Error: toWire(err)})
		return nil
	}
	answer(reply, response{Init: t.pid}, dirs...)
	closeAll(dirs)
	t.serve()
	return t.leave()
}

// tenant is a nest as its thread sees it.
type tenant struct {
	sock  int // the worker
	group *group
	init  int // its pidfd, -1 where there is none
	pid   int // of init
	talk  int // to init
	disk  int // the root of the disk that is limited, or -1
	lost  bool
	procs map[int]*proc // by pidfd

	// online is the second thread, in the nest but for its network; nil where there is
	// none.
	online *second
}

// enter takes the thread into the nest. It returns directories of the disk.
func (t *tenant) enter(o *office, spec Spec, scene *scene) ([]int, error) {
	view, err := scene.get()
	if err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	if t.group, err = o.groups.make(spec); err != nil {
		return nil, err
	}
	if err := t.group.join(); err != nil {
		return nil, err
	}
	// What is this thread's alone can be changed.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return nil, fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Setns(view, unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("enter the view: %w", err)
	}
	const flags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if err := unix.Unshare(flags); err != nil {
		return nil, fmt.Errorf("new namespaces: %w", err)
	}
	if spec.Offline {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return nil, fmt.Errorf("new network: %w", err)
		}
		if err := loopbackUp(); err != nil {
			return nil, err
		}
	}
	dirs, err := t.mount(spec)
	if err != nil {
		return nil, err
	}
	if err = t.startInit(o.init); err == nil && spec.Offline && spec.AlsoOnline {
		t.online, err = newSecond(t.init, t.group)
	}
	if err == nil {
		err = dropPrivileges()
	}
	if err != nil {
		closeAll(dirs)
		return nil, err
	}
	return dirs, nil
}

const shmDefault = 64 << 20

// mount adds to the view what is the nest's own.
func (t *tenant) mount(spec Spec) (opened []int, err error) {
	trees := make([]int, len(spec.Dirs))
	var tmp int
	if spec.Disk > 0 {
		trees, tmp, err = t.makeDisk(spec)
		opened = trees
	} else {
		for i, dir := range spec.Dirs {
			if trees[i], err = cloneTree(dir); err != nil {
				return nil, err
			}
			defer unix.Close(trees[i])
		}
		tmp, err = cloneTree(spec.Tmp)
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(tmp)
	defer func() {
		if err != nil {
			closeAll(opened)
			opened = nil
		}
	}()
	if err := mountTmp(tmp, spec.View); err != nil {
		return opened, err
	}
	// Over the directory of all nests goes one that has only this one's.
	if err := os.MkdirAll(spec.View.Root, 0o755); err != nil {
		return opened, err
	}
	if err := emptyOn(spec.View.Root, "size=64k"); err != nil {
		return opened, fmt.Errorf("mount %s: %w", spec.View.Root, err)
	}
	for i, dir := range spec.Dirs {
		if err := makePoint(trees[i], dir); err != nil {
			return opened, err
		}
		if err := attachTree(trees[i], dir); err != nil {
			return opened, err
		}
	}
	for _, file := range spec.Cover {
		if err := cover(file); err != nil {
			return opened, err
		}
	}
	if err := setAttr(unix.AT_FDCWD, spec.View.Root, sealed|unix.MOUNT_ATTR_NOSUID, 0); err != nil {
		return opened, fmt.Errorf("seal %s: %w", spec.View.Root, err)
	}
	shm := "mode=1777,size=" + strconv.FormatInt(cmp.Or(spec.Shm, shmDefault), 10)
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, shm); err != nil {
		return opened, fmt.Errorf("mount /dev/shm: %w", err)
	}
	const pts = "newinstance,ptmxmode=0666,mode=0620"
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, pts); err != nil {
		return opened, fmt.Errorf("mount /dev/pts: %w", err)
	}
	return opened, nil
}

var tmpDirs = []string{"/tmp", "/var/tmp"}

// mountTmp gives the nest a /tmp of its own. What the view has inside comes along: a
// directory of nests that is there, a program that is shown.
func mountTmp(tmp int, view *View) error {
	type carried struct {
		path string
		fd   int
	}
	for _, dir := range tmpDirs {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		var all []carried
		for _, path := range view.Show {
			if path == dir || !under(path, dir) {
				continue
			}
			fd, err := cloneTree(path)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			all = append(all, carried{path, fd})
		}
		// A tree can be attached once only.
		fd, err := unix.OpenTree(tmp, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return fmt.Errorf("clone the nest's own %s: %w", dir, err)
		}
		err = attachTree(fd, dir)
		unix.Close(fd)
		if err != nil {
			return err
		}
		for _, c := range all {
			if err := makePoint(c.fd, c.path); err != nil {
				return err
			}
			if err := attachTree(c.fd, c.path); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeDisk makes a file system of a fixed size with a directory for each of Spec.Dirs,
// and returns these, and the one for Spec.Tmp.
func (t *tenant) makeDisk(spec Spec) (trees []int, tmp int, err error) {
	if t.disk, err = newTmpfs(spec.Disk); err != nil {
		return nil, -1, &LimitError{Limit: "disk", Reason: "a file system of a fixed size can't be mounted: " + err.Error()}
	}
	clone := func(rel string) (int, error) {
		fd, err := unix.OpenTree(t.disk, rel, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return -1, fmt.Errorf("clone %s of the disk: %w", rel, err)
		}
		return fd, nil
	}
	tmp = -1
	for i, dir := range spec.Dirs {
		name := strconv.Itoa(i)
		if err := unix.Mkdirat(t.disk, name, 0o755); err != nil {
			return trees, -1, fmt.Errorf("make a directory of the disk: %w", err)
		}
		if rel, err := filepath.Rel(dir, spec.Tmp); err == nil && filepath.IsLocal(rel) {
			if err := unix.Mkdirat(t.disk, filepath.Join(name, rel), 0o755); err != nil {
				return trees, -1, fmt.Errorf("make a directory of the disk: %w", err)
			}
			if err := unix.Fchmodat(t.disk, filepath.Join(name, rel), 0o1777, 0); err != nil {
				return trees, -1, fmt.Errorf("make a directory of the disk: %w", err)
			}
			if tmp, err = clone(filepath.Join(name, rel)); err != nil {
				return trees, -1, err
			}
		}
		fd, err := clone(name)
		if err != nil {
			return trees, tmp, err
		}
		trees = append(trees, fd)
	}
	return trees, tmp, nil
}

// tmpfsSize are the options for a size. Files that are empty take room as well, so their
// number is limited with their size.
func tmpfsSize(size int64) [][2]string {
	return [][2]string{
		{"size", strconv.FormatInt(size, 10)}, {"nr_inodes", strconv.FormatInt(max(4096, size/4096), 10)},
	}
}

// newTmpfs returns a detached file system.
func newTmpfs(size int64) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, option := range append(tmpfsSize(size), [2]string{"mode", "755"}) {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID)
}

// loopbackUp makes 127.0.0.1 work; a new network has its loopback down.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

// startInit starts the first process of the PID namespace, which mounts /proc.
func (t *tenant) startInit(path string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("start init: %w", err)
	}
	defer unix.Close(pair[1])
	t.talk = pair[0]
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &t.init}
	if os.Geteuid() != 0 {
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	t.group.spawn(attr)
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("start init: open /dev/null: %w", err)
	}
	defer unix.Close(null)
	t.pid, err = syscall.ForkExec(path, []string{"init", "/proc", "proc"}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{uintptr(pair[1]), uintptr(null), uintptr(null)}, Sys: attr,
	})
	if err != nil {
		t.init = -1
		return fmt.Errorf("start init: %w", err)
	}
	if err := t.hear(); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// tell has init do something: kill everybody with a signal, look whether there is
// anybody with 0, or wait for all of its children with drain.
func (t *tenant) tell(what int32) error {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(what))
	if _, err := unix.SendmsgN(t.talk, b[:], nil, nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("%w: init: %w", ErrLost, err)
	}
	return t.hear()
}

const drain = 256

func (t *tenant) hear() error {
	var b [4]byte
	for {
		n, err := unix.Read(t.talk, b[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n != len(b) {
			return fmt.Errorf("%w: init is dead", ErrLost)
		}
		if r := int32(binary.NativeEndian.Uint32(b[:])); r < 0 {
			return syscall.Errno(-r)
		}
		return nil
	}
}
