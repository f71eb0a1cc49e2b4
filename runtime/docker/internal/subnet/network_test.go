// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/tidemill/tidemill/runtime"
)

func TestCreateTakesTheNextSubnetWhenAnotherProcessWasQuicker(t *testing.T) {
	for range 8 { // wherever the pool begins
		f := &fakeEngine{hidden: []netip.Prefix{netip.MustParsePrefix("10.213.0.0/27"), netip.MustParsePrefix("10.213.0.40/29")}}
		p := pool(t, f)
		n, err := p.Create(t.Context(), "trial", nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n.Subnet.Overlaps(f.hidden[0]) || n.Subnet.Overlaps(f.hidden[1]) {
			t.Errorf("subnet %s is another's", n.Subnet)
		}
		if free := p.Free(); free != 7 {
			t.Errorf("free %d, want 7: what was refused isn't ours", free)
		}
	}
}

func TestCreateEndsWhenTheEngineRefusesEverything(t *testing.T) {
	f := &fakeEngine{hidden: []netip.Prefix{netip.MustParsePrefix("10.213.0.0/16")}}
	p := pool(t, f)
	_, err := p.Create(t.Context(), "trial", nil, Options{})
	if !errors.Is(err, runtime.ErrCapacity) || !strings.Contains(err.Error(), "Pool overlaps") {
		t.Errorf("%v, want ErrCapacity and what the engine said", err)
	}
	if f.creates != refusals || p.Free() != 8 {
		t.Errorf("%d requests, want %d; free %d, want 8", f.creates, refusals, p.Free())
	}
}

func TestCreateOfATakenName(t *testing.T) {
	f := &fakeEngine{}
	owner := f.add("trial", "172.20.0.0/16")
	p := pool(t, f)
	_, err := p.Create(t.Context(), "trial", nil, Options{})
	var conflict *runtime.ConflictError
	if !errors.As(err, &conflict) || conflict.Owner.ID != owner || conflict.Name != "trial" {
		t.Errorf("%v, want a conflict with %s", err, owner)
	}
	if len(f.networks) != 1 || p.Free() != 8 {
		t.Errorf("networks %v, free %d: want the owner's alone and 8", f.networks, p.Free())
	}
}

func TestAFailedCreateLeavesNothing(t *testing.T) {
	lost := errors.New("connection reset")
	canceled := errors.New("nobody wants it")
	for _, c := range []struct {
		name string
		set  func(f *fakeEngine, cancel context.CancelCauseFunc)
		want error
	}{
		{"the answer is lost", func(f *fakeEngine, _ context.CancelCauseFunc) { f.lost = lost }, lost},
		{"cancelled in the middle", func(f *fakeEngine, cancel context.CancelCauseFunc) {
			f.during = func() { cancel(canceled) }
		}, canceled},
		{"both", func(f *fakeEngine, cancel context.CancelCauseFunc) {
			f.lost, f.during = lost, func() { cancel(canceled) }
		}, lost},
		{"cancelled before", func(_ *fakeEngine, cancel context.CancelCauseFunc) { cancel(canceled) }, canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeEngine{}
			f.add("another", "172.20.0.0/16")
			p := pool(t, f)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			c.set(f, cancel)
			n, err := p.Create(ctx, "trial", map[string]string{"l": "v"}, Options{})
			if n != nil || !errors.Is(err, c.want) {
				t.Errorf("%v, %v; want %v", n, err, c.want)
			}
			if len(f.networks) != 1 || f.networks[0].Name != "another" {
				t.Errorf("networks left: %v", f.networks)
			}
			if p.Free() != 8 && c.name != "cancelled before" { // which never looked
				t.Errorf("free %d, want 8", p.Free())
			}
		})
	}
}

func TestASubnetStaysTakenWhenItsNetworkMayBeThere(t *testing.T) {
	f := &fakeEngine{lost: errors.New("connection reset"), stuck: errors.New("stuck")}
	p := pool(t, f)
	_, err := p.Create(t.Context(), "trial", nil, Options{})
	if !errors.Is(err, f.lost) || !errors.Is(err, f.stuck) {
		t.Errorf("%v, want both errors", err)
	}
	if p.Free() != 7 {
		t.Errorf("free %d, want 7", p.Free())
	}

	f.lost = nil
	n, err := p.Create(t.Context(), "trial-2", nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(t.Context(), n); !errors.Is(err, f.stuck) || p.Free() != 6 {
		t.Errorf("remove: %v; free %d, want 6", err, p.Free())
	}
	f.stuck = nil
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if err := p.Remove(ended, n); err != nil || p.Free() != 7 {
			t.Errorf("remove: %v; free %d, want 7", err, p.Free())
		}
	}
}

func TestNoMoreThanTwoRequestsAreWithTheEngine(t *testing.T) {
	f := &fakeEngine{}
	both := make(chan struct{})
	var once sync.Once
	f.during = func() {
		f.mu.Lock()
		two := f.now == parallel
		f.mu.Unlock()
		if two {
			once.Do(func() { close(both) })
		}
		<-both // the first waits for a second
	}
	p := pool(t, f)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := p.Create(t.Context(), fmt.Sprintf("trial-%d", i), nil, Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if f.max != parallel {
		t.Errorf("%d requests at once, want %d", f.max, parallel)
	}
	subnets := map[string]bool{}
	for _, n := range f.networks {
		subnets[n.IPAM.Config[0].Subnet] = true
	}
	if len(subnets) != 8 {
		t.Errorf("%d different subnets, want 8", len(subnets))
	}
}

func TestBridge(t *testing.T) {
	trial := "0123456789abcdef0123456789abcdef"
	for _, kind := range []Kind{Inner, Egress} {
		a, b := Bridge(kind, trial), Bridge(kind, Name(trial, "proxy"))
		if len(a) != 15 || !strings.HasPrefix(a, string(kind)) || a == b || a != Bridge(kind, trial) {
			t.Errorf("bridges %q and %q: want 15 characters, one for each name", a, b)
		}
	}
	if Name(trial, "") != trial || Name(trial, "proxy") != trial+"-proxy" {
		t.Error("a network is called like its trial, with a word behind it")
	}
}

func TestCreateRefusesABadName(t *testing.T) {
	f := &fakeEngine{}
	if _, err := pool(t, f).Create(t.Context(), "a b", nil, Options{}); err == nil || f.creates != 0 {
		t.Errorf("%v, %d requests; want an error and none", err, f.creates)
	}
}
