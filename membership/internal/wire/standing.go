// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	"github.com/quorate/quorate/machine/wire"
	pb "github.com/quorate/quorate/membership/internal/proto/quorate/membership/v1"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// ageMax is the highest age of a proof on the wire. No fence is longer.
const ageMax = 365 * 24 * time.Hour

// standingToProto encodes the messages of relays, nil for others.
func standingToProto(message any) *pb.Message {
	switch m := message.(type) {
	case protocol.AskStanding:
		return &pb.Message{What: &pb.Message_AskStanding{AskStanding: &pb.AskStanding{Sequence: m.Sequence}}}
	case protocol.GiveStanding:
		return &pb.Message{What: &pb.Message_GiveStanding{GiveStanding: &pb.GiveStanding{
			Sequence: m.Sequence, Known: m.Known, Standing: m.Standing, Question: m.Question,
		}}}
	case protocol.LendStanding:
		return &pb.Message{What: &pb.Message_LendStanding{LendStanding: &pb.LendStanding{
			Question: m.Question, Standing: m.Standing, Proof: toAge(m.Proof), All: toAge(m.All),
		}}}
	}
	return nil
}

// standingFromProto decodes the messages of relays, and reports whether m is one.
func standingFromProto(m *pb.Message) (message any, ok bool, err error) {
	switch what := m.GetWhat().(type) {
	case *pb.Message_AskStanding:
		return protocol.AskStanding{Sequence: what.AskStanding.GetSequence()}, true, nil
	case *pb.Message_GiveStanding:
		g := what.GiveStanding
		return protocol.GiveStanding{
			Sequence: g.GetSequence(), Known: g.GetKnown(), Standing: g.GetStanding(), Question: g.GetQuestion(),
		}, true, nil
	case *pb.Message_LendStanding:
		lent, err := fromLent(what.LendStanding)
		return lent, true, err
	}
	return nil, false, nil
}

// toAge encodes an age in milliseconds, rounded up so that no proof gets younger on the
// wire; 0 is that of a proof that does not exist.
func toAge(age time.Duration) uint64 {
	if age < 0 {
		return 0
	}
	return uint64((min(age, ageMax)+time.Millisecond-1)/time.Millisecond) + 1
}

func fromAge(age uint64) (time.Duration, error) {
	switch {
	case age == 0:
		return protocol.NoProof, nil
	case age > uint64(ageMax/time.Millisecond)+1:
		return 0, wire.Malformed("a proof that is %d ms old", age-1)
	}
	return time.Duration(age-1) * time.Millisecond, nil
}

func fromLent(p *pb.LendStanding) (protocol.LendStanding, error) {
	proof, err := fromAge(p.GetProof())
	if err != nil {
		return protocol.LendStanding{}, err
	}
	all, err := fromAge(p.GetAll())
	if err != nil {
		return protocol.LendStanding{}, err
	}
	return protocol.LendStanding{Question: p.GetQuestion(), Standing: p.GetStanding(), Proof: proof, All: all}, nil
}
