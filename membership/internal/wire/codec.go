// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	pb "github.com/quorate/quorate/membership/internal/proto/quorate/membership/v1"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// What a sender may send is checked first ([Admit]). [Codec] then encodes and decodes;
// below it are the conversions of each message, in the order of package protocol.

// SizeMax is the size of the largest message, in bytes. A state of
// [gossip.MaxMembers] members is well below it.
const SizeMax = 4 << 20

// ErrMalformed is what the errors of [Codec.Decode] unwrap to, unless they unwrap to
// [gossip.ErrInvalid]. It is the error of machine/wire.
var ErrMalformed = wire.ErrMalformed

// ErrForeign is returned by [Codec.Append] for a value that is not a message of package
// protocol.
var ErrForeign = errors.New("wire: not a message of membership")

// Sender is what the receiver of a message knows about its sender.
type Sender struct {
	// Member says that the sender is a member of the receiver's state.
	Member bool
	// Asked says that the receiver has asked the sender to let it join.
	Asked bool
}

// The largest messages in bytes: of any node, and of a member or of the node that was
// asked to let this one join. Their states may have [SizeMax] instead.
const (
	StrangerSizeMax = 64 << 10
	ControlSizeMax  = 256 << 10
)

// Admit returns nil for a message that its sender may send at this size, otherwise why it
// is not decoded. It looks at the sender and at the type that the first bytes name.
func Admit(b []byte, from Sender) error {
	switch {
	case len(b) <= StrangerSizeMax:
		return nil
	case !from.Member && !from.Asked:
		return wire.Malformed("%d bytes by who is no member here, at most %d", len(b), StrangerSizeMax)
	}
	number, _, n := wire.Tag(b)
	if n == 0 {
		return wire.Malformed("%d bytes that begin with no field", len(b))
	}
	typ := (*pb.Message)(nil).ProtoReflect().Descriptor().Fields().ByNumber(protoreflect.FieldNumber(number))
	switch {
	case typ == nil:
		return wire.Malformed("%d bytes of an unknown type", len(b))
	case typ.Name() == "welcome":
		if !from.Asked {
			return wire.Malformed("a welcome of %d bytes by who was not asked", len(b))
		}
	case !from.Member:
		return wire.Malformed("%d bytes of %s by who is no member here", len(b), typ.Name())
	case typ.Name() == "gossip_state" || typ.Name() == "gossip_delta" || typ.Name() == "gossip_status":
	case len(b) > ControlSizeMax:
		return wire.Malformed("%d bytes of %s, at most %d", len(b), typ.Name(), ControlSizeMax)
	}
	return nil
}

// Unknown is a message of a type that this version does not know.
type Unknown struct{}

// Codec is the codec of the membership messages. The zero value is ready for
// use.
type Codec struct{}

var _ machine.Codec = Codec{}

// Append appends the encoding of a message of package protocol.
func (Codec) Append(dst []byte, message any) ([]byte, error) {
	m, err := toProto(message)
	if err != nil {
		return dst, err
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, m)
}

// Decode returns the message that b holds. It keeps no part of b.
func (Codec) Decode(b []byte) (any, error) {
	if len(b) > SizeMax {
		return nil, wire.Malformed("%d bytes, at most %d", len(b), SizeMax)
	}
	if len(b) > scanAbove {
		if err := scan(b); err != nil {
			return nil, err
		}
	}
	m := new(pb.Message)
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m); err != nil {
		return nil, wire.Malformed("%v", err)
	}
	return fromProto(m)
}

