// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
)

func TestCountersCountOnceWhatIsHeardTwice(t *testing.T) {
	var a crdt.PNCounter
	a = a.Add(1, 5).Add(1, -2)
	b := crdt.PNCounter{}.Add(2, 10)
	delta, ok := a.Delta()
	require.True(t, ok)
	b = b.Merge(delta).Merge(delta).Merge(a)
	require.EqualValues(t, 13, b.Value())
	_, ok = b.Delta()
	require.False(t, ok)

	raw, err := b.AppendBinary(nil)
	require.NoError(t, err)
	var c crdt.PNCounter
	require.NoError(t, c.UnmarshalBinary(raw))
	require.Equal(t, b, c)
	require.EqualValues(t, 13, b.Retire(func(o crdt.Origin) bool { return o == 1 }).Value())
}

func TestTypesAreKnownByName(t *testing.T) {
	counter := crdt.TypeOf[crdt.GCounter]()
	require.Equal(t, "gcounter", counter.Name())
	v := counter.Merge(counter.Zero(), crdt.GCounter{}.Add(1, 3))
	raw, err := counter.Append(nil, v)
	require.NoError(t, err)
	w, err := counter.Decode(raw)
	require.NoError(t, err)
	require.Equal(t, v, w)
	_, err = counter.Decode(append(raw, 0))
	require.ErrorIs(t, err, crdt.ErrMalformed)
	require.Panics(t, func() { counter.Merge(v, crdt.PNCounter{}) })
}
