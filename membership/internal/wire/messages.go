// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// The types of messages are a list with a row for each: its number, and the table of its fields, of the message itself
// or of the form that it has on the wire. The tables are in the order of package protocol; those of what nodes say
// while clusters are looked for are in forming.go, those of states, deltas and digests in state.go.

// size says how large a message of a type may be, see [Admit].
type size uint8

const (
	sizeOfControl size = iota
	sizeOfState
	sizeOfWelcome
)

// messageType is a type of messages.
type messageType struct {
	number   wire.Number
	name     string // In the .proto file.
	size     size
	is       func(message any) bool
	appendTo func(b []byte, message any) ([]byte, error)
	read     func(b []byte) (any, error)
}

// plain returns the type of messages that have a table. One that was read has to pass the check, if there is one.
func plain[M any](n wire.Number, name string, table func(*M, *wire.Codec), checks ...func(*M) error) messageType {
	return messageType{
		number: n, name: name,
		is: func(message any) bool {
			_, ok := message.(M)
			return ok
		},
		appendTo: func(b []byte, message any) ([]byte, error) {
			m, _ := message.(M)
			return wire.Append(b, &m, table)
		},
		read: func(b []byte) (any, error) {
			var m M
			if err := wire.Read(b, &m, table); err != nil {
				return nil, err
			}
			for _, check := range checks {
				if err := check(&m); err != nil {
					return nil, err
				}
			}
			return m, nil
		},
	}
}

