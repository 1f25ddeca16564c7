// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"time"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// These messages go between relays and those whose standing they prove.

// maxAge is the highest age of a proof on the wire. No fence is longer.
const maxAge = 365 * 24 * time.Hour

func askStanding(m *protocol.AskStanding, c *wire.Codec) {
	wire.Uint(c, 1, &m.Sequence, math.MaxUint64)
}

func giveStanding(m *protocol.GiveStanding, c *wire.Codec) {
	wire.Uint(c, 1, &m.Sequence, math.MaxUint64)
	wire.Bool(c, 2, &m.Known)
	wire.Bool(c, 3, &m.Standing)
	wire.Uint(c, 4, &m.Question, math.MaxUint64)
}

// lentStanding is the form of what is lentStanding, with ages as they are on the wire.
type lentStanding struct {
	question   uint64
	standing   bool
	proof, all uint64
}

func (p *lentStanding) fields(c *wire.Codec) {
	wire.Uint(c, 1, &p.question, math.MaxUint64)
	wire.Bool(c, 2, &p.standing)
	wire.Uint(c, 3, &p.proof, math.MaxUint64)
	wire.Uint(c, 4, &p.all, math.MaxUint64)
}

func toLent(m protocol.LendStanding) lentStanding {
	return lentStanding{question: m.Question, standing: m.Standing, proof: toAge(m.Proof), all: toAge(m.All)}
}

// toAge encodes an age in milliseconds, rounded up so that no proof gets younger on the
// wire; 0 is that of a proof that does not exist.
func toAge(age time.Duration) uint64 {
	if age < 0 {
		return 0
	}
	return uint64((min(age, maxAge)+time.Millisecond-1)/time.Millisecond) + 1
}

func fromAge(age uint64) (time.Duration, error) {
	switch {
	case age == 0:
		return protocol.NoProof, nil
	case age > uint64(maxAge/time.Millisecond)+1:
		return 0, wire.Malformed("a proof that is %d ms old", age-1)
	}
	return time.Duration(age-1) * time.Millisecond, nil
}

func fromLent(p *lentStanding) (protocol.LendStanding, error) {
	proof, err := fromAge(p.proof)
	if err != nil {
		return protocol.LendStanding{}, err
	}
	all, err := fromAge(p.all)
	return protocol.LendStanding{Question: p.question, Standing: p.standing, Proof: proof, All: all}, err
}
