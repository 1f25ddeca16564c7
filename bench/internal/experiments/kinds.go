// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
)

// kindNames are the messages of membership by their number on the wire, which
// is that of their field in quorate.membership.v1.Message.
func kindNames() []string {
	return []string{
		"other", "init-join", "init-join-ack", "init-join-nack", "join-request", "welcome", "join-refused", "heartbeat",
		"heartbeat-reply", "gossip-status", "gossip-delta", "gossip-state", "exiting-confirmed", "not-member",
	}
}

// kinds counts what nodes send by kind. It is safe for concurrent use.
type kinds struct{ messages, bytes [16]atomic.Uint64 }

// transport is the default transport with every sent message counted.
func (k *kinds) transport(id transport.Identity, cfg transport.Config, notices func(transport.Notice)) (transport.Transport, error) {
	t, err := grpc.New(id, cfg, grpc.WithNotices(notices))
	if err != nil {
		return nil, err
	}
	return countingTransport{t, k}, nil
}

// String lists how many messages of each kind there were, and their bytes.
func (k *kinds) String() string {
	var parts []string
	for kind, name := range kindNames() {
		if n := k.messages[kind].Load(); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s of %d B", n, name, k.bytes[kind].Load()/n))
		}
	}
	return strings.Join(parts, ", ")
}

func (k *kinds) count(s transport.Service, message []byte) {
	kind := 0
	if tag, n := binary.Uvarint(message); s == component.ServiceMembership && n > 0 && tag>>3 < uint64(len(kindNames())) {
		kind = int(tag >> 3)
	}
	k.messages[kind].Add(1)
	k.bytes[kind].Add(uint64(len(message)))
}

// countingTransport is a transport that counts messages by kind.
type countingTransport struct {
	transport.Transport

	kinds *kinds
}

// Lane returns a lane that counts.
func (c countingTransport) Lane(to gossip.NodeID, kind transport.LaneClass) transport.Lane {
	return countingLane{c.Transport.Lane(to, kind), c.kinds}
}

var _ transport.Answerer = countingTransport{}

// Answer counts the messages that go with receipts.
func (c countingTransport) Answer(to gossip.NodeID, kind transport.LaneClass, s transport.Service, encode func([]byte) []byte) bool {
	var message []byte
	sent := c.Transport.(transport.Answerer).Answer(to, kind, s, func(dst []byte) []byte { // It is the transport over gRPC.
		out := encode(dst)
		message = append(message, out[len(dst):]...)
		return out
	})
	if sent {
		c.kinds.count(s, message)
	}
	return sent
}

type countingLane struct {
	transport.Lane

	kinds *kinds
}

// Append counts what is appended.
func (l countingLane) Append(s transport.Service, encode func([]byte) []byte) error {
	return l.Lane.Append(s, func(dst []byte) []byte {
		out := encode(dst)
		if len(out) > len(dst) {
			l.kinds.count(s, out[len(dst):])
		}
		return out
	})
}
