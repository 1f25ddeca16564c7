// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// What the instruments count besides the machine: messages by type ([metrics.passed]),
// the round trips of heartbeats ([beats]), losses of standing ([lapses]), calls of
// strategies ([metrics.call]).

// tallyKey identifies a counter of messages.
type tallyKey struct {
	component, direction string
	of                   reflect.Type
}

// tally counts messages of one type in one direction. There are as many tallies as the
// components have types of messages.
type tally struct {
	name            string
	messages, bytes atomic.Uint64
}

// passed counts one message of a component.
func (m *metrics) passed(component, direction string, message any, size int) {
	key := tallyKey{component, direction, reflect.TypeOf(message)}
	t, ok := m.traffic.Load(key)
	if !ok {
		t, _ = m.traffic.LoadOrStore(key, &tally{name: hyphenated(key.of.Name())})
	}
	t.(*tally).messages.Add(1)
	t.(*tally).bytes.Add(uint64(size))
}

// sent counts a message that a lane has taken, and notes when a round of
// heartbeats began.
func (m *metrics) sent(component string, message any, size int) {
	m.passed(component, meter.Transmit, message, size)
	if sequence := asks(message); sequence != 0 && m.roundTrip.Enabled(m.node.life.ctx) {
		m.beats.begun(sequence, m.node.clock.Instant())
	}
}

// asks returns the number of the heartbeat that a message is, or brings with an answer; 0:
// none.
func asks(message any) uint64 {
	switch message := message.(type) {
	case protocol.Heartbeat:
		return message.Sequence
	case protocol.HeartbeatReply:
		return message.Question.Sequence
	}
	return 0
}

// hyphenated turns "GossipStatus" into "gossip-status".
func hyphenated(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// meteredCodec is the codec of a component that counts received messages. Sent messages are
// counted when a lane has taken them.
type meteredCodec struct {
	machine.Codec

	component string
	metrics   *metrics
}

// Decode decodes a message and counts it.
func (c meteredCodec) Decode(b []byte) (any, error) {
	message, err := c.Codec.Decode(b)
	if err != nil {
		return nil, err
	}
	m := c.metrics
	m.passed(c.component, meter.Receive, message, len(b))
	if reply, ok := message.(protocol.HeartbeatReply); ok && reply.Known && m.roundTrip.Enabled(m.node.life.ctx) {
		now := m.node.clock.Instant()
		if at, known := m.beats.at(reply.Sequence); known {
			m.roundTrip.Record(m.node.life.ctx, now.Sub(at).Seconds())
		}
	}
	return message, nil
}

// heartbeats remembers when the last rounds of heartbeats began. An answer to an older round
// says nothing about round trips.
type heartbeats struct {
	mu   sync.Mutex
	last [64]struct {
		sequence uint64
		at       machine.Instant
	}
}

// begun notes when a round began: with the first of its heartbeats.
func (b *heartbeats) begun(sequence uint64, at machine.Instant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := &b.last[sequence%uint64(len(b.last))]; r.sequence != sequence {
		r.sequence, r.at = sequence, at
	}
}

// at returns when a round began, if it is remembered.
func (b *heartbeats) at(sequence uint64) (machine.Instant, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.last[sequence%uint64(len(b.last))]
	return r.at, sequence != 0 && r.sequence == sequence
}

// lapseCounter counts how often the standing was lost. That a standing has run out is noticed
// by the next proof of standing, or by the next collection.
type lapseCounter struct {
	mu    sync.Mutex
	until machine.Instant // When the standing that is not known to be lost runs out; 0 if there is none.
	n     uint64
}

// moved takes a new end of the standing. A standing that is given up in order is not
// lost.
func (l *lapseCounter) moved(now machine.Instant, e component.Standing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(now)
	until := e.Until
	if until < now {
		until = 0
	}
	if until == 0 && l.until != 0 && !e.Dropped {
		l.n++
	}
	l.until = until
}

// count returns how often the standing was lost.
func (l *lapseCounter) count(now machine.Instant) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(now)
	return l.n
}

func (l *lapseCounter) look(now machine.Instant) {
	if l.until != 0 && now > l.until {
		l.until = 0
		l.n++
	}
}

// call measures one call of a strategy.
func (m *metrics) call(ctx context.Context, port string, f func() (any, error)) (any, error) {
	if !m.calls.Enabled(ctx) {
		return f()
	}
	began := m.node.clock.Instant()
	result, err := f()
	attrs := []attribute.KeyValue{attrStrategy.String(port)}
	if err != nil {
		attrs = append(attrs, meter.Fault.String(faultOf(err)))
	}
	m.calls.Record(ctx, m.node.clock.Instant().Sub(began).Seconds(), metric.WithAttributes(attrs...))
	return result, err
}

// faultOf returns one of three words for an error of a strategy.
func faultOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return "failed"
	}
}
