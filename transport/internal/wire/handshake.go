// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/transport"
)

// The handshake, by tables of the fields: the opener's Hello, the acceptor's Welcome or refusal. The tables call Fail
// for what they read alone, so that nothing fails that is appended.

const (
	// maxHandshake bounds a handshake message before it is decoded, with ample
	// room for fields of later versions.
	maxHandshake = 16 << 10

	maxName   = 255
	maxDetail = 1024
)

// Token is a secret by which a node tells the connections of one process of another
// node from those of other processes. The zero Token is none.
type Token [16]byte

// Hello is the opener's half of the handshake.
type Hello struct {
	Cluster   string
	ClusterID gossip.ClusterID
	Protocol  gossip.ProtocolRange
	From, To  gossip.NodeID
	Lane      machine.Lane
	Session   uint64
	Resumed   bool
	MaxFrame  uint64
	Token     Token // The token of the opener's process; set when Session is.
	Asked     Token // Without a session: a token, asked whether it is of the addressed process.
	Answers   bool  // With a session: the opener takes messages that come with receipts.
}

// Welcome is the acceptor's half of the handshake.
type Welcome struct {
	Node         gossip.NodeID
	Protocol     uint16
	Known        bool
	Acknowledged uint64
	Own          bool // The token in Hello.Asked is of the acceptor's process.
	Answers      bool // The acceptor takes messages outside of the frames.
}

// AppendHello appends an Upstream message with h.
func AppendHello(dst []byte, h Hello) []byte {
	dst, _ = wire.Append(dst, &upstream{hello: &h}, (*upstream).fields)
	return dst
}

// ParseHello decodes and checks an Upstream message that is a Hello.
func ParseHello(b []byte) (Hello, error) {
	var u upstream
	if err := read(b, &u, (*upstream).fields); err != nil {
		return Hello{}, err
	}
	if u.hello == nil {
		return Hello{}, errNoHello
	}
	return *u.hello, nil
}

var errNoHello = wire.Malformed("the first message is not a Hello alone")

// upstream is an Upstream message that is the first one of its stream, or follows a Hello without a session.
type upstream struct{ hello *Hello }

func (u *upstream) fields(c *wire.Codec) {
	wire.Optional(c, fieldHello, &u.hello, (*Hello).fields, (*Hello).validate)
	for _, beside := range []wire.Number{fieldNumber, fieldEnvelopes, fieldSaid} {
		if c.Reading() && c.At(beside) {
			c.Fail(errNoHello)
		}
	}
}

func (h *Hello) fields(c *wire.Codec) {
	wire.Text(c, 1, &h.Cluster, maxName)
	wire.Int(c, 2, &h.ClusterID.Born, math.MaxUint64)
	wire.Fixed(c, 3, &h.ClusterID.Nonce)
	wire.Uint(c, 4, &h.Protocol.Min, math.MaxUint16)
	wire.Uint(c, 5, &h.Protocol.Max, math.MaxUint16)
	wire.Message(c, 6, &h.From, nodeFields)
	wire.Message(c, 7, &h.To, nodeFields)
	wire.Uint(c, 8, &h.Lane, uint64(machine.LaneBulk))
	wire.Uint(c, 9, &h.Session, math.MaxUint64)
	wire.Bool(c, 10, &h.Resumed)
	wire.Uint(c, 11, &h.MaxFrame, math.MaxUint64)
	h.Token.field(c, 12)
	h.Asked.field(c, 13)
	wire.Bool(c, 14, &h.Answers)
}

// validate returns what is wrong with a Hello that was read. The uid of the node that is meant may be unknown.
func (h *Hello) validate() error {
	switch {
	case h.Cluster == "":
		return wire.Malformed("a Hello without a cluster")
	case h.Protocol.Min == 0 || h.Protocol.Min > h.Protocol.Max:
		return wire.Malformed("protocol range %d to %d", h.Protocol.Min, h.Protocol.Max)
	case h.Lane < machine.LaneControl:
		return wire.Malformed("lane %d", h.Lane)
	case h.To.UID == 0 && h.Session != 0:
		return wire.Malformed("a session with nobody in particular")
	case h.Session != 0 && h.Asked != Token{}:
		return wire.Malformed("a session with a question")
	case h.Session != 0 && h.Token == Token{}:
		return wire.Malformed("a session without a token")
	}
	if err := h.From.Validate(); err != nil {
		return wire.Malformed("%w", err)
	}
	if err := h.To.Address.Validate(); err != nil {
		return wire.Malformed("%w", err)
	}
	return nil
}

