// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// These messages are sent while clusters are looked for and founded: claims, records,
// votes.

func askVote(m *protocol.AskVote, c *wire.Codec) {
	wire.Int(c, 1, &m.Birth, math.MaxUint64)
	wire.Sparse(c, 2, &m.Basis, stamp)
	wire.Bool(c, 3, &m.Settled)
	claim(c, 4, &m.Claim)
}

func vote(m *protocol.Vote, c *wire.Codec) {
	wire.Int(c, 1, &m.Birth, math.MaxUint64)
	wire.Bool(c, 2, &m.Granted)
	wire.Text(c, 3, &m.Reason, protocol.MaxTextBytes)
}

func stamp(m *protocol.Stamp, c *wire.Codec) {
	wire.Int(c, 1, &m.Born, math.MaxUint64)
	wire.Uint(c, 2, &m.Gen, math.MaxUint64)
	wire.Fixed(c, 3, &m.By)
}

// rawClaim is the form of a claim: its nodes are places in a table.
type rawClaim struct {
	nodes        rawNodes
	record       *rawRecord     // Nil if the sender has no record: it only looks around.
	c            protocol.Claim // Without what is in the other fields.
	voters, list []uint32
}

func (p *rawClaim) fields(c *wire.Codec) {
	wire.Message(c, 1, &p.nodes, (*rawNodes).fields)
	wire.Optional(c, 2, &p.record, (*rawRecord).fields)
	wire.Sparse(c, 3, &p.c.Cluster, cluster)
	wire.Bool(c, 4, &p.c.Standing)
	wire.Bool(c, 5, &p.c.Leaving)
	wire.Bool(c, 6, &p.c.Yielded)
	wire.Uints(c, 7, &p.voters, math.MaxUint32, gossip.MaxMembers)
	wire.Uints(c, 8, &p.list, math.MaxUint32, protocol.MaxListed)
	wire.Bool(c, 9, &p.c.Found)
	wire.Uint(c, 10, &p.c.Evidence, math.MaxUint64)
	wire.Bool(c, 11, &p.c.Kept)
}

// claim is a row with a claim.
func claim(c *wire.Codec, n wire.Number, m *protocol.Claim) {
	if !c.At(n) {
		return
	}
	var p rawClaim
	if !c.Reading() {
		p = toClaim(*m)
	}
	if wire.Message(c, n, &p, (*rawClaim).fields) {
		var err error
		*m, err = fromClaim(&p)
		c.Fail(err)
	}
}

func toClaim(c protocol.Claim) rawClaim {
	var t table
	p := rawClaim{c: c, record: t.record(c.Record), voters: t.places(c.Voters), list: t.addresses(c.List)}
	p.nodes = t.raw()
	return p
}

func fromClaim(p *rawClaim) (c protocol.Claim, err error) {
	t, err := fromNodes(&p.nodes)
	if err != nil {
		return c, err
	}
	c = p.c
	if p.record != nil {
		if c.Record, err = t.fromRecord(p.record); err != nil {
			return c, err
		}
	}
	if c.Voters, err = t.list(p.voters); err != nil {
		return c, err
	}
	c.List, err = t.fromAddresses("the list", p.list, protocol.MaxListed)
	return c, err
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

// rawYield is the form of a yield.
type rawYield struct {
	to gossip.ClusterID
	at []uint32
}

func (p *rawYield) fields(c *wire.Codec) {
	wire.Sparse(c, 1, &p.to, cluster)
	wire.Uints(c, 2, &p.at, math.MaxUint32, gossip.YieldAddresses)
}

func (t *table) yield(y gossip.Yield) rawYield { return rawYield{y.To, t.addresses(y.Addresses())} }

func (t nodes) fromYield(p *rawYield) (gossip.Yield, error) {
	y := gossip.Yield{To: p.to}
	at, err := t.fromAddresses("a yield", p.at, gossip.YieldAddresses)
	copy(y.At[:], at)
	return y, err
}

// rawRecord is the form of a record, whose nodes are in the table of the claim.
type rawRecord struct {
	r                        protocol.Record // Without what is in the other fields.
	voters, previous         []uint32
	votersData, previousData []gossip.DataID
	yielded                  rawYield
}

func (p *rawRecord) fields(c *wire.Codec) {
	wire.Fixed(c, 1, &p.r.Data)
	wire.Int(c, 2, &p.r.Promise, math.MaxUint64)
	wire.Sparse(c, 3, &p.r.Cluster, cluster)
	wire.Sparse(c, 4, &p.r.Stamp, stamp)
	wire.Uints(c, 5, &p.voters, math.MaxUint32, gossip.MaxMembers)
	wire.Fixeds(c, 6, &p.votersData, gossip.MaxMembers)
	wire.Uints(c, 7, &p.previous, math.MaxUint32, gossip.MaxMembers)
	wire.Fixeds(c, 8, &p.previousData, gossip.MaxMembers)
	wire.Int(c, 9, &p.r.EpochBorn, math.MaxUint64)
	wire.Sparse(c, 10, &p.yielded, (*rawYield).fields)
}

func (t *table) record(r protocol.Record) *rawRecord {
	if r.Data == 0 {
		return nil
	}
	p := &rawRecord{r: r, yielded: t.yield(r.Yielded)}
	p.voters, p.votersData = t.voters(r.Voters)
	p.previous, p.previousData = t.voters(r.Previous)
	return p
}

func (t *table) voters(voters []protocol.Voter) (places []uint32, data []gossip.DataID) {
	for _, v := range voters {
		places, data = append(places, t.place(v.Node)), append(data, v.Data)
	}
	return places, data
}

func (t nodes) fromRecord(p *rawRecord) (r protocol.Record, err error) {
	r = p.r
	if r.Yielded, err = t.fromYield(&p.yielded); err != nil {
		return r, err
	}
	if r.Voters, err = t.fromVoters(p.voters, p.votersData); err != nil {
		return r, err
	}
	if r.Previous, err = t.fromVoters(p.previous, p.previousData); err != nil {
		return r, err
	}
	if err := r.Validate(); err != nil {
		return r, wire.Malformed("record: %v", err)
	}
	return r, nil
}

func (t nodes) fromVoters(places []uint32, data []gossip.DataID) ([]protocol.Voter, error) {
	if err := columns("voters", len(places), gossip.MaxMembers, len(data)); err != nil {
		return nil, err
	}
	var voters []protocol.Voter
	for i, place := range places {
		n, err := t.at(place)
		if err != nil {
			return nil, err
		}
		voters = append(voters, protocol.Voter{Node: n, Data: data[i]})
	}
	return voters, nil
}
