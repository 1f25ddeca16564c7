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
		return &pb.Message{What: &pb.Message_AskVote{AskVote: &pb.AskVote{Birth: m.Birth, Basis: toStamp(m.Basis), Settled: m.Settled}}}
	case protocol.Vote:
		return &pb.Message{What: &pb.Message_Vote{Vote: &pb.Vote{Birth: m.Birth, Granted: m.Granted, Reason: m.Reason}}}
	}
	return nil
}

func voteFromProto(m *pb.Message) (any, error) {
	switch what := m.GetWhat().(type) {
	case *pb.Message_AskVote:
		a := what.AskVote
		return protocol.AskVote{Birth: a.GetBirth(), Basis: fromStamp(a.GetBasis()), Settled: a.GetSettled()}, nil
	case *pb.Message_Vote:
		v := what.Vote
		return message(protocol.Vote{Birth: v.GetBirth(), Granted: v.GetGranted(), Reason: v.GetReason()},
			within("reason", v.GetReason(), protocol.MaxTextBytes))
	}
	return Unknown{}, nil
}

func toClaim(c protocol.Claim) *pb.Claim {
	return &pb.Claim{
		Record: toRecord(c.Record), Cluster: toCluster(c.Cluster),
		Standing: c.Standing, Leaving: c.Leaving, Voters: uint32(c.Voters), Known: c.Known,
	}
}

func fromClaim(p *pb.Claim) (protocol.Claim, error) {
	record, err := fromRecord(p.GetRecord())
	if err != nil {
		return protocol.Claim{}, err
	}
	if p.GetVoters() > gossip.MaxMembers {
		return protocol.Claim{}, wire.Malformed("%d voters, at most %d", p.GetVoters(), gossip.MaxMembers)
	}
	return protocol.Claim{
		Record: record, Cluster: fromCluster(p.GetCluster()),
		Standing: p.GetStanding(), Leaving: p.GetLeaving(), Voters: int(p.GetVoters()), Known: p.GetKnown(),
	}, nil
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

func toRecord(r protocol.Record) *pb.Record {
	if r.Data == 0 {
		return nil // The sender has no record: it only looks around.
	}
	var t table
	p := &pb.Record{
		Data: uint64(r.Data), Promise: r.Promise, Cluster: toCluster(r.Cluster), Stamp: toStamp(r.Stamp), EpochBorn: r.EpochBorn,
	}
	p.Voters, p.VotersData = t.voters(r.Voters)
	p.Previous, p.PreviousData = t.voters(r.Previous)
	p.Nodes = t.proto()
	return p
}

func (t *table) voters(voters []protocol.Voter) (places []uint32, data []uint64) {
	for _, v := range voters {
		places, data = append(places, t.place(v.Node)), append(data, uint64(v.Data))
	}
	return places, data
}

func fromRecord(p *pb.Record) (protocol.Record, error) {
	if p == nil {
		return protocol.Record{}, nil
	}
	t, err := fromNodes(p.GetNodes())
	if err != nil {
		return protocol.Record{}, err
	}
	r := protocol.Record{
		Data: gossip.DataID(p.GetData()), Promise: p.GetPromise(), Cluster: fromCluster(p.GetCluster()),
		Stamp: fromStamp(p.GetStamp()), EpochBorn: p.GetEpochBorn(),
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
