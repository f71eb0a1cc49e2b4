// SPDX-License-Identifier: Apache-2.0

package s3store

import "context"

// buffers lends memory for parts: so much at once and no more, whoever asks.
type buffers struct {
	size   int64
	places chan struct{}
	used   chan []byte // given back, to be lent again
}

func newBuffers(n int, size int64) *buffers {
	return &buffers{size: size, places: make(chan struct{}, n), used: make(chan []byte, n)}
}

// take waits for a buffer, which must be given back.
func (b *buffers) take(ctx context.Context) ([]byte, error) {
	select {
	case b.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case buf := <-b.used:
		return buf, nil
	default:
		return make([]byte, b.size), nil
	}
}

func (b *buffers) give(buf []byte) {
	b.used <- buf
	<-b.places
}
