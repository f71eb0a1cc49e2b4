// SPDX-License-Identifier: Apache-2.0

package s3store

import "context"

// buffers lends memory for parts: so much at once and no more, whoever asks.
type buffers struct {
	size int64
	free chan []byte // nil ones are made when they are first lent
}

func newBuffers(n int, size int64) *buffers {
	b := &buffers{size: size, free: make(chan []byte, n)}
	for range n {
		b.free <- nil
	}
	return b
}

// take waits for a buffer, which must be given back.
func (b *buffers) take(ctx context.Context) ([]byte, error) {
	select {
	case buf := <-b.free:
		if buf == nil {
			buf = make([]byte, b.size)
		}
		return buf, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *buffers) give(buf []byte) { b.free <- buf }
