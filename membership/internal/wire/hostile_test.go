// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/internal/wire"
)

// field appends a field of bytes.
func field(dst []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), value)
}

// nested puts a value into fields, the outermost first.
func nested(value []byte, numbers ...protowire.Number) []byte {
	for _, number := range slices.Backward(numbers) {
		value = field(nil, number, value)
	}
	return value
}

// hostile returns messages of the largest size that are made to cost their receiver as
// much as possible: cheap to write and dear to hold. The paths are those of the fields in
// the .proto.
func hostile() map[string][]byte {
	const size = wire.MaxSize - 1024
	packed := func(path ...protowire.Number) []byte { return nested(make([]byte, size), path...) }
	columns := func(numbers []protowire.Number, path ...protowire.Number) []byte {
		var all []byte
		for _, n := range numbers {
			all = field(all, n, make([]byte, size/len(numbers)))
		}
		return nested(all, path...)
	}
	empty := func(number protowire.Number, path ...protowire.Number) []byte { // Two bytes each.
		return nested(slices.Repeat(field(nil, number, nil), size/2), path...)
	}
	loose := func(number protowire.Number, path ...protowire.Number) []byte { // Numbers that are not packed.
		return nested(slices.Repeat(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 0), size/2), path...)
	}
	return map[string][]byte{
		"rows":                   columns([]protowire.Number{4, 5, 6}, 11, 1, 3, 3),
		"rows without packing":   loose(6, 11, 1, 3, 3),
		"rows packed one by one": nested(slices.Repeat(field(nil, 6, []byte{0}), size/3), 11, 1, 3, 3),
		"rows packed as nothing": nested(slices.Repeat(field(nil, 6, nil), size/2), 11, 1, 3, 3),
		"observers":              columns([]protowire.Number{1, 2, 3}, 11, 1, 3, 3),
		"hosts":                  empty(1, 11, 1, 2),
		"nodes":                  columns([]protowire.Number{2, 3}, 11, 1, 2),
		"roles":                  empty(8, 11, 1, 3, 1, 5),
		"services":               packed(11, 1, 3, 1, 5, 9),
		"zones":                  empty(1, 11, 1, 3, 1, 5),
		"members":                columns([]protowire.Number{1, 2, 3, 4}, 11, 1, 3, 1),
		"tombstones":             columns([]protowire.Number{1, 2, 3}, 11, 1, 3, 2),
		"causes":                 columns([]protowire.Number{1, 3, 4}, 11, 1, 3, 6),
		"reasons":                empty(2, 11, 1, 3, 6),
		"voters":                 packed(11, 1, 3, 4, 2),
		"clock":                  columns([]protowire.Number{1, 2}, 11, 1, 4),
		"edits":                  columns([]protowire.Number{1, 2, 3}, 10, 1, 8),
		"keys of edits":          packed(10, 1, 8, 4),
		"digest":                 columns([]protowire.Number{1, 2}, 9, 1, 3, 2),
		"settings":               empty(1, 4, 5),
		"differences":            empty(3, 6, 5),
		"nodes to be downed":     empty(1, 15, 4),
		"states one on another":  nested(slices.Repeat(nested(nil, 11, 1, 3, 3), size/8)),
		"types one on another":   slices.Repeat(append(nested(nil, 7), nested(nil, 8)...), size/4),
		"a state within a state": slices.Repeat(nested(nested(nil, 3), 11, 1), size/6),
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// It proves that a message of 4 MiB that was made to be dear is refused before
// anything is made of it.
//
// covers B7, B22, I36.
func TestHostileMessagesAreRefusedBeforeTheyCost(t *testing.T) {
	for name, b := range hostile() {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, len(b), wire.MaxSize)
			require.Greater(t, len(b), wire.MaxSize/2)
			var err error
			cost := allocated(func() { _, err = wire.Codec{}.Decode(b) })
			t.Logf("%d KiB for %d KiB: %v", cost>>10, len(b)>>10, err)
			require.ErrorIs(t, err, wire.ErrMalformed)
			require.Less(t, cost, uint64(256<<10))
		})
	}
}

// What members may send costs a small multiple of its size.
//
// covers I36.
func TestTheLargestStateCostsLittle(t *testing.T) {
	b := largest(t)
	var err error
	cost := allocated(func() { _, err = wire.Codec{}.Decode(b) })
	require.NoError(t, err)
	t.Logf("%d KiB for %d KiB", cost>>10, len(b)>>10)
	require.Less(t, cost, uint64(24<<20))
}

