// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
	pb "github.com/quorate/quorate/membership/internal/proto/quorate/membership/v1"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// These messages are sent while clusters are looked for and founded: claims, records,
// votes.

func voteToProto(message any) *pb.Message {
	switch m := message.(type) {
	case protocol.AskVote:
		return &pb.Message{What: &pb.Message_AskVote{AskVote: &pb.AskVote{
			Birth: m.Birth, Basis: toStamp(m.Basis), Settled: m.Settled, Claim: toClaim(m.Claim),
		}}}
	case protocol.Vote:
		return &pb.Message{What: &pb.Message_Vote{Vote: &pb.Vote{Birth: m.Birth, Granted: m.Granted, Reason: m.Reason}}}
	}
	return nil
}

func voteFromProto(m *pb.Message) (any, error) {
	switch what := m.GetWhat().(type) {
	case *pb.Message_AskVote:
		a := what.AskVote
		claim, err := fromClaim(a.GetClaim())
		return message(protocol.AskVote{Birth: a.GetBirth(), Basis: fromStamp(a.GetBasis()), Settled: a.GetSettled(), Claim: claim}, err)
	case *pb.Message_Vote:
		v := what.Vote
		return message(protocol.Vote{Birth: v.GetBirth(), Granted: v.GetGranted(), Reason: v.GetReason()},
			within("reason", v.GetReason(), protocol.MaxTextBytes))
	}
	return Unknown{}, nil
}

func toClaim(c protocol.Claim) *pb.Claim {
	var t table
	p := &pb.Claim{
		Record: t.record(c.Record), Cluster: toCluster(c.Cluster), Standing: c.Standing, Leaving: c.Leaving, Yielded: c.Yielded,
		Voters: t.places(c.Voters), List: t.addresses(c.List), Found: c.Found, Evidence: uint32(c.Evidence), Kept: c.Kept,
	}
	p.Nodes = t.proto()
	return p
}

func fromClaim(p *pb.Claim) (protocol.Claim, error) {
	t, err := fromNodes(p.GetNodes())
	if err != nil {
		return protocol.Claim{}, err
	}
	c := protocol.Claim{
		Cluster: fromCluster(p.GetCluster()), Standing: p.GetStanding(), Leaving: p.GetLeaving(), Yielded: p.GetYielded(),
		Found: p.GetFound(), Evidence: protocol.Evidence(p.GetEvidence()), Kept: p.GetKept(),
	}
	if c.Record, err = t.fromRecord(p.GetRecord()); err != nil {
		return c, err
	}
	if n := len(p.GetVoters()); n > gossip.MaxMembers {
		return c, wire.Malformed("%d voters, at most %d", n, gossip.MaxMembers)
	}
	if c.Voters, err = t.list(p.GetVoters()); err != nil {
		return c, err
	}
	if c.List, err = t.fromAddresses("the list", p.GetList(), protocol.MaxListed); err != nil {
		return c, err
	}
	return c, nil
}

// addresses returns the indices of addresses, as nodes without a uid.
func (t *table) addresses(all []gossip.Address) []uint32 {
	t.expect = 0
	var places []uint32
	for _, a := range all {
		places = append(places, t.place(gossip.NodeID{Address: a}))
	}
	return places
}

func (t nodes) fromAddresses(what string, places []uint32, limit int) ([]gossip.Address, error) {
	if len(places) > limit {
		return nil, wire.Malformed("%s has %d addresses, at most %d", what, len(places), limit)
	}
	var all []gossip.Address
	for _, place := range places {
		n, err := t.at(place)
		if err != nil {
			return nil, err
		}
		if err := n.Address.Validate(); err != nil {
			return nil, err
		}
		all = append(all, n.Address)
	}
	return all, nil
}

func (t *table) yield(y gossip.Yield) *pb.Yield {
	if y.IsZero() {
		return nil
	}
	return &pb.Yield{To: toCluster(y.To), At: t.addresses(y.Addresses())}
}

func (t nodes) fromYield(p *pb.Yield) (gossip.Yield, error) {
	y := gossip.Yield{To: fromCluster(p.GetTo())}
	at, err := t.fromAddresses("a yield", p.GetAt(), gossip.YieldAddresses)
	copy(y.At[:], at)
	return y, err
}

func toStamp(s protocol.Stamp) *pb.Stamp {
	if s.IsZero() {
		return nil
	}
	return &pb.Stamp{Born: s.Born, Gen: s.Gen, By: uint64(s.By)}
}

func fromStamp(p *pb.Stamp) protocol.Stamp {
	return protocol.Stamp{Born: p.GetBorn(), Gen: p.GetGen(), By: gossip.UID(p.GetBy())}
}

func (t *table) record(r protocol.Record) *pb.Record {
	if r.Data == 0 {
		return nil // The sender has no record: it only looks around.
	}
	p := &pb.Record{
		Data: uint64(r.Data), Promise: r.Promise, Cluster: toCluster(r.Cluster), Stamp: toStamp(r.Stamp), EpochBorn: r.EpochBorn,
		Yielded: t.yield(r.Yielded),
	}
	p.Voters, p.VotersData = t.voters(r.Voters)
	p.Previous, p.PreviousData = t.voters(r.Previous)
	return p
}

func (t *table) voters(voters []protocol.Voter) (places []uint32, data []uint64) {
	for _, v := range voters {
		places, data = append(places, t.place(v.Node)), append(data, uint64(v.Data))
	}
	return places, data
}

func (t nodes) fromRecord(p *pb.Record) (r protocol.Record, err error) {
	if p == nil {
		return r, nil
	}
	r = protocol.Record{
		Data: gossip.DataID(p.GetData()), Promise: p.GetPromise(), Cluster: fromCluster(p.GetCluster()),
		Stamp: fromStamp(p.GetStamp()), EpochBorn: p.GetEpochBorn(),
	}
	if r.Yielded, err = t.fromYield(p.GetYielded()); err != nil {
		return r, err
	}
	if r.Voters, err = t.fromVoters(p.GetVoters(), p.GetVotersData()); err != nil {
		return r, err
	}
	if r.Previous, err = t.fromVoters(p.GetPrevious(), p.GetPreviousData()); err != nil {
		return r, err
	}
	if err := r.Validate(); err != nil {
		return r, wire.Malformed("record: %v", err)
	}
	return r, nil
}

func (t nodes) fromVoters(places []uint32, data []uint64) ([]protocol.Voter, error) {
	if err := columns("voters", len(places), gossip.MaxMembers, len(data)); err != nil {
		return nil, err
	}
	var voters []protocol.Voter
	for i, place := range places {
		n, err := t.at(place)
		if err != nil {
			return nil, err
		}
		voters = append(voters, protocol.Voter{Node: n, Data: gossip.DataID(data[i])})
	}
	return voters, nil
}
