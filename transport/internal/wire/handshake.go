// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/transport"
	pb "github.com/quorate/quorate/transport/internal/proto/quorate/transport/v1"
)

// The handshake, through generated protobuf structs: the opener's Hello, the
// acceptor's Welcome or refusal, each with a function that appends it and another that
// parses and checks it.

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
func AppendHello(dst []byte, h Hello) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(dst, &pb.Upstream{Hello: &pb.Hello{
		Cluster:       h.Cluster,
		Born:          h.ClusterID.Born,
		Nonce:         h.ClusterID.Nonce,
		ProtocolMin:   uint32(h.Protocol.Min),
		ProtocolMax:   uint32(h.Protocol.Max),
		From:          node(h.From),
		To:            node(h.To),
		Lane:          uint32(h.Lane),
		Session:       h.Session,
		Resumed:       h.Resumed,
		MaxFrameBytes: h.MaxFrame,
		Token:         h.Token.bytes(),
		Asked:         h.Asked.bytes(),
		TakesAnswers:  h.Answers,
	}})
}

// ParseHello decodes and checks an Upstream message that is a Hello.
func ParseHello(b []byte) (Hello, error) {
	var m pb.Upstream
	if err := unmarshal(b, &m); err != nil {
		return Hello{}, err
	}
	p := m.GetHello()
	switch {
	case p == nil || m.GetNumber() != 0 || len(m.GetEnvelopes()) != 0 || len(m.GetAnswers()) != 0:
		return Hello{}, wire.Malformed("the first message is not a Hello alone")
	case p.GetCluster() == "" || len(p.GetCluster()) > maxName:
		return Hello{}, wire.Malformed("cluster name of %d bytes", len(p.GetCluster()))
	case p.GetProtocolMin() == 0 || p.GetProtocolMax() > 1<<16-1 || p.GetProtocolMin() > p.GetProtocolMax():
		return Hello{}, wire.Malformed("protocol range %d to %d", p.GetProtocolMin(), p.GetProtocolMax())
	case p.GetLane() < uint32(machine.LaneControl) || p.GetLane() > uint32(machine.LaneBulk):
		return Hello{}, wire.Malformed("lane %d", p.GetLane())
	case p.GetTo().GetUid() == 0 && p.GetSession() != 0:
		return Hello{}, wire.Malformed("a session with nobody in particular")
	case p.GetSession() != 0 && len(p.GetAsked()) != 0:
		return Hello{}, wire.Malformed("a session with a question")
	}
	from, err := parseNode(p.GetFrom())
	if err != nil {
		return Hello{}, err
	}
	to, err := parseNode(p.GetTo())
	if err != nil {
		return Hello{}, err
	}
	if from.UID == 0 {
		return Hello{}, wire.Malformed("the sender has no uid")
	}
	token, err := parseToken(p.GetToken())
	if err != nil {
		return Hello{}, err
	}
	asked, err := parseToken(p.GetAsked())
	if err != nil {
		return Hello{}, err
	}
	if p.GetSession() != 0 && token == (Token{}) {
		return Hello{}, wire.Malformed("a session without a token")
	}
	return Hello{
		Cluster:   p.GetCluster(),
		Answers:   p.GetTakesAnswers(),
		ClusterID: gossip.ClusterID{Born: p.GetBorn(), Nonce: p.GetNonce()},
		Protocol:  gossip.ProtocolRange{Min: uint16(p.GetProtocolMin()), Max: uint16(p.GetProtocolMax())},
		From:      from,
		To:        to,
		Lane:      machine.Lane(p.GetLane()),
		Session:   p.GetSession(),
		Resumed:   p.GetResumed(),
		MaxFrame:  p.GetMaxFrameBytes(),
		Token:     token,
		Asked:     asked,
	}, nil
}

// bytes returns the token's bytes, and nil for the zero Token.
func (t *Token) bytes() []byte {
	if *t == (Token{}) {
		return nil
	}
	return t[:]
}

func parseToken(b []byte) (Token, error) {
	var t Token
	if len(b) != 0 && len(b) != len(t) {
		return t, wire.Malformed("a token of %d bytes", len(b))
	}
	copy(t[:], b)
	return t, nil
}

// AppendWelcome appends a Downstream message with w.
func AppendWelcome(dst []byte, w Welcome) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(dst, &pb.Downstream{Welcome: &pb.Welcome{
		Node:         node(w.Node),
		Protocol:     uint32(w.Protocol),
		Known:        w.Known,
		Acknowledged: w.Acknowledged,
		Own:          w.Own,
		TakesAnswers: w.Answers,
	}})
}

// AppendRefusal appends a Downstream message with the refusal that the node self
// expresses.
func AppendRefusal(dst []byte, self gossip.NodeID, r *transport.RefusedError) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(dst, &pb.Downstream{Refusal: &pb.Refusal{
		Reason: pb.Reason(r.Reason),
		Node:   node(self),
		Detail: wire.Clip(r.Detail, maxDetail),

		Session: r.Session,
	}})
}

func parseWelcome(p *pb.Welcome) (*Welcome, error) {
	n, err := parseNode(p.GetNode())
	if err != nil {
		return nil, err
	}
	if n.UID == 0 {
		return nil, wire.Malformed("the answering node has no uid")
	}
	if p.GetProtocol() == 0 || p.GetProtocol() > 1<<16-1 {
		return nil, wire.Malformed("protocol version %d", p.GetProtocol())
	}
	return &Welcome{
		Node:         n,
		Protocol:     uint16(p.GetProtocol()),
		Known:        p.GetKnown(),
		Acknowledged: p.GetAcknowledged(),
		Own:          p.GetOwn(),
		Answers:      p.GetTakesAnswers(),
	}, nil
}

// parseRefusal is lenient: a refusal is a refusal, however much of it can be read. Its
// Peer is the name that the answering side gives itself, which proves nothing.
func parseRefusal(p *pb.Refusal) *transport.RefusedError {
	r := &transport.RefusedError{Detail: wire.Clip(p.GetDetail(), maxDetail), Session: p.GetSession()}
	if n := p.GetReason(); n > 0 && int(n) < transport.Reasons {
		r.Reason = transport.Reason(n)
	}
	if peer, err := parseNode(p.GetNode()); err == nil {
		r.Peer = peer
	}
	return r
}

func unmarshal(b []byte, m proto.Message) error {
	if len(b) > maxHandshake {
		return wire.Malformed("handshake of %d bytes, at most %d", len(b), maxHandshake)
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m); err != nil {
		return wire.Malformed("%w", err)
	}
	return nil
}

func node(n gossip.NodeID) *pb.Node {
	return &pb.Node{Host: n.Address.Host, Port: uint32(n.Address.Port), Uid: uint64(n.UID)}
}

func parseNode(p *pb.Node) (gossip.NodeID, error) {
	n, err := wire.NodeOf(p.GetHost(), p.GetPort(), p.GetUid())
	if err != nil {
		return n, err
	}
	if err := n.Address.Validate(); err != nil { // Only the address: the uid of a node that is searched by address is not known.
		return gossip.NodeID{}, wire.Malformed("%w", err)
	}
	return n, nil
}
