// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
)

// lane is the handle that users hold. Append looks up its queue and remembers it,
// unless the lane has no uid: then the queue depends on which node answers at the
// address.
type lane struct {
	e      *Endpoint
	to     gossip.NodeID
	class  transport.LaneClass
	cached atomic.Pointer[outbound]
}

var _ transport.Lane = (*lane)(nil)

// Append implements [transport.Lane].
func (l *lane) Append(s transport.Service, encode func([]byte) []byte) error {
	_, _, err := l.Track(s, encode)
	return err
}

// Track implements [transport.Lane].
func (l *lane) Track(s transport.Service, encode func([]byte) []byte) (transport.Passage, uint64, error) {
	if s == 0 {
		return nil, 0, errService
	}
	for {
		o, err := l.outbound(true)
		if err != nil {
			return nil, 0, err
		}
		place, err := o.append(s, encode)
		if !errors.Is(err, errOver) {
			return &o.queue, place, err
		}
		l.cached.CompareAndSwap(o, nil)
	}
}

// Defer implements [transport.Lane].
func (l *lane) Defer(f func()) bool {
	for {
		o, err := l.outbound(true)
		if err != nil {
			return false // Append says the same.
		}
		postponed, err := o.postpone(f)
		if err == nil {
			return postponed
		}
		l.cached.CompareAndSwap(o, nil)
	}
}

// Room implements [transport.Lane].
func (l *lane) Room(ctx context.Context) error {
	o, err := l.outbound(false)
	if _, ok := errors.AsType[*transport.RefusedError](err); ok {
		return nil // Append returns this refusal for good: there is nothing to wait for.
	}
	if o == nil {
		return err
	}
	if err := o.waitRoom(ctx); err != nil {
		return err
	}
	if l.e.closing.Load() {
		return transport.ErrClosed
	}
	return nil
}

func (l *lane) outbound(create bool) (*outbound, error) {
	if l.e.closing.Load() {
		return nil, transport.ErrClosed
	}
	if o := l.cached.Load(); o != nil {
		return o, nil
	}
	if l.to.Address.IsZero() || l.to.UID == 0 && l.class != machine.LaneControl {
		return nil, transport.ErrUnnamed
	}
	o, err := l.e.outboundFor(l.to, l.class, create)
	if o != nil && l.to.UID != 0 {
		l.cached.Store(o)
	}
	return o, err
}
