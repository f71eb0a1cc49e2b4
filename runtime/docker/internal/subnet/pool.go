// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"

	"github.com/docker/docker/api/types/network"

	"github.com/tidemill/tidemill/runtime"
)

// API is what a pool needs of the engine's client.
type API interface {
	NetworkCreate(ctx context.Context, name string, options network.CreateOptions) (network.CreateResponse, error)
	NetworkList(ctx context.Context, options network.ListOptions) ([]network.Summary, error)
	NetworkRemove(ctx context.Context, id string) error
}

// Pool hands out subnets. Its methods may be called from many goroutines at once.
type Pool struct {
	api    API
	cfg    Config
	routes func() ([]netip.Prefix, error)
	// gate has room for as many requests as may be with the engine.
	gate chan struct{}

	mu       sync.Mutex
	reserved []bool
	engine   []bool // overlaps a network of the engine, at the last look
	host     []bool // overlaps a route of the host, at the last look
	next     int
}

// ExhaustedError says that every subnet is taken. It is [runtime.ErrCapacity]: one is
// free again when a network is removed.
type ExhaustedError struct {
	Range    netip.Prefix
	Bits     int
	Subnets  int // of the range
	Reserved int // by this process
	Engine   int // of the others: taken by networks of the engine
	Host     int // of the others: taken by routes of the host
}

func (e *ExhaustedError) Error() string {
	msg := fmt.Sprintf("no subnet left: of %d subnets of /%d in %s this process uses %d, other networks of the engine %d, and routes of the host %d",
		e.Subnets, e.Bits, e.Range, e.Reserved, e.Engine, e.Host)
	if e.Host == e.Subnets {
		msg += "; choose another range"
	}
	return msg
}

// Unwrap returns [runtime.ErrCapacity].
func (*ExhaustedError) Unwrap() error { return runtime.ErrCapacity }

// parallel is how many requests for networks are with the engine at once: while it works
// on one the next is there already, and more gains nothing.
const parallel = 2

// New makes a pool. It asks nobody anything yet.
func New(api API, cfg Config) (*Pool, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := 1 << (cfg.Bits - cfg.Range.Bits())
	return &Pool{
		api: api, cfg: cfg, routes: hostRoutes, gate: make(chan struct{}, parallel),
		reserved: make([]bool, n), engine: make([]bool, n), host: make([]bool, n),
		// Processes that begin in different places meet late.
		next: rand.IntN(n),
	}, nil
}

// Look asks the engine for its networks and the host for its routes.
func (p *Pool) Look(ctx context.Context) error {
	routes, err := p.routes()
	if err != nil {
		return fmt.Errorf("read the host's routes: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.Timeout, fmt.Errorf("the engine didn't list its networks within %v", p.cfg.Timeout))
	defer cancel()
	networks, err := p.api.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("list the engine's networks: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.engine)
	clear(p.host)
	for _, r := range routes {
		p.mark(p.host, r)
	}
	for _, n := range networks {
		for _, c := range n.IPAM.Config {
			if subnet, err := netip.ParsePrefix(c.Subnet); err == nil {
				p.mark(p.engine, subnet)
			}
		}
	}
	return nil
}

// mark marks every subnet that overlaps the prefix.
func (p *Pool) mark(set []bool, prefix netip.Prefix) {
	if !prefix.Overlaps(p.cfg.Range) {
		return
	}
	first, last := 0, len(set)-1
	if prefix.Bits() > p.cfg.Range.Bits() {
		first = int((number(prefix.Masked().Addr()) - number(p.cfg.Range.Addr())) >> (32 - p.cfg.Bits))
		last = first
		if prefix.Bits() < p.cfg.Bits {
			last += 1<<(p.cfg.Bits-prefix.Bits()) - 1
		}
	}
	for i := first; i <= last; i++ {
		set[i] = true
	}
}

func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func (p *Pool) subnet(i int) netip.Prefix {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], number(p.cfg.Range.Addr())+uint32(i)<<(32-p.cfg.Bits))
	return netip.PrefixFrom(netip.AddrFrom4(b), p.cfg.Bits)
}

// Reserve looks and takes a subnet that overlaps nothing that was seen. Nobody else in
// this process gets it before release, which may be called more than once. When there is
// none the error is an [ExhaustedError].
func (p *Pool) Reserve(ctx context.Context) (subnet netip.Prefix, release func(), err error) {
	if err := p.Look(ctx); err != nil {
		return netip.Prefix{}, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for range p.reserved {
		i := p.next
		p.next = (p.next + 1) % len(p.reserved)
		if p.reserved[i] || p.engine[i] || p.host[i] {
			continue
		}
		p.reserved[i] = true
		return p.subnet(i), sync.OnceFunc(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.reserved[i] = false
			p.engine[i], p.host[i] = false, false // what was seen was ours
		}), nil
	}
	return netip.Prefix{}, nil, p.exhausted()
}

// exhausted counts who has what. A network of the engine has a route too, mostly, and
// is counted as a network.
func (p *Pool) exhausted() *ExhaustedError {
	e := &ExhaustedError{Range: p.cfg.Range, Bits: p.cfg.Bits, Subnets: len(p.reserved)}
	for i := range p.reserved {
		switch {
		case p.reserved[i]:
			e.Reserved++
		case p.engine[i]:
			e.Engine++
		case p.host[i]:
			e.Host++
		}
	}
	return e
}

// Capacity is how many subnets there are for networks of the engine, ours and others',
// as of the last look: those of the range without what the host needs itself.
func (p *Pool) Capacity() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.exhausted()
	return e.Subnets - e.Host
}

// Free is how many of them nobody uses, as of the last look and what was reserved and
// released since.
func (p *Pool) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.exhausted()
	return e.Subnets - e.Host - e.Engine - e.Reserved
}
