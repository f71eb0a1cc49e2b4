// SPDX-License-Identifier: Apache-2.0

package boxtool

import "github.com/tidemill/tidemill/runtime/docker/internal/boxtool/asm"

const (
	atFdcwd     = -100
	atRemovedir = 0x200
	oCloexec    = 0x80000
	oPath       = 0x200000

	enoent    = 2
	eexist    = 17
	enotdir   = 20
	enotempty = 39

	// What getdents64 writes about an entry: its length, and its name to a zero byte.
	direntLength = 16
	direntName   = 19
)

var (
	oDirectory = asm.PerArch{AMD64: 0x10000, ARM64: 0x4000}
	oNofollow  = asm.PerArch{AMD64: 0x20000, ARM64: 0x8000}
)

// A level is a directory that is open: its descriptor, where in the buffer the next
// entry is and where they end, and the buffer, as getdents64 fills it.
const (
	levelFd     = 0
	levelNext   = 8
	levelEnd    = 16
	levelBuffer = 24
	bufferSize  = 4096
	levelSize   = levelBuffer + bufferSize

	// levels is how deep a tree is walked with every directory on the way open. Below,
	// the lowest level is given to one directory after the other, and the way down is
	// walked anew for each.
	levels = 32

	// maxIdle directories that were found empty and then could not be removed for not
	// being empty, one after the other, and nothing removed meanwhile, are one that
	// can't be removed. Somebody who adds files all the time doesn't count: only the
	// caller knows how long is too long.
	maxIdle = 1000
)

// remover is the state of the mode.
type remover struct {
	*asm.Program
	rc, name, fd, top, last, level, idle asm.Var
	flags                                asm.Var // for opening a directory to be read
	stack                                asm.Area
}

// remove removes every path in turn. A path is walked part by part from the root; a
// symlink on the way, "." and ".." are refused, so what is removed is what the path
// says. A path that isn't there is fine. It ends at the first entry that can't be
// removed.
func remove(p *asm.Program, argc, argv asm.Var) {
	r := &remover{
		Program: p,
		rc:      p.Var(), name: p.Var(), fd: p.Var(), top: p.Var(), last: p.Var(), level: p.Var(), idle: p.Var(), flags: p.Var(),
		stack: p.Area((levels + 1) * levelSize),
	}
	i, arg := p.Var(), p.Var()
	p.Label(Remove)
	p.If(argc, asm.LT, asm.Num(3), "usage")
	p.Or(r.flags, oDirectory, oNofollow)
	p.Or(r.flags, r.flags, asm.Num(oCloexec))
	p.Set(i, asm.Num(2))

	p.Label("next path")
	p.If(i, asm.GE, argc, "all removed")
	p.Shl(arg, i, asm.Num(3))
	p.Add(arg, argv, arg)
	p.Load(arg, 8, arg, 0)
	p.Add(i, i, asm.Num(1))
	r.walk(arg)
	r.tree()

	p.Label("all removed")
	exit(p, asm.Num(0))
	p.Label("remove failed")
	exitErrno(p, r.rc)
}

// walk leaves the directory that has the path's last part in top, and that part in
// last. It writes zero bytes over slashes of the argument, which is ours.
func (r *remover) walk(at asm.Var) {
	c, after, flags := r.Var(), r.Var(), r.Var()
	r.Load(c, 1, at, 0)
	r.If(c, asm.NE, asm.Num('/'), "usage")
	r.Or(flags, r.flags, asm.Num(oPath))
	r.Call(r.top, "openat", asm.Num(atFdcwd), asm.Text("/"), flags)
	r.Set(r.rc, r.top)
	r.If(r.top, asm.LT, asm.Num(0), "remove failed")
	r.skipSlashes(at, c, "first")
	r.If(c, asm.EQ, asm.Num(0), "usage") // the root itself

	r.Label("part")
	r.Set(r.name, at)
	r.Label("in part")
	r.Load(c, 1, at, 0)
	r.If(c, asm.EQ, asm.Num(0), "part ends")
	r.If(c, asm.EQ, asm.Num('/'), "part ends")
	r.Add(at, at, asm.Num(1))
	r.Goto("in part")

	r.Label("part ends")
	r.Set(after, at)
	r.skipSlashes(after, c, "next")
	r.Store(1, at, 0, asm.Num(0))
	r.ifDots(c, "usage")
	r.Set(r.last, r.name)
	r.Load(c, 1, after, 0)
	r.If(c, asm.EQ, asm.Num(0), "top found")

	r.Call(r.rc, "openat", r.top, r.name, flags)
	r.Call(c, "close", r.top)
	r.If(r.rc, asm.EQ, asm.Num(-enoent), "next path")
	r.If(r.rc, asm.LT, asm.Num(0), "remove failed")
	r.Set(r.top, r.rc)
	r.Set(at, after)
	r.Goto("part")
	r.Label("top found")
}

// skipSlashes moves at to the next byte that isn't a slash, which it leaves in c.
func (r *remover) skipSlashes(at, c asm.Var, id string) {
	r.Label("slash " + id)
	r.Load(c, 1, at, 0)
	r.If(c, asm.NE, asm.Num('/'), "no slash "+id)
	r.Add(at, at, asm.Num(1))
	r.Goto("slash " + id)
	r.Label("no slash " + id)
}

