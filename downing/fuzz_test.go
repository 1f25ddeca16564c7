// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
)

// input yields the bytes of a fuzzer one by one, and zeros after the last.
type input []byte

func (in *input) next(below int) int {
	if len(*in) == 0 {
		return 0
	}
	b := (*in)[0]
	*in = (*in)[1:]
	return int(b) % below
}

// view reads a view of the members. Nothing that it reads is refused, so that views
// occur which no cluster would bring about.
func (in *input) view(members []*gossip.Member, base gossip.Base) downing.View {
	copied := make([]*gossip.Member, len(members))
	for i, m := range members {
		c := *m
		if s := gossip.Status(in.next(16)); s >= gossip.Joining && s <= gossip.Down {
			c.Status = s
		}
		copied[i] = &c
	}
	v := downing.View{Members: copied, Base: base}
	for _, m := range copied {
		if m.Status != gossip.Down && v.Self.IsZero() {
			v.Self = m.Node
		}
		if in.next(2) == 0 {
			v.Seen = append(v.Seen, m.Node)
		}
	}
	for range in.next(24) {
		r := downingtest.Complaint(members[in.next(len(members))].Node, members[in.next(len(members))].Node)
		if in.next(8) == 7 {
			r.Status = gossip.Terminated
		}
		v.Unreachable = append(v.Unreachable, r)
	}
	return v
}

// voters reads a set of voters that is not empty.
func (in *input) voters(n int) []gossip.NodeID {
	var ids []gossip.NodeID
	for i := range n {
		if in.next(4) > 0 {
			ids = append(ids, downingtest.Node(i))
		}
	}
	if len(ids) == 0 {
		return nodes(0)
	}
	return ids
}

// FuzzDecision uses two views that have nothing in common but one set of voters, like
// the most different two sides of one cluster. Each decision must keep the contract
// and be the same whichever node asks; and if both views keep a side, a voter is on
// both, so they are not two sides. covers I4.
func FuzzDecision(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{5, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 1, 0, 0})
	f.Add([]byte{7, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 1, 8, 9, 3, 7, 3, 0, 1, 0, 1, 0, 1, 0, 1, 6, 0, 1, 7, 2, 3, 0, 4, 5, 1})
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		b := make([]byte, 160)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := input(data)
		n := 1 + in.next(8)
		members := downingtest.Members(n)
		common := in.voters(n + 1)
		one := in.view(members, gossip.Base{common, in.voters(n + 1)})
		two := in.view(members, gossip.Base{in.voters(n + 1), common})
		requireOneSurvivor(t, one, two)
	})
}

func TestPropertyOneSurvivor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := input(rapid.SliceOfN(rapid.Byte(), 0, 160).Draw(t, "bytes"))
		n := 1 + in.next(8)
		members := downingtest.Members(n)
		common := in.voters(n + 1)
		requireOneSurvivor(t, in.view(members, gossip.Base{common}), in.view(members, gossip.Base{in.voters(n), common}))
	})
}

// requireOneSurvivor requires that the voters kept by two decisions have a voter in
// common if both keep a side.
func requireOneSurvivor(t require.TestingT, one, two downing.View) {
	a, b := keptVoters(t, one), keptVoters(t, two)
	if len(a) == 0 || len(b) == 0 {
		return
	}
	require.True(t, slices.ContainsFunc(a, func(id gossip.NodeID) bool { return slices.Contains(b, id) }),
		"both survive: %v and %v\n%v\n%v", a, b, one, two)
}

// keptVoters returns the voters that a decision to keep the side keeps, the same for
// every member that can ask.
func keptVoters(t require.TestingT, v downing.View) []gossip.NodeID {
	if v.Self.IsZero() {
		return nil
	}
	d := decide(t, v)
	for _, m := range v.Members {
		if m.Status != gossip.Down {
			v.Self = m.Node
			require.Equal(t, d, decide(t, v))
		}
	}
	if d.Verdict != downing.KeepSide {
		return nil
	}
	var kept []gossip.NodeID
	for _, m := range v.Side().Members() {
		if !slices.Contains(d.Down, m.Node) {
			kept = append(kept, m.Node)
		}
	}
	return kept
}

// FuzzCheck compares the check of arbitrary decisions with the contract in its
// plainest form.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{4}, byte(1), []byte{1, 2}, true)
	f.Add([]byte{4}, byte(2), []byte{0, 1, 2, 3}, true)
	f.Add([]byte{3}, byte(3), []byte{0, 1, 2}, false)
	f.Add([]byte{3}, byte(0), []byte{}, true)
	f.Add([]byte{3}, byte(9), []byte{9, 9}, false)
	f.Fuzz(func(t *testing.T, data []byte, verdict byte, named []byte, majorityOnly bool) {
		in := input(data)
		n := 1 + in.next(6)
		v := in.view(downingtest.Members(n), gossip.Base{in.voters(n)})
		d := downing.Decision{Verdict: downing.Verdict(verdict)}
		for _, b := range named {
			d.Down = append(d.Down, downingtest.Node(int(b%16)))
		}
		class := downing.Class{MajorityOnly: majorityOnly}
		err := downing.Check(v, class, d)
		require.Equal(t, plain(v, class, d), err == nil, "%v: %v\n%v", d, err, v)
	})
}

// plain is the contract of decisions in its plainest form.
func plain(v downing.View, class downing.Class, d downing.Decision) bool {
	if v.Self.IsZero() || d.Verdict > downing.DownAll {
		return false
	}
	for i, id := range d.Down {
		m := v.Member(id)
		if m == nil || !downing.CanBeDowned(m) || i > 0 && d.Down[i-1].Compare(id) >= 0 {
			return false
		}
	}
	side := v.Side()
	kept := false
	for _, m := range v.Members {
		named := slices.Contains(d.Down, m.Node)
		kept = kept || side.Has(m.Node) && downing.CanBeDowned(m) && !named
		switch {
		case d.Verdict == downing.None && named,
			d.Verdict == downing.DownSide && downing.CanBeDowned(m) && side.Has(m.Node) != named,
			d.Verdict == downing.DownAll && downing.CanBeDowned(m) && !named:
			return false
		}
	}
	if d.Verdict != downing.KeepSide {
		return true
	}
	return kept && (!class.MajorityOnly || v.Base.Wins(func(id gossip.NodeID) bool {
		m := v.Member(id)
		counts := m != nil && (m.Status >= gossip.Up && m.Status <= gossip.Leaving || m.Status == gossip.Exiting && slices.Contains(v.Seen, id))
		return counts && side.Has(id) && !slices.Contains(d.Down, id)
	}))
}
