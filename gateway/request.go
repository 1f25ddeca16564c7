// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
	"github.com/quorate/quorate/gateway/internal/exchange"
	"github.com/quorate/quorate/sharding"
)

// A request, from begin to its outcome: begin counts it and hands it to sharding; codeOf says what an error means
// for a client; settle takes it out of the counts when its outcome is written, or is for nobody. Ask and Tell
// are the calls with one request.

// maxDetailBytes bounds the text of an outcome.
const maxDetailBytes = 1000

// outcome is what became of a request, until it is written.
type outcome struct {
	id    uint64
	name  string            // Of the entity.
	bytes int64             // Of the message, which were counted.
	way   *sharding.Encoded // Nil if the request was not handed on.
	ask   sharding.Answer   // Of an ask that was handed on, if asked.
	asked bool
	code  clientv1.Code // Of all others.
	text  string
}

// begin hands a request on, and calls put once with its outcome, on any goroutine. If there is no room for the request
// at present, the caller calls the function that begin returns on a goroutine of its own.
func (s *Server) begin(ctx context.Context, r *clientv1.Request, put func(outcome)) (wait func()) {
	o := outcome{id: r.GetId(), name: r.GetEntity(), bytes: int64(len(r.GetPayload()))}
	requests, bytes := s.counters.requests.Add(1), s.counters.bytes.Add(o.bytes)
	refuse := func(code clientv1.Code, text string) func() {
		o.code, o.text = code, text
		put(o)
		return nil
	}
	switch {
	case s.ending():
		return refuse(clientv1.Code_CODE_NOT_DELIVERED, "the node ends")
	case exchange.Limits{Requests: s.cfg.MaxRequests, Bytes: s.cfg.MaxBytes}.Reached(requests, bytes):
		s.counters.overloaded.Add(1)
		s.log.WarnContext(ctx, "the gateway has as many requests under way as it takes: raise gateway.max-requests or max-bytes", "requests", requests, "bytes", bytes)
		return refuse(clientv1.Code_CODE_OVERLOADED, "the node has as many requests of clients as it takes")
	}
	if o.way = s.way(r.GetKind()); o.way == nil {
		return refuse(clientv1.Code_CODE_UNKNOWN_KIND, "the node does not run the kind, or does not show it to clients")
	}
	deadline := time.Now().Add(exchange.Left(r))
	if r.GetTell() {
		return o.way.Tell(ctx, r.GetEntity(), r.GetPayload(), deadline, r.GetTraceparent(), func(err error) {
			o.code, o.text = codeOf(err)
			put(o)
		})
	}
	return o.way.Ask(ctx, r.GetEntity(), r.GetPayload(), deadline, r.GetTraceparent(), func(a sharding.Answer) {
		o.ask, o.asked = a, true
		put(o)
	})
}

// way returns the way to the entities of a kind; nil if clients may not reach it, or it does not run here.
func (s *Server) way(kind string) *sharding.Encoded {
	if !slices.Contains(s.cfg.Kinds, kind) && s.cfg.Kinds[0] != All {
		return nil
	}
	return sharding.EncodedOf(s.host, kind)
}

// settle counts requests as done.
func (s *Server) settle(done ...outcome) {
	for i := range done {
		s.counters.requests.Add(-1)
		s.counters.bytes.Add(-done[i].bytes)
		s.counters.answered.Add(1)
	}
}

// fill writes the outcome into a message.
func (o *outcome) fill(v *clientv1.Outcome) {
	v.Id, v.Code, v.Detail = o.id, o.code, o.text
	if o.asked {
		payload, err := o.ask.Append(nil)
		v.Payload = payload
		v.Code, v.Detail = codeOf(err)
	}
	if o.way == nil {
		return
	}
	if p, elsewhere := o.way.Elsewhere(o.name); elsewhere {
		v.Place = &clientv1.Place{Shard: uint32(p.Shard), Shards: uint32(p.Shards), Node: p.Home.Address.String()}
	}
}

// codeOf returns what an error of sharding means for a client. The first sentinel counts that says
// something of the message; ErrNotDelivered goes with several of them.
func codeOf(err error) (clientv1.Code, string) {
	if err == nil {
		return clientv1.Code_CODE_OK, ""
	}
	for _, c := range []struct {
		err  error
		code clientv1.Code
	}{
		{sharding.ErrInvalid, clientv1.Code_CODE_INVALID},
		{sharding.ErrUnknownOutcome, clientv1.Code_CODE_UNKNOWN_OUTCOME},
		{sharding.ErrEntityFailed, clientv1.Code_CODE_ENTITY_FAILED},
		{sharding.ErrExpired, clientv1.Code_CODE_EXPIRED},
		{sharding.ErrOverloaded, clientv1.Code_CODE_OVERLOADED},
		{sharding.ErrNoStanding, clientv1.Code_CODE_NO_STANDING},
		{sharding.ErrUnreachable, clientv1.Code_CODE_UNREACHABLE},
		{sharding.ErrNotDelivered, clientv1.Code_CODE_NOT_DELIVERED},
	} {
		if errors.Is(err, c.err) {
			return c.code, detailOf(err)
		}
	}
	return clientv1.Code_CODE_UNKNOWN_OUTCOME, detailOf(err)
}

// detailOf returns the text of an error as it can travel.
func detailOf(err error) string {
	text := err.Error()
	if m, ok := errors.AsType[*sharding.MessageError](err); ok && m.Detail != "" {
		text = m.Detail
	}
	if len(text) > maxDetailBytes {
		text = text[:maxDetailBytes]
	}
	return strings.ToValidUTF8(text, "?")
}

// one takes one request, and waits for its outcome.
func (s *Server) one(ctx context.Context, r *clientv1.Request, tell bool) (*clientv1.Outcome, error) {
	s.counters.calls.Add(1)
	defer s.counters.calls.Add(-1)
	r.Tell = tell
	if deadline, ok := ctx.Deadline(); ok {
		left := uint64(max(time.Until(deadline).Microseconds(), 1)) // Above zero.
		if r.GetTimeoutMicros() == 0 || left < r.GetTimeoutMicros() {
			r.TimeoutMicros = left
		}
	}
	var state atomic.Uint32 // Who was first: the outcome, or the end of the call.
	const came, left = 1, 2
	done := make(chan outcome, 1)
	wait := s.begin(ctx, r, func(o outcome) {
		if state.CompareAndSwap(0, came) {
			done <- o
			return
		}
		s.settle(o) // It is for nobody any more.
	})
	if wait != nil {
		wait()
	}
	var ended error
	select {
	case o := <-done:
		return s.outcomeOf(o), nil
	case <-ctx.Done():
		ended = ctx.Err()
	case <-s.ctx.Done():
		ended = errEnding
	}
	if !state.CompareAndSwap(0, left) {
		return s.outcomeOf(<-done), nil
	}
	return nil, ended
}

func (s *Server) outcomeOf(o outcome) *clientv1.Outcome {
	v := new(clientv1.Outcome)
	o.fill(v)
	s.settle(o)
	return v
}