// ifDots goes to the label when name is "." or "..".
func (r *remover) ifDots(c asm.Var, label string) {
	other := "no dots, not " + label
	r.Load(c, 1, r.name, 0)
	r.If(c, asm.NE, asm.Num('.'), other)
	r.Load(c, 1, r.name, 1)
	r.If(c, asm.EQ, asm.Num(0), label)
	r.If(c, asm.NE, asm.Num('.'), other)
	r.Load(c, 1, r.name, 2)
	r.If(c, asm.EQ, asm.Num(0), label)
	r.Label(other)
}

// tree removes what has the name in top, with all that is below it, then goes to the next
// path. Everything is asked of the kernel under its name in an open directory, so a
// directory that is replaced by a symlink meanwhile is not followed.
func (r *remover) tree() {
	r.Set(r.idle, asm.Num(0))
	r.Label("top")
	r.Set(r.name, r.last)
	r.Set(r.level, r.stack) // the lowest level stands for top and is never read
	r.unlink(r.top, "top", "path removed")
	r.Goto("descend")

	r.Label("path removed")
	r.Call(r.rc, "close", r.top)
	r.Goto("next path")

	r.Label("descend") // fd is a directory with something in it
	r.If(r.level, asm.EQ, r.stack+levels*levelSize, "deepest level")
	r.Add(r.level, r.level, asm.Num(levelSize))
	r.Goto("level ready")
	r.Label("deepest level") // is given away; its parent will come back for it
	r.Load(r.rc, 8, r.level, levelFd)
	r.Call(r.rc, "close", r.rc)
	r.Label("level ready")
	r.Store(8, r.level, levelFd, r.fd)

	r.entries()

	r.Label("ascend") // nothing is left to read; the parent tries the same entry again
	r.Load(r.fd, 8, r.level, levelFd)
	r.Call(r.rc, "close", r.fd)
	r.Sub(r.level, r.level, asm.Num(levelSize))
	r.Add(r.idle, r.idle, asm.Num(1))
	r.Set(r.rc, asm.Num(-enotempty))
	r.If(r.idle, asm.GE, asm.Num(maxIdle), "remove failed")
	r.If(r.level, asm.EQ, r.stack, "top")
	r.Goto("entry")
}

// entries removes what is in the level's directory. It goes to "descend" for an entry
// that is a directory with something in it, and to "ascend" at the end.
func (r *remover) entries() {
	next, end, c := r.Var(), r.Var(), r.Var()
	r.Label("read")
	r.Load(r.fd, 8, r.level, levelFd)
	r.Add(next, r.level, asm.Num(levelBuffer))
	r.Call(r.rc, "getdents64", r.fd, next, asm.Num(bufferSize))
	r.If(r.rc, asm.EQ, asm.Num(0), "ascend")
	r.If(r.rc, asm.EQ, asm.Num(-enoent), "ascend") // somebody else removed it
	r.If(r.rc, asm.LT, asm.Num(0), "remove failed")
	r.Add(end, next, r.rc)
	r.Store(8, r.level, levelNext, next)
	r.Store(8, r.level, levelEnd, end)

	r.Label("entry")
	r.Load(next, 8, r.level, levelNext)
	r.Load(end, 8, r.level, levelEnd)
	r.If(next, asm.GE, end, "read")
	r.Add(r.name, next, asm.Num(direntName))
	r.ifDots(c, "entry removed")
	r.Load(r.fd, 8, r.level, levelFd)
	r.unlink(r.fd, "entry", "entry removed")
	r.Goto("descend")

	r.Label("entry removed")
	r.Load(next, 8, r.level, levelNext)
	r.Load(c, 2, next, direntLength)
	r.Add(next, next, c)
	r.Store(8, r.level, levelNext, next)
	r.Goto("entry")
}

// unlink removes name in dir and goes to gone. A directory that isn't empty it opens as
// fd, and goes on with what follows.
func (r *remover) unlink(dir asm.Var, id, gone string) {
	first := r.Var()
	r.Call(first, "unlinkat", dir, r.name, asm.Num(0))
	r.If(first, asm.EQ, asm.Num(0), "progress "+id)
	r.If(first, asm.EQ, asm.Num(-enoent), gone)
	r.Call(r.rc, "unlinkat", dir, r.name, asm.Num(atRemovedir))
	r.If(r.rc, asm.EQ, asm.Num(0), "progress "+id)
	r.If(r.rc, asm.EQ, asm.Num(-enoent), gone)
	r.If(r.rc, asm.EQ, asm.Num(-enotempty), "open "+id)
	r.If(r.rc, asm.EQ, asm.Num(-eexist), "open "+id)
	r.If(r.rc, asm.NE, asm.Num(-enotdir), "remove failed")
	r.Set(r.rc, first) // no directory: what the first call said is the reason
	r.Goto("remove failed")

	r.Label("progress " + id)
	r.Set(r.idle, asm.Num(0))
	r.Goto(gone)

	r.Label("open " + id)
	r.Call(r.fd, "openat", dir, r.name, r.flags)
	r.If(r.fd, asm.EQ, asm.Num(-enoent), gone)
	r.Set(r.rc, r.fd)
	r.If(r.fd, asm.LT, asm.Num(0), "remove failed")
}