func toProto(message any) (*pb.Message, error) {
	switch m := message.(type) {
	case protocol.Heartbeat:
		return &pb.Message{What: &pb.Message_Heartbeat{Heartbeat: &pb.Heartbeat{Sequence: m.Sequence, Fingerprint: uint64(m.Fingerprint), Shared: m.Shared}}}, nil
	case protocol.HeartbeatReply:
		return &pb.Message{What: &pb.Message_HeartbeatReply{HeartbeatReply: &pb.HeartbeatReply{
			Sequence: m.Sequence, Known: m.Known, Standing: m.Standing,
			Question: m.Question.Sequence, Fingerprint: uint64(m.Question.Fingerprint),
		}}}, nil
	case protocol.GossipStatus:
		return &pb.Message{What: &pb.Message_GossipStatus{GossipStatus: &pb.GossipStatus{Digest: toDigest(m.Digest)}}}, nil
	case protocol.GossipDelta:
		return &pb.Message{What: &pb.Message_GossipDelta{GossipDelta: &pb.GossipDelta{
			Delta: toDelta(m.Delta), Digest: toDigest(m.Digest),
		}}}, nil
	case protocol.GossipState:
		return &pb.Message{What: &pb.Message_GossipState{GossipState: &pb.GossipState{State: toState(m.State)}}}, nil
	case protocol.ExitingConfirmed:
		return &pb.Message{What: &pb.Message_ExitingConfirmed{ExitingConfirmed: &pb.ExitingConfirmed{}}}, nil
	case protocol.Reached:
		return &pb.Message{What: &pb.Message_Reached{Reached: toReached(m)}}, nil
	case protocol.NotMember:
		return &pb.Message{What: &pb.Message_NotMember{NotMember: &pb.NotMember{
			Node: toNode(m.Node), Status: uint32(m.Status), DownedBy: toBy(m.Downed.By), DownedWhy: m.Downed.Why,
		}}}, nil
	case protocol.AskDowning:
		return &pb.Message{What: &pb.Message_AskDowning{AskDowning: &pb.AskDowning{
			Question: m.Question, Strategy: uint64(m.Strategy), View: m.View,
		}}}, nil
	case protocol.DowningAnswer:
		return &pb.Message{What: &pb.Message_DowningAnswer{DowningAnswer: toDowningAnswer(m)}}, nil
	default:
		if standing := standingToProto(message); standing != nil {
			return standing, nil
		}
		return joinToProto(message)
	}
}

func joinToProto(message any) (*pb.Message, error) {
	switch m := message.(type) {
	case protocol.InitJoin:
		return &pb.Message{What: &pb.Message_InitJoin{InitJoin: &pb.InitJoin{Attempt: m.Attempt, Claim: toClaim(m.Claim), Back: m.Back}}}, nil
	case protocol.InitJoinAck:
		return &pb.Message{What: &pb.Message_InitJoinAck{InitJoinAck: &pb.InitJoinAck{
			Attempt: m.Attempt, Cluster: toCluster(m.Cluster), Claim: toClaim(m.Claim),
		}}}, nil
	case protocol.InitJoinNack:
		return &pb.Message{What: &pb.Message_InitJoinNack{InitJoinNack: &pb.InitJoinNack{
			Attempt: m.Attempt, Member: m.Member, Reason: m.Reason, Claim: toClaim(m.Claim),
		}}}, nil
	case protocol.JoinRequest:
		var t table
		member := t.members([]*gossip.Member{&m.Member})
		return &pb.Message{What: &pb.Message_JoinRequest{JoinRequest: &pb.JoinRequest{
			Attempt: m.Attempt, Nodes: t.proto(), Member: member,
			Cluster: toCluster(m.Cluster), Settings: toSettings(m.Settings), Claim: toClaim(m.Claim),
		}}}, nil
	case protocol.JoinRefused:
		return &pb.Message{What: &pb.Message_JoinRefused{JoinRefused: &pb.JoinRefused{
			Attempt: m.Attempt, Refusal: uint32(m.Refusal), Retry: m.Retry, Reason: m.Reason,
			Differences: toDifferences(m.Differences),
		}}}, nil
	case protocol.Welcome:
		return &pb.Message{What: &pb.Message_Welcome{Welcome: &pb.Welcome{
			Attempt: m.Attempt, State: toState(m.State), Warnings: toDifferences(m.Warnings),
		}}}, nil
	default:
		if vote := voteToProto(message); vote != nil {
			return vote, nil
		}
		return nil, fmt.Errorf("%w: %T", ErrForeign, message)
	}
}

