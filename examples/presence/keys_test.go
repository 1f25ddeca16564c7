// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/ddata/crdt"
)

// What is written to a seen key is read from it, to the millisecond.
func TestSeenComesBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := seen{rapid.Int64().Draw(t, "milli"), rapid.String().Draw(t, "node")}
		typ := crdt.TypeOf[crdt.LWWRegister[seen]]()
		bytes, err := typ.Append(nil, crdt.LWWRegister[seen]{}.Set(1, 1, want))
		require.NoError(t, err)
		decoded, err := typ.Decode(bytes)
		require.NoError(t, err)
		got, ok := decoded.(crdt.LWWRegister[seen]).Value()
		require.True(t, ok)
		require.Equal(t, want, got)
	})
}

// The type keeps its name though the program is built under another path: the name is on
// disks.
func TestTheTypeOfSeenKeysHasANameOfItsOwn(t *testing.T) {
	require.Equal(t, "lwwregister[presence.seen]", crdt.LWWRegister[seen]{}.TypeName())
}

func TestBytesThatAreNoSeenAreRefused(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"nothing":                    {},
		"a number that does not end": {0x80},
		"a number in too many bytes": {0x80, 0x00},
		"a number of over 64 bits":   {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
	} {
		require.ErrorIs(t, new(seen).UnmarshalBinary(bytes), errSeen, name)
	}
}

// FuzzSeen decodes any bytes: what is accepted is encoded as the same bytes.
func FuzzSeen(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x80})
	f.Add([]byte{0x80, 0x00})
	f.Add([]byte("\x02127.0.0.1:7946"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s seen
		if s.UnmarshalBinary(b) != nil {
			return
		}
		again, err := s.AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}

// Each node answers for its own entries, and the leader for those of nodes that are gone.
func TestPlanOfTheOnlineKey(t *testing.T) {
	const self, other, gone = "n1", "n2", "n3"
	var m crdt.ORMultiMap[string, string]
	for _, p := range []place{{"alice", self}, {"bob", other}, {"bob", gone}, {"carol", gone}} {
		m = m.Add(1, p.name, p.node)
	}
	member := func(node string) bool { return node != gone }
	for name, test := range map[string]struct {
		here        []string
		leads       bool
		add, remove []place
	}{
		"nothing to do":              {here: []string{"alice"}},
		"somebody has come":          {here: []string{"alice", "bob"}, add: []place{{"bob", self}}},
		"somebody has left":          {remove: []place{{"alice", self}}},
		"a node has left, it leads":  {here: []string{"alice"}, leads: true, remove: []place{{"bob", gone}, {"carol", gone}}},
		"all at once while it leads": {here: []string{"dan"}, leads: true, add: []place{{"dan", self}}, remove: []place{{"alice", self}, {"bob", gone}, {"carol", gone}}},
	} {
		add, remove := plan(m, self, test.here, test.leads, member)
		require.Equal(t, test.add, add, name)
		require.Equal(t, test.remove, remove, name)
	}
	add, remove := plan(m, self, []string{"alice"}, true, func(string) bool { return false })
	require.Empty(t, slices.Concat(add, slices.DeleteFunc(remove, func(p place) bool { return p.node != self })),
		"a node leaves its own entries alone, whatever it believes of the members")
}
