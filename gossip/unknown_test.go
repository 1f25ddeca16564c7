// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// What a member of a later release says of itself is passed on by one that does not understand it, in states and in
// differences of them, whatever else of the record changes there; the later word of the member counts.
func TestUnknownFieldsArePassedOn(t *testing.T) {
	t.Parallel()
	a, b := node(1), node(2)
	said := gossip.Unknown{Version: 1, Fields: "\x18\x01"}
	older := gossip.New(gossip.ClusterID{Born: 1}).Edit(a, func(e *gossip.Edit) {
		require.True(t, e.Join(gossip.Member{Node: a}))
		require.True(t, e.Join(gossip.Member{Node: b, Unknown: said}))
	})
	before := older
	later := rewire(t, older).See(b).Edit(b, func(e *gossip.Edit) { require.True(t, e.SetUnknown("\x18\x02")) })
	older = older.Edit(a, func(e *gossip.Edit) {
		require.True(t, e.SetStatus(b, gossip.Up, 1))
		e.SetUnknownRegisters("\x20\x01")
	})
	merged := older.Merge(later)
	said = gossip.Unknown{Version: 2, Fields: "\x18\x02"}
	require.Equal(t, said, merged.Member(b).Unknown)
	require.Equal(t, gossip.Up, merged.Member(b).Status)
	requireEqual(t, merged, later.Merge(older), "either way")
	require.Contains(t, merged.Describe(), "unknown/2=1802")

	heard, err := before.Apply(merged.Delta(before.Clock()))
	require.NoError(t, err)
	require.Equal(t, said, heard.Member(b).Unknown)
	require.Equal(t, gossip.Unknown{Version: 1, Fields: "\x20\x01"}, heard.Parts().Unknown, "the registers too")
	require.Equal(t, heard.Fingerprint(), before.Merge(merged).Fingerprint())
	require.NotEqual(t, older.Fingerprint(), merged.Fingerprint(), "what is said is an edit, which the clock counts")
}

// Voters, and a downing strategy, are one value with all of their fields: the next generation with the same content has
// the unknown ones too, one with another content is that of who wrote it.
func TestUnknownFieldsOfARegisterBelongToItsValue(t *testing.T) {
	t.Parallel()
	p := outbidding(t)
	s, err := gossip.FromParts(p)
	require.NoError(t, err)
	exiting := s.Edit(node(0), func(e *gossip.Edit) { require.True(t, e.SetStatus(node(1), gossip.Exiting, 0)) })
	require.Equal(t, p.Config.Gen+1, exiting.Config().Gen)
	require.Equal(t, "\x50\x01", exiting.Config().Unknown)
	require.Equal(t, p.Downing.Gen+1, exiting.Downing().Gen)
	require.Equal(t, "\x58\x01", exiting.Downing().Unknown)
	require.Equal(t, gossip.Unknown{Version: 6, Fields: "\x60\x01"}, exiting.Parts().Unknown, "who goes may have given the next one")
	other := s.Edit(node(0), func(e *gossip.Edit) {
		require.True(t, e.SetConfig([]gossip.NodeID{node(0)}))
		require.True(t, e.SetDowning(gossip.DowningStrategy{Name: "other"}))
	})
	require.Empty(t, other.Config().Unknown)
	require.Empty(t, other.Downing().Unknown)
}

// outbidding returns the parts of a state whose registers have unknown fields.
func outbidding(t *testing.T) gossip.Raw {
	t.Helper()
	voters := []gossip.NodeID{node(0), node(1)}
	return gossip.Raw{
		Members:      []*gossip.Member{{Node: node(0), Status: gossip.Up, UpNumber: 1}, {Node: node(1), Status: gossip.Leaving, UpNumber: 2}},
		LastUpNumber: 2, Unknown: gossip.Unknown{Version: 5, Fields: "\x60\x01"},
		Config:  gossip.Voters{Gen: 3, By: node(0).UID, Voters: voters, Unknown: "\x50\x01"},
		Downing: gossip.DowningRegister{Gen: 2, DowningStrategy: gossip.DowningStrategy{Name: "one"}, Unknown: "\x58\x01"},
	}
}

// Who would fill the records of everybody, or forge a version, is refused.
func TestUnknownFieldsAreBounded(t *testing.T) {
	t.Parallel()
	most := strings.Repeat("\x18\x01", gossip.MaxUnknownBytes/2)
	require.NoError(t, (&gossip.Member{Node: node(1), Status: gossip.Joining, Unknown: gossip.Unknown{Version: 1, Fields: most}}).Validate())
	s := gossip.New(gossip.ClusterID{Born: 1})
	for _, u := range []gossip.Unknown{{Version: 1, Fields: most + "\x00"}, {Version: 1 << 41}} {
		joined := s.Edit(node(1), func(e *gossip.Edit) { require.False(t, e.Join(gossip.Member{Node: node(1), Unknown: u})) })
		require.Same(t, s, joined)
	}
}
