// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// maxRecord bounds a record that is read: what is larger is not one of ours.
const maxRecord = 16 << 20

// VersionError says that a record was written by a newer version of this software.
type VersionError struct {
	Got   int // the record's
	Known int // the newest that this software reads
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("schema_version %d is newer than %d, the newest that this version reads: use a newer tidemill", e.Got, e.Known)
}

// EncodeRecord returns the one encoding of a record: JSON with keys in the order of
// the type, maps sorted, nothing escaped for HTML, and a newline at the end. The same
// record gives the same bytes.
func EncodeRecord(record any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(record); err != nil {
		return nil, fmt.Errorf("encode %T: %w", record, err)
	}
	return buf.Bytes(), nil
}

// DecodeRecord reads a record. Keys that T doesn't have are passed over; a
// schema_version above [SchemaVersion] is a [VersionError]; none at all means that it
// is no record.
func DecodeRecord[T any](body []byte) (T, error) {
	var record, none T
	var head struct {
		SchemaVersion *int `json:"schema_version"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return none, fmt.Errorf("not a record: %w", err)
	}
	switch {
	case head.SchemaVersion == nil || *head.SchemaVersion < 1:
		return none, fmt.Errorf("not a record: want a schema_version of 1 or more")
	case *head.SchemaVersion > SchemaVersion:
		return none, &VersionError{Got: *head.SchemaVersion, Known: SchemaVersion}
	}
	if err := json.Unmarshal(body, &record); err != nil {
		return none, fmt.Errorf("not a %T: %w", record, err)
	}
	return record, nil
}

// ReadRecord gets and decodes the record under a key.
func ReadRecord[T any](ctx context.Context, s Store, key string) (T, error) {
	var none T
	body, err := ReadObject(ctx, s, key, maxRecord)
	if err != nil {
		return none, err
	}
	record, err := DecodeRecord[T](body)
	if err != nil {
		return none, fmt.Errorf("%s: %w", key, err)
	}
	return record, nil
}

// CreateRecord writes a record if its key is absent, [ErrExists] otherwise.
func CreateRecord(ctx context.Context, s Store, key string, record any) error {
	body, err := EncodeRecord(record)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	_, err = s.Create(ctx, key, body)
	return err
}

// PutRecord writes a record, replacing what is there.
func PutRecord(ctx context.Context, s Store, key string, record any) error {
	body, err := EncodeRecord(record)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return s.Put(ctx, key, bytes.NewReader(body), int64(len(body)))
}

// ReadObject gets a whole object of at most limit bytes; a larger one is an error.
func ReadObject(ctx context.Context, s Store, key string, limit int64) ([]byte, error) {
	r, info, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if info.Size > limit {
		return nil, fmt.Errorf("%s: %d bytes, want at most %d", key, info.Size, limit)
	}
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", key, err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("%s: more than %d bytes", key, limit)
	}
	return body, nil
}
