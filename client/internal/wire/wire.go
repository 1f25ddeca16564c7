// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire says what a client and a node write to each other of a request: how the machine's requests
// become messages, and a node's outcomes its own.
package wire

import (
	"time"

	"github.com/quorate/quorate/client/internal/broker"
	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
)

const (
	// FrameBytes is after how many bytes a message of requests is closed.
	FrameBytes = 64 << 10

	// wayBack is taken from what is left of a request's time, a wayBackPart of it at most, so that the node
	// can say what has become of the request before nobody waits any more.
	wayBack     = 20 * time.Millisecond
	wayBackPart = 8
)

// Requests copies what goes on the wire: a request may be over before it is written.
func Requests(taken []*broker.Request, now broker.Instant) []*clientv1.Request {
	values := make([]clientv1.Request, len(taken))
	all := make([]*clientv1.Request, len(taken))
	for i, r := range taken {
		m := &values[i]
		m.Id, m.Kind, m.Entity, m.Payload, m.Tell, m.Traceparent = r.ID, r.Kind, r.Entity, r.Payload, r.Tell, r.Trace
		left := time.Duration(r.Deadline - now)
		m.TimeoutMicros = uint64(max((left - min(wayBack, left/wayBackPart)).Microseconds(), 1)) // Above zero.
		all[i] = m
	}
	return all
}

// Outcome is an outcome for the machine. A code that this version does not know says nothing about what
// became of the message.
func Outcome(o *clientv1.Outcome) broker.Outcome {
	out := broker.Outcome{ID: o.GetId(), Result: broker.Result{Code: broker.UnknownOutcome, Payload: o.GetPayload(), Detail: o.GetDetail()}}
	if c := o.GetCode(); c >= clientv1.Code_CODE_OK && c <= clientv1.Code_CODE_UNKNOWN_KIND {
		out.Code = broker.Code(c)
	}
	if p := o.GetPlace(); p != nil {
		out.Shard, out.Shards, out.Node = int(p.GetShard()), int(p.GetShards()), p.GetNode()
	}
	return out
}