// largest returns the message with as many members, all of them voters, as a state can have.
func largest(t *testing.T) []byte {
	t.Helper()
	s := gossip.New(gossip.ClusterID{Born: 1, Nonce: 2}).Edit(node(0), func(e *gossip.Edit) {
		for i := range gossip.MaxMembers {
			e.Join(member(i))
		}
	})
	s = s.Edit(node(0), func(e *gossip.Edit) {
		var voters []gossip.NodeID
		for i := range gossip.MaxMembers {
			e.SetStatus(node(i), gossip.Up, gossip.UpNumber(i+1))
			voters = append(voters, node(i))
		}
		e.SetConfig(voters)
	})
	return encode(t, protocol.GossipState{State: s})
}

// crowded returns a message that has as many of everything as the limits allow, each
// as short as can be.
func crowded() []byte {
	const members, each, nodes = gossip.MaxMembers, 10 * gossip.MaxMembers, 8 * gossip.MaxMembers
	zeros := func(dst []byte, n int, numbers ...protowire.Number) []byte {
		for _, number := range numbers {
			dst = field(dst, number, make([]byte, n))
		}
		return dst
	}
	empty := func(dst []byte, n int, number protowire.Number) []byte {
		return append(dst, slices.Repeat(field(nil, number, nil), n)...)
	}
	profiles := zeros(nil, members, 3, 4, 6, 7, 10, 11)
	profiles = zeros(empty(empty(empty(profiles, members, 1), members, 2), each, 8), each, 9)
	profiles = field(field(profiles, 5, make([]byte, 8*members)), 12, make([]byte, 8*members))
	records := field(nil, 1, field(zeros(nil, members, 1, 2, 3, 4), 5, profiles))
	records = field(records, 2, zeros(nil, members, 1, 2, 3))
	records = field(records, 3, zeros(zeros(nil, members, 1, 2, 3), each, 4, 5, 6))
	records = field(records, 6, zeros(empty(nil, 2*members, 2), 2*members, 1, 3, 4))
	table := field(zeros(empty(nil, nodes, 1), nodes, 2, 3), 4, make([]byte, 8*nodes))
	state := field(field(nil, 2, table), 3, records)
	return nested(field(state, 4, zeros(nil, 2*members, 1, 2)), 11, 1)
}

// At the limits themselves a message costs so much that two of it, and an idle node, fit
// into the memory allowed.
//
// covers I36.
func TestMessagesAtTheLimitsCostLittle(t *testing.T) {
	b := crowded()
	require.LessOrEqual(t, len(b), wire.MaxSize)
	var err error
	cost := allocated(func() { _, err = wire.Codec{}.Decode(b) })
	t.Logf("%d KiB for %d KiB: %v", cost>>10, len(b)>>10, err)
	require.Error(t, err)
	require.Less(t, cost, uint64(64<<20))
}

// What may be decoded depends on who sends how much of what.
//
// covers B7, B22, I36.
func TestLargeMessagesAreOfMembers(t *testing.T) {
	member, asked, stranger := wire.Sender{Member: true}, wire.Sender{Asked: true}, wire.Sender{}
	const small, control, large = wire.MaxStrangerSize, wire.MaxControlSize, wire.MaxSize
	for name, c := range map[string]struct {
		kind  protowire.Number
		size  int
		from  wire.Sender
		taken bool
	}{
		"anything small of a stranger":       {11, small, stranger, true},
		"a state of a stranger":              {11, small + 1, stranger, false},
		"a welcome of a stranger":            {5, small + 1, stranger, false},
		"a welcome of who was asked":         {5, large, asked, true},
		"a state of who was asked":           {11, small + 1, asked, false},
		"a welcome of a member":              {5, small + 1, member, false},
		"a welcome of a member, asked":       {5, large, wire.Sender{Member: true, Asked: true}, true},
		"a state of a member":                {11, large, member, true},
		"a difference of a member":           {10, large, member, true},
		"a status of a member":               {9, large, member, true},
		"a verdict of a member":              {15, control, member, true},
		"a larger verdict of a member":       {15, control + 1, member, false},
		"a large heartbeat of a member":      {7, control + 1, member, false},
		"what nobody knows of a member":      {900, small + 1, member, false},
		"what begins with nonsense":          {0, small + 1, member, false},
		"a refusal to join of who was asked": {6, small + 1, asked, false},
	} {
		b := protowire.AppendVarint(nil, uint64(c.kind)<<3|uint64(protowire.BytesType))
		err := wire.Admit(append(b, make([]byte, c.size-len(b))...), c.from)
		if c.taken {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, wire.ErrMalformed, name)
		}
	}
}