// field is a row with a token, which is left out if it is zero.
func (t *Token) field(c *wire.Codec, n wire.Number) {
	var b []byte
	if *t != (Token{}) {
		b = t[:]
	}
	if wire.Data(c, n, &b, len(t)) {
		if len(b) != 0 && len(b) != len(t) {
			c.Fail(wire.Malformed("a token of %d bytes", len(b)))
		}
		*t = Token{}
		copy(t[:], b)
	}
}

// AppendWelcome appends a Downstream message with w.
func AppendWelcome(dst []byte, w Welcome) []byte {
	dst, _ = wire.Append(dst, &Downstream{Welcome: &w}, (*Downstream).fields)
	return dst
}

// AppendRefusal appends a Downstream message with the refusal that the node self
// expresses.
func AppendRefusal(dst []byte, self gossip.NodeID, r *transport.RefusedError) []byte {
	mine := *r
	mine.Peer = self
	dst, _ = wire.Append(dst, &Downstream{Refusal: &mine}, (*Downstream).fields)
	return dst
}

func (w *Welcome) fields(c *wire.Codec) {
	wire.Message(c, 1, &w.Node, nodeFields)
	wire.Uint(c, 2, &w.Protocol, math.MaxUint16)
	wire.Bool(c, 3, &w.Known)
	wire.Uint(c, 4, &w.Acknowledged, math.MaxUint64)
	wire.Bool(c, 5, &w.Own)
	wire.Bool(c, 6, &w.Answers)
}

// validate returns what is wrong with a Welcome that was read.
func (w *Welcome) validate() error {
	if w.Protocol == 0 {
		return wire.Malformed("a Welcome without a protocol version")
	}
	if err := w.Node.Validate(); err != nil {
		return wire.Malformed("%w", err)
	}
	return nil
}

// refusalFields is lenient: a refusal is a refusal, however much of it can be read. Its Peer is the name that the
// answering side gives itself, which proves nothing.
func refusalFields(r *transport.RefusedError, c *wire.Codec) {
	reason := uint64(r.Reason)
	if wire.Uint(c, 1, &reason, math.MaxUint64) && reason < uint64(transport.Reasons) {
		r.Reason = transport.Reason(reason)
	}
	wire.Row(c, 2, func(b []byte) []byte { return wire.AppendNode(b, 2, r.Peer) }, func(f *wire.Field) error {
		var peer gossip.NodeID
		if wire.SetNode(&peer, f) == nil {
			r.Peer = peer
		}
		return nil
	})
	detail := func(b []byte) []byte { return wire.AppendString(b, 3, wire.Clip(r.Detail, maxDetail)) }
	wire.Row(c, 3, detail, func(f *wire.Field) error {
		r.Detail = wire.Clip(string(f.Bytes), maxDetail)
		return nil
	})
	wire.Uint(c, 4, &r.Session, math.MaxUint64)
}

// nodeFields are those of the id of a node, of which whoever reads it decides whether it is valid.
func nodeFields(n *gossip.NodeID, c *wire.Codec) {
	wire.Text(c, 1, &n.Address.Host, maxName)
	wire.Uint(c, 2, &n.Address.Port, math.MaxUint16)
	wire.Fixed(c, 3, &n.UID)
}

// read reads a message that is no frame, if it is not too long for one.
func read[T any](b []byte, m *T, table func(*T, *wire.Codec)) error {
	if len(b) > maxHandshake {
		return wire.Malformed("handshake of %d bytes, at most %d", len(b), maxHandshake)
	}
	return wire.Read(b, m, table)
}