func fromProto(m *pb.Message) (any, error) {
	switch what := m.GetWhat().(type) {
	case *pb.Message_Heartbeat:
		return protocol.Heartbeat{Sequence: what.Heartbeat.GetSequence(), Fingerprint: gossip.Hash(what.Heartbeat.GetFingerprint()), Shared: what.Heartbeat.GetShared()}, nil
	case *pb.Message_HeartbeatReply:
		return protocol.HeartbeatReply{
			Sequence: what.HeartbeatReply.GetSequence(), Known: what.HeartbeatReply.GetKnown(), Standing: what.HeartbeatReply.GetStanding(),
			Question: protocol.Question{Sequence: what.HeartbeatReply.GetQuestion(), Fingerprint: gossip.Hash(what.HeartbeatReply.GetFingerprint())},
		}, nil
	case *pb.Message_GossipStatus:
		d, err := fromDigest(what.GossipStatus.GetDigest())
		return message(protocol.GossipStatus{Digest: d}, err)
	case *pb.Message_GossipDelta:
		return fromGossipDelta(what.GossipDelta)
	case *pb.Message_GossipState:
		s, err := fromState(what.GossipState.GetState())
		return message(protocol.GossipState{State: s}, err)
	case *pb.Message_ExitingConfirmed:
		return protocol.ExitingConfirmed{}, nil
	case *pb.Message_Reached:
		return fromReached(what.Reached)
	case *pb.Message_NotMember:
		return fromNotMember(what.NotMember)
	case *pb.Message_AskDowning:
		a := what.AskDowning
		return protocol.AskDowning{Question: a.GetQuestion(), Strategy: gossip.StrategyID(a.GetStrategy()), View: a.GetView()}, nil
	case *pb.Message_DowningAnswer:
		return fromDowningAnswer(what.DowningAnswer)
	default:
		if standing, ok, err := standingFromProto(m); ok {
			return message(standing, err)
		}
		return joinFromProto(m)
	}
}

func joinFromProto(m *pb.Message) (any, error) {
	switch what := m.GetWhat().(type) {
	case *pb.Message_InitJoin:
		claim, err := fromClaim(what.InitJoin.GetClaim())
		return message(protocol.InitJoin{Attempt: what.InitJoin.GetAttempt(), Claim: claim, Back: what.InitJoin.GetBack()}, err)
	case *pb.Message_InitJoinAck:
		a := what.InitJoinAck
		claim, err := fromClaim(a.GetClaim())
		return message(protocol.InitJoinAck{Attempt: a.GetAttempt(), Cluster: fromCluster(a.GetCluster()), Claim: claim}, err)
	case *pb.Message_InitJoinNack:
		n := what.InitJoinNack
		claim, err := fromClaim(n.GetClaim())
		return message(protocol.InitJoinNack{Attempt: n.GetAttempt(), Member: n.GetMember(), Reason: n.GetReason(), Claim: claim},
			errors.Join(err, within("reason", n.GetReason(), protocol.MaxTextBytes)))
	case *pb.Message_JoinRequest:
		return fromJoinRequest(what.JoinRequest)
	case *pb.Message_JoinRefused:
		return fromJoinRefused(what.JoinRefused)
	case *pb.Message_Welcome:
		return fromWelcome(what.Welcome)
	default:
		return voteFromProto(m)
	}
}

