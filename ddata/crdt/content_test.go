// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
)

// role and score are named types with basic types under them.
type (
	role  string
	score int16
)

// holds checks that registers and maps of V survive their encoding with a content.
func holds[V any](t *testing.T, name string, v V) {
	t.Helper()
	var l, back crdt.LWWRegister[V]
	require.Equal(t, "lwwregister["+name+"]", l.TypeName())
	raw, err := l.Set(1, 5, v).AppendBinary(nil)
	require.NoError(t, err)
	require.NoError(t, back.UnmarshalBinary(raw))
	got, is := back.Value()
	require.True(t, is)
	require.Equal(t, v, got)
	at, when := back.Written()
	require.Equal(t, crdt.Origin(1), at)
	require.EqualValues(t, 5, when)

	m := crdt.LWWMap[score, V]{}.Put(1, 5, -300, v)
	raw, err = m.AppendBinary(nil)
	require.NoError(t, err)
	var n crdt.LWWMap[score, V]
	require.NoError(t, n.UnmarshalBinary(raw))
	got, is = n.Get(-300)
	require.True(t, is)
	require.Equal(t, v, got)
	require.Equal(t, "lwwmap[int16,"+name+"]", n.TypeName())
}

func TestRegistersHoldContentsOfManyTypes(t *testing.T) {
	holds(t, "string", "text")
	holds(t, "string", role("admin"))
	holds(t, "bytes", []byte{0, 255})
	holds(t, "bool", true)
	holds(t, "int16", score(math.MinInt16))
	holds(t, "int64", int64(math.MinInt64))
	holds(t, "uint64", uint64(math.MaxUint64))
	holds(t, "float64", math.Inf(-1))
	holds(t, "float32", float32(0.1))
	holds(t, "time.Time", time.Unix(1_700_000_000, 5).UTC())
	holds(t, "netip.AddrPort", netip.MustParseAddrPort("[fe80::1]:7946"))
	holds(t, "gcounter", crdt.GCounter{}.Add(3, 4).Settled())
}

// plain has no encoding, brittle has one that fails.
type (
	plain   struct{ N int }
	brittle struct{ fails bool }
)

var errBrittle = errors.New("brittle")

func (b brittle) MarshalBinary() ([]byte, error) {
	if b.fails {
		return nil, errBrittle
	}
	return nil, nil
}

func (b *brittle) UnmarshalBinary([]byte) error { return errBrittle }

func TestContentsWithoutEncodingAreErrors(t *testing.T) {
	_, err := crdt.LWWRegister[plain]{}.Set(1, 1, plain{}).AppendBinary(nil)
	require.ErrorIs(t, err, crdt.ErrType)
	_, err = crdt.MVRegister[*int]{}.Set(1, nil).AppendBinary(nil)
	require.ErrorIs(t, err, crdt.ErrType)
	_, err = crdt.LWWMap[string, brittle]{}.Put(1, 1, "k", brittle{true}).AppendBinary(nil)
	require.ErrorIs(t, err, errBrittle)
	raw, err := crdt.LWWMap[string, brittle]{}.Put(1, 1, "k", brittle{}).AppendBinary(nil)
	require.NoError(t, err)
	var m crdt.LWWMap[string, brittle]
	require.ErrorIs(t, m.UnmarshalBinary(raw), crdt.ErrMalformed)
	require.Zero(t, m.Len())
}

// What a caller does to a byte slice that was written or read is not seen by the value.
func TestByteSlicesAreCopied(t *testing.T) {
	b := []byte("abc")
	l := crdt.LWWRegister[[]byte]{}.Set(1, 1, b)
	m := crdt.MVRegister[[]byte]{}.Set(1, b)
	b[0] = 'x'
	got, _ := l.Value()
	require.Equal(t, "abc", string(got))
	got[1] = 'x'
	got, _ = l.Value()
	require.Equal(t, "abc", string(got))
	require.Equal(t, "abc", string(m.Values()[0]))
}

// A slow clock does not lose a write, ties go to the lowest origin, and
// a clock at the end of time stops the register and breaks nothing.
func TestTimesOfWrites(t *testing.T) {
	l := crdt.LWWRegister[string]{}.Set(5, 100, "first").Set(5, 7, "slow")
	_, when := l.Written()
	require.EqualValues(t, 101, when)
	v, _ := l.Value()
	require.Equal(t, "slow", v)

	a, b := crdt.LWWRegister[string]{}.Set(2, 9, "low"), crdt.LWWRegister[string]{}.Set(3, 9, "high")
	v, _ = a.Merge(b).Value()
	require.Equal(t, "low", v)
	v, _ = b.Merge(a).Value()
	require.Equal(t, "low", v)

	end := crdt.LWWRegister[string]{}.Set(2, math.MaxInt64, "end").Settled()
	later := end.Set(3, 1, "later")
	require.Equal(t, later.Merge(end), later.Settled())

	first := crdt.LWWRegister[string]{}.SetFirst(1, math.MinInt64, "early").SetFirst(1, 5, "late")
	v, _ = first.Value()
	require.Equal(t, "early", v)
}

func TestVersionVectorsCompare(t *testing.T) {
	a := crdt.VersionVector{}.Increment(1).Raise(2, 5).Raise(2, 3)
	b := a.Increment(1)
	require.EqualValues(t, 5, a.Of(2))
	require.Equal(t, crdt.Equal, a.Compare(a.Settled()))
	require.Equal(t, crdt.Before, a.Compare(b))
	require.Equal(t, crdt.After, b.Compare(a))
	require.Equal(t, crdt.Concurrent, b.Compare(a.Increment(3)))
	require.Equal(t, "equal before after concurrent order(9)",
		crdt.Equal.String()+" "+crdt.Before.String()+" "+crdt.After.String()+" "+crdt.Concurrent.String()+" "+crdt.Order(9).String())
}

// A set that was made elsewhere has events with the names of events of the map; it must not
// be taken for one of the map's own.
func TestValueFromElsewhereIsNoUpdate(t *testing.T) {
	elsewhere := func(crdt.ORSet[string]) crdt.ORSet[string] { return crdt.ORSet[string]{}.Add(1, "x") }
	m := mapOfSets{}.Update(1, "a", elsewhere) // The map is empty, and so was the set.
	require.True(t, m.Has("a"))
	require.Panics(t, func() { m.Update(1, "b", elsewhere) })
	require.False(t, m.Has("b"))
}

// Amounts stop at their bound, and do not wrap around.
// covers B33.
func TestCountersStopAtTheirBound(t *testing.T) {
	g := crdt.GCounter{}.Add(1, math.MaxUint64).Add(1, 1)
	require.EqualValues(t, 1<<60, g.Value())
	for at := range crdt.Origin(20) {
		g = g.Add(at+1, math.MaxUint64)
	}
	require.EqualValues(t, math.MaxInt64, g.Value())
	p := crdt.PNCounter{}.Add(1, math.MinInt64).Add(2, math.MaxInt64)
	require.Zero(t, p.Value())
	raw, err := g.Retire(func(crdt.Origin) bool { return true }).AppendBinary(nil)
	require.NoError(t, err)
	require.NoError(t, g.UnmarshalBinary(raw))
	require.EqualValues(t, 1<<60, g.Value())
	require.ErrorIs(t, g.UnmarshalBinary(append([]byte{1, 1, 1}, binary.AppendUvarint(nil, 1<<60+1)...)), crdt.ErrMalformed)
}
