// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Store holds objects under keys. A key is one or more segments joined by "/"; a
// segment is one or more of A-Z a-z 0-9 . _ ~ - and doesn't start with a dot. Keys
// are at most 900 bytes long. A key is never another's directory ("a" beside "a/b"): a
// file system can't hold both and refuses the second with [ErrInvalidKey]. All methods may be called from many goroutines and
// processes at once.
//
// A method that returned nil has made its effect durable, as far as the medium can.
// After an error the effect may or may not have happened: read to find out.
type Store interface {
	// Create writes a small object if the key is absent: of any number of writers
	// that race, exactly one gets nil and all others [ErrExists]. Nobody ever sees a
	// part of it.
	Create(ctx context.Context, key string, body []byte) (Version, error)
	// Swap replaces a small object if it still has the version; [ErrChanged] when it
	// has another or is gone.
	Swap(ctx context.Context, key string, old Version, body []byte) (Version, error)
	// Put writes an object of any size, replacing what is there. Readers see the old
	// or the new one, never a mixture. r is read once, to its end, from where it
	// stands; an io.ReadSeeker lets an implementation try again. size is the number
	// of bytes that r will give, -1 if not known; another number is an error and
	// leaves the old object.
	Put(ctx context.Context, key string, r io.Reader, size int64) error
	// Get opens an object. [ErrNotFound] when there is none. Close the reader.
	Get(ctx context.Context, key string) (io.ReadCloser, Info, error)
	// GetRange opens n bytes from off; fewer at the end of the object, none past it.
	GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error)
	// List yields every object whose key starts with the prefix, in no promised
	// order, each once. The prefix need not end at a "/". An error ends it.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Delete removes an object. One that isn't there is no error.
	Delete(ctx context.Context, key string) error
	// URL names the store for people and for records, without credentials.
	URL() string
	Close() error
}

// Version identifies the content of an object at one time (an entity tag). It is
// opaque; compare for equality only.
type Version string

// Info describes an object.
type Info struct {
	Key      string
	Size     int64
	Modified time.Time
	Version  Version // empty where a listing doesn't tell
}

// Conditions that callers branch on. They come wrapped: compare with errors.Is.
var (
	// ErrExists: the key is taken.
	ErrExists = errors.New("object exists")
	// ErrChanged: the object is not what it was.
	ErrChanged = errors.New("object changed")
	// ErrNotFound: no such object.
	ErrNotFound = errors.New("object not found")
	// ErrInvalidKey: the key can't be one.
	ErrInvalidKey = errors.New("invalid key")
	// ErrUnavailable: the store did not answer, or answered that it can't now; try
	// again.
	ErrUnavailable = errors.New("store unavailable")
	// ErrNoSpace: the medium is full.
	ErrNoSpace = errors.New("store is full")
	// ErrNotAtomic: the store let two writers create one key; it can't be used.
	ErrNotAtomic = errors.New("store has no atomic create-if-absent")
	// ErrDenied: credentials or permissions are missing.
	ErrDenied = errors.New("store denied access")
)