// message returns m unless there is an error.
func message[M any](m M, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

// within refuses a text that is too long.
func within(what, text string, limit int) error {
	if len(text) > limit {
		return wire.Malformed("%s of %d bytes, at most %d", what, len(text), limit)
	}
	return nil
}

func fromGossipDelta(p *pb.GossipDelta) (any, error) {
	digest, err := fromDigest(p.GetDigest())
	if err != nil {
		return nil, err
	}
	delta, err := fromDelta(p.GetDelta())
	return message(protocol.GossipDelta{Delta: delta, Digest: digest}, err)
}

func toReached(m protocol.Reached) *pb.Reached {
	p := &pb.Reached{Node: make([]uint64, len(m.Nodes))}
	for i, uid := range m.Nodes {
		p.Node[i] = uint64(uid)
	}
	return p
}

func fromReached(p *pb.Reached) (any, error) {
	if n := len(p.GetNode()); n > protocol.MaxReached {
		return nil, wire.Malformed("%d nodes, at most %d", n, protocol.MaxReached)
	}
	r := protocol.Reached{Nodes: make([]gossip.UID, len(p.GetNode()))}
	for i, uid := range p.GetNode() {
		r.Nodes[i] = gossip.UID(uid)
	}
	return r, nil
}

// fromFarewell sets by whom and why a node was declared down, if the message says so.
func fromFarewell(m protocol.NotMember, p *pb.NotMember) (any, error) {
	if p.GetDownedBy() == nil && p.GetDownedWhy() == "" {
		return m, nil
	}
	by, err := fromNode(p.GetDownedBy())
	if err != nil {
		return nil, err
	}
	m.Downed = gossip.Cause{By: by, Why: p.GetDownedWhy()}
	if err := m.Downed.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// toBy encodes a node, nil for none.
func toBy(n gossip.NodeID) *pb.Node {
	if n.IsZero() {
		return nil
	}
	return toNode(n)
}

func fromNotMember(p *pb.NotMember) (any, error) {
	node, err := fromNode(p.GetNode())
	if err != nil {
		return nil, err
	}
	switch status := gossip.Status(min(p.GetStatus(), 255)); status {
	case gossip.StatusNone, gossip.Down, gossip.Removed:
		return fromFarewell(protocol.NotMember{Node: node, Status: status}, p)
	default:
		return nil, wire.Malformed("status %d of a node that is no member", p.GetStatus())
	}
}

func toDowningAnswer(m protocol.DowningAnswer) *pb.DowningAnswer {
	down := table{nodes: m.Decision.Down}
	return &pb.DowningAnswer{
		Question: m.Question, Error: m.Error,
		Verdict: uint32(m.Decision.Verdict), Down: down.proto(), Reason: m.Decision.Reason,
	}
}

func fromDowningAnswer(p *pb.DowningAnswer) (any, error) {
	err := errors.Join(within("error", p.GetError(), protocol.MaxTextBytes), within("reason", p.GetReason(), downing.MaxReason))
	if err != nil {
		return nil, err
	}
	if p.GetVerdict() > 255 {
		return nil, wire.Malformed("verdict %d", p.GetVerdict())
	}
	down, err := fromNodes(p.GetDown())
	if err != nil {
		return nil, err
	}
	if len(down) > gossip.MaxMembers {
		return nil, wire.Malformed("%d nodes to be downed", len(down))
	}
	answer := protocol.DowningAnswer{Question: p.GetQuestion(), Error: p.GetError()}
	answer.Decision.Verdict, answer.Decision.Reason = downing.Verdict(p.GetVerdict()), p.GetReason()
	if len(down) > 0 {
		answer.Decision.Down = down
	}
	return answer, nil
}

func fromJoinRequest(p *pb.JoinRequest) (any, error) {
	t, err := fromNodes(p.GetNodes())
	if err != nil {
		return nil, err
	}
	members, err := t.fromMembers(p.GetMember())
	if err != nil {
		return nil, err
	}
	if len(members) != 1 {
		return nil, wire.Malformed("join request with %d members", len(members))
	}
	if err := members[0].Validate(); err != nil {
		return nil, err
	}
	claim, err := fromClaim(p.GetClaim())
	if err != nil {
		return nil, err
	}
	settings, err := fromSettings(p.GetSettings())
	return message(protocol.JoinRequest{
		Attempt: p.GetAttempt(), Member: *members[0], Cluster: fromCluster(p.GetCluster()), Settings: settings,
		Claim: claim,
	}, err)
}

func fromJoinRefused(p *pb.JoinRefused) (any, error) {
	if p.GetRefusal() > 255 {
		return nil, wire.Malformed("refusal %d", p.GetRefusal())
	}
	if err := within("reason", p.GetReason(), protocol.MaxTextBytes); err != nil {
		return nil, err
	}
	differences, err := fromDifferences(p.GetDifferences())
	return message(protocol.JoinRefused{
		Attempt: p.GetAttempt(), Refusal: protocol.Refusal(p.GetRefusal()), Retry: p.GetRetry(),
		Reason: p.GetReason(), Differences: differences,
	}, err)
}

func fromWelcome(p *pb.Welcome) (any, error) {
	state, err := fromState(p.GetState())
	if err != nil {
		return nil, err
	}
	warnings, err := fromDifferences(p.GetWarnings())
	return message(protocol.Welcome{Attempt: p.GetAttempt(), State: state, Warnings: warnings}, err)
}

func toSettings(settings []protocol.Setting) *pb.Settings {
	p := &pb.Settings{}
	for _, s := range settings {
		p.Key = append(p.Key, s.Key)
		p.Value = append(p.Value, s.Value)
		p.Class = append(p.Class, uint32(s.Class))
	}
	return p
}

func fromSettings(p *pb.Settings) ([]protocol.Setting, error) {
	if err := columns("settings", len(p.GetKey()), protocol.MaxSettings, len(p.GetValue()), len(p.GetClass())); err != nil {
		return nil, err
	}
	var settings []protocol.Setting
	for i, key := range p.GetKey() {
		value, class := p.GetValue()[i], p.GetClass()[i]
		if class != uint32(protocol.MustEqual) && class != uint32(protocol.ShouldEqual) {
			return nil, wire.Malformed("setting %q of class %d", key, class)
		}
		if i > 0 && settings[i-1].Key >= key {
			return nil, wire.Malformed("settings not sorted or twice")
		}
		if err := errors.Join(within("key", key, protocol.MaxKeyBytes), within("value", value, protocol.MaxTextBytes)); err != nil {
			return nil, err
		}
		settings = append(settings, protocol.Setting{Key: key, Value: value, Class: protocol.SettingClass(class)})
	}
	return settings, nil
}

func toDifferences(differences []protocol.Difference) *pb.Differences {
	p := &pb.Differences{}
	for _, d := range differences {
		p.Key = append(p.Key, d.Key)
		p.Member = append(p.Member, d.Member)
		p.Joiner = append(p.Joiner, d.Joiner)
	}
	return p
}

func fromDifferences(p *pb.Differences) ([]protocol.Difference, error) {
	if err := columns("differences", len(p.GetKey()), protocol.MaxSettings, len(p.GetMember()), len(p.GetJoiner())); err != nil {
		return nil, err
	}
	var differences []protocol.Difference
	for i, key := range p.GetKey() {
		d := protocol.Difference{Key: key, Member: p.GetMember()[i], Joiner: p.GetJoiner()[i]}
		err := errors.Join(within("key", d.Key, protocol.MaxKeyBytes),
			within("value", d.Member, protocol.MaxTextBytes), within("value", d.Joiner, protocol.MaxTextBytes))
		if err != nil {
			return nil, err
		}
		differences = append(differences, d)
	}
	return differences, nil
}

// columns checks that the columns of a list have one length, at most limit.
func columns(what string, length, limit int, others ...int) error {
	if length > limit {
		return wire.Malformed("%d %s, at most %d", length, what, limit)
	}
	for _, other := range others {
		if other != length {
			return wire.Malformed("columns of %s of lengths %d and %d", what, length, other)
		}
	}
	return nil
}
