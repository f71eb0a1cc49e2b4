// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
)

const (
	// idsInMemory is how many ids are remembered before they go to disk; with their
	// map they take some 20 MB.
	idsInMemory = 1 << 18
	idBuckets   = 64
	idRecord    = 16 + 8
)

// IDSet finds ids that come twice, among any number of them, in bounded memory. It
// keeps a hash of 16 bytes of each, from some number on in temporary files.
type IDSet struct {
	most    int
	places  map[[16]byte]uint64
	buckets []*idBucket
}

type idBucket struct {
	file *os.File
	w    *bufio.Writer
}

// Duplicate is an id that was added at two places.
type Duplicate struct{ First, Second uint64 }

// NewIDSet returns an empty set. It has to be closed.
func NewIDSet() *IDSet { return newIDSet(idsInMemory) }

func newIDSet(most int) *IDSet { return &IDSet{most: most, places: map[[16]byte]uint64{}} }

// Add adds an id; place is the caller's, such as a line number, and grows from call to
// call. It reports a duplicate at once while the set is small, with the place of the
// first; later ones come from [IDSet.Duplicates].
func (s *IDSet) Add(id string, place uint64) (first uint64, duplicate bool, err error) {
	sum := sha256.Sum256([]byte(id))
	hash := [16]byte(sum[:16])
	if s.buckets != nil {
		return 0, false, s.spill(hash, place)
	}
	if first, ok := s.places[hash]; ok {
		return first, true, nil
	}
	s.places[hash] = place
	if len(s.places) < s.most {
		return 0, false, nil
	}
	return 0, false, s.moveToDisk()
}

func (s *IDSet) moveToDisk() error {
	for range idBuckets {
		f, err := os.CreateTemp("", "tidemill-ids-*")
		if err != nil {
			return err
		}
		s.buckets = append(s.buckets, &idBucket{file: f, w: bufio.NewWriterSize(f, 8<<10)})
		_ = os.Remove(f.Name()) // it lives as long as it is open; Close tries again
	}
	for hash, place := range s.places {
		if err := s.spill(hash, place); err != nil {
			return err
		}
	}
	s.places = nil
	return nil
}

func (s *IDSet) spill(hash [16]byte, place uint64) error {
	var record [idRecord]byte
	copy(record[:], hash[:])
	binary.BigEndian.PutUint64(record[16:], place)
	_, err := s.buckets[hash[0]%idBuckets].w.Write(record[:])
	return err
}

// Duplicates returns up to most duplicates that [IDSet.Add] could not report, in the
// order of their second places.
func (s *IDSet) Duplicates(most int) ([]Duplicate, error) {
	var found []Duplicate
	for _, b := range s.buckets {
		if err := b.w.Flush(); err != nil {
			return nil, err
		}
		if _, err := b.file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		data, err := io.ReadAll(b.file)
		if err != nil {
			return nil, err
		}
		records := slices.Collect(slices.Chunk(data, idRecord))
		// Places are big-endian, so the bytes of a record order by id, then place.
		slices.SortFunc(records, bytes.Compare)
		first := 0
		for i := 1; i < len(records); i++ {
			if !bytes.Equal(records[i][:16], records[first][:16]) {
				first = i
				continue
			}
			found = append(found, Duplicate{
				binary.BigEndian.Uint64(records[first][16:]), binary.BigEndian.Uint64(records[i][16:]),
			})
		}
		// Cut from time to time, so that a file of equal ids needs no more memory.
		found = firstDuplicates(found, most)
	}
	return found, nil
}

func firstDuplicates(found []Duplicate, most int) []Duplicate {
	slices.SortFunc(found, func(a, b Duplicate) int {
		return cmp.Or(cmp.Compare(a.Second, b.Second), cmp.Compare(a.First, b.First))
	})
	return found[:min(len(found), most)]
}

// Close removes the temporary files.
func (s *IDSet) Close() error {
	var errs []error
	for _, b := range s.buckets {
		errs = append(errs, b.file.Close())
		if err := os.Remove(b.file.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	s.buckets, s.places = nil, map[[16]byte]uint64{}
	return errors.Join(errs...)
}