// formed returns the type of messages that have another form on the wire.
func formed[M, F any](n wire.Number, name string, to func(M) F, from func(*F) (M, error), table func(*F, *wire.Codec)) messageType {
	t := plain[M](n, name, nil)
	t.appendTo = func(b []byte, message any) ([]byte, error) {
		m, _ := message.(M)
		f := to(m)
		return wire.Append(b, &f, table)
	}
	t.read = func(b []byte) (any, error) {
		var f F
		if err := wire.Read(b, &f, table); err != nil {
			return nil, err
		}
		m, err := from(&f)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
	return t
}

// sized returns a type with another size.
func sized(s size, t messageType) messageType {
	t.size = s
	return t
}

// types are the types of messages. The numbers are part of the wire: a number is never used again. The frequent ones
// come first, because the rows are tried in their order.
var types = []messageType{ //nolint:gochecknoglobals // A constant table.
	plain(7, "heartbeat", heartbeat),
	plain(8, "heartbeat_reply", heartbeatReply),
	sized(sizeOfState, plain(9, "gossip_status", gossipStatus, checkStatus)),
	sized(sizeOfState, plain(10, "gossip_delta", gossipDelta, checkDelta)),
	sized(sizeOfState, plain(11, "gossip_state", gossipState, checkState)),
	plain(21, "ask_standing", askStanding),
	plain(22, "give_standing", giveStanding),
	formed(23, "lend_standing", toLent, fromLent, (*lentStanding).fields),
	plain(1, "init_join", initJoin),
	plain(2, "init_join_ack", initJoinAck),
	plain(3, "init_join_nack", initJoinNack),
	formed(4, "join_request", toJoinRequest, fromJoinRequest, (*joinRequest).fields),
	sized(sizeOfWelcome, plain(5, "welcome", welcome, checkWelcome)),
	plain(6, "join_refused", joinRefused),
	plain(12, "exiting_confirmed", exitingConfirmed),
	plain(13, "not_member", notMember, checkNotMember),
	plain(14, "ask_downing", askDowning),
	plain(15, "downing_answer", downingAnswer),
	plain(16, "ask_vote", askVote),
	plain(17, "vote", vote),
	plain(20, "reached", reached),
}

// typeOf returns the type of a number, nil if this version does not know it.
func typeOf(n wire.Number) *messageType {
	for i := range types {
		if types[i].number == n {
			return &types[i]
		}
	}
	return nil
}

func heartbeat(m *protocol.Heartbeat, c *wire.Codec) {
	wire.Uint(c, 1, &m.Sequence, math.MaxUint64)
	wire.Fixed(c, 2, &m.Fingerprint)
	wire.Bool(c, 3, &m.Shared)
}

func heartbeatReply(m *protocol.HeartbeatReply, c *wire.Codec) {
	wire.Uint(c, 1, &m.Sequence, math.MaxUint64)
	wire.Bool(c, 2, &m.Standing)
	wire.Bool(c, 3, &m.Known)
	wire.Uint(c, 4, &m.Question.Sequence, math.MaxUint64)
	wire.Fixed(c, 5, &m.Question.Fingerprint)
}

func gossipStatus(m *protocol.GossipStatus, c *wire.Codec) { digest(c, 1, &m.Digest) }

func checkStatus(m *protocol.GossipStatus) error { return m.Digest.Validate() }

func gossipDelta(m *protocol.GossipDelta, c *wire.Codec) {
	delta(c, 1, &m.Delta)
	digest(c, 2, &m.Digest)
}

func checkDelta(m *protocol.GossipDelta) error {
	if err := m.Digest.Validate(); err != nil {
		return err
	}
	return m.Delta.Validate()
}

func gossipState(m *protocol.GossipState, c *wire.Codec) { state(c, 1, &m.State) }

func checkState(m *protocol.GossipState) error { return present(&m.State) }

func exitingConfirmed(*protocol.ExitingConfirmed, *wire.Codec) {}

func reached(m *protocol.Reached, c *wire.Codec) { wire.Fixeds(c, 1, &m.Nodes, protocol.MaxReached) }

func notMember(m *protocol.NotMember, c *wire.Codec) {
	wire.Node(c, 1, &m.Node)
	wire.Uint(c, 2, &m.Status, math.MaxUint8)
	wire.Node(c, 3, &m.Downed.By)
	wire.Text(c, 4, &m.Downed.Why, math.MaxInt)
}

func checkNotMember(m *protocol.NotMember) error {
	if err := m.Node.Validate(); err != nil {
		return err
	}
	switch m.Status {
	case gossip.StatusNone, gossip.Down, gossip.Removed:
	default:
		return wire.Malformed("status %d of a node that is no member", m.Status)
	}
	if m.Downed.IsZero() {
		return nil
	}
	if err := m.Downed.By.Validate(); err != nil {
		return err
	}
	return m.Downed.Validate()
}

func askDowning(m *protocol.AskDowning, c *wire.Codec) {
	wire.Uint(c, 1, &m.Question, math.MaxUint64)
	wire.Fixed(c, 2, &m.Strategy)
	wire.Fixed(c, 3, &m.View)
}

func downingAnswer(m *protocol.DowningAnswer, c *wire.Codec) {
	wire.Uint(c, 1, &m.Question, math.MaxUint64)
	wire.Text(c, 2, &m.Error, protocol.MaxTextBytes)
	wire.Uint(c, 3, &m.Decision.Verdict, math.MaxUint8)
	nodeList(c, 4, &m.Decision.Down)
	wire.Text(c, 5, &m.Decision.Reason, downing.MaxReason)
}

// nodeList is a row with a list of nodes, at most as many as there may be members.
func nodeList(c *wire.Codec, n wire.Number, all *[]gossip.NodeID) {
	if !c.At(n) {
		return
	}
	var p rawNodes
	if !c.Reading() {
		p = (&table{nodes: *all}).raw()
	}
	if !wire.Message(c, n, &p, (*rawNodes).fields) {
		return
	}
	list, err := fromNodes(&p)
	if err == nil && len(list) > gossip.MaxMembers {
		err = wire.Malformed("%d nodes to be downed", len(list))
	}
	if c.Fail(err); len(list) > 0 {
		*all = list
	}
}

func initJoin(m *protocol.InitJoin, c *wire.Codec) {
	wire.Uint(c, 1, &m.Attempt, math.MaxUint64)
	claim(c, 2, &m.Claim)
	wire.Bool(c, 3, &m.Back)
}

func initJoinAck(m *protocol.InitJoinAck, c *wire.Codec) {
	wire.Uint(c, 1, &m.Attempt, math.MaxUint64)
	wire.Sparse(c, 2, &m.Cluster, cluster)
	claim(c, 3, &m.Claim)
}

func initJoinNack(m *protocol.InitJoinNack, c *wire.Codec) {
	wire.Uint(c, 1, &m.Attempt, math.MaxUint64)
	wire.Text(c, 2, &m.Reason, protocol.MaxTextBytes)
	wire.Bool(c, 3, &m.Member)
	claim(c, 4, &m.Claim)
}

// joinRequest is the form of a join request: the nodes of its one member are in a table.
type joinRequest struct {
	m       protocol.JoinRequest // Without the member.
	nodes   rawNodes
	members rawMembers
}

func (p *joinRequest) fields(c *wire.Codec) {
	wire.Uint(c, 1, &p.m.Attempt, math.MaxUint64)
	wire.Message(c, 2, &p.nodes, (*rawNodes).fields)
	wire.Message(c, 3, &p.members, (*rawMembers).fields)
	wire.Sparse(c, 4, &p.m.Cluster, cluster)
	settings(c, 5, &p.m.Settings)
	claim(c, 6, &p.m.Claim)
}

func toJoinRequest(m protocol.JoinRequest) joinRequest {
	var t table
	members := t.members([]*gossip.Member{&m.Member})
	return joinRequest{m: m, nodes: t.raw(), members: members}
}

func fromJoinRequest(p *joinRequest) (protocol.JoinRequest, error) {
	t, err := fromNodes(&p.nodes)
	if err != nil {
		return p.m, err
	}
	members, err := t.fromMembers(&p.members)
	if err != nil {
		return p.m, err
	}
	if len(members) != 1 {
		return p.m, wire.Malformed("join request with %d members", len(members))
	}
	p.m.Member = *members[0]
	return p.m, p.m.Member.Validate()
}

func joinRefused(m *protocol.JoinRefused, c *wire.Codec) {
	wire.Uint(c, 1, &m.Attempt, math.MaxUint64)
	wire.Uint(c, 2, &m.Refusal, math.MaxUint8)
	wire.Bool(c, 3, &m.Retry)
	wire.Text(c, 4, &m.Reason, protocol.MaxTextBytes)
	differences(c, 5, &m.Differences)
}

func welcome(m *protocol.Welcome, c *wire.Codec) {
	wire.Uint(c, 1, &m.Attempt, math.MaxUint64)
	state(c, 2, &m.State)
	differences(c, 3, &m.Warnings)
}

func checkWelcome(m *protocol.Welcome) error { return present(&m.State) }
