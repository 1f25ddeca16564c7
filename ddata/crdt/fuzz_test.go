// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"encoding"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
)

// fuzz decodes any bytes as one type: they are refused with the one error, or are a value
// whose encoding they are, and which takes no more memory than its bytes justify. It can
// be merged, with itself and with a value that was made by mutators.
func fuzz[T crdt.Value[T], P interface {
	*T
	encoding.BinaryUnmarshaler
}](f *testing.F, m *model[T],
) {
	f.Helper()
	kind := crdt.TypeOf[T, P]()
	var grown T
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		e := m.draw(rnd)
		e.at = crdt.Origin(1 + i%3)
		grown = m.apply(grown, &e)
		raw, err := kind.Append(nil, grown)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := kind.Decode(raw)
		if err != nil {
			if !errors.Is(err, crdt.ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		again, err := kind.Append(nil, v)
		require.NoError(t, err)
		require.Equal(t, raw, again, "bytes that are not canonical were decoded")
		require.Less(t, kind.Size(v), 4096+128*len(raw))
		same, err := kind.Append(nil, kind.Merge(v, v))
		require.NoError(t, err)
		require.Equal(t, raw, same)
		m.observe(kind.Merge(grown, v).(T))
		kind.Retire(v, func(at crdt.Origin) bool { return at%2 == 0 })
	})
}

func FuzzGCounter(f *testing.F) { fuzz(f, gcounters()) }

func FuzzPNCounter(f *testing.F) { fuzz(f, pncounters()) }

func FuzzVersionVector(f *testing.F) { fuzz(f, versionVectors()) }

func FuzzFlag(f *testing.F) { fuzz(f, flags()) }

func FuzzGSet(f *testing.F) { fuzz(f, gsets()) }

func FuzzORSet(f *testing.F) { fuzz(f, orsets()) }

func FuzzORMultiMap(f *testing.F) { fuzz(f, ormultimaps()) }

func FuzzPNCounterMap(f *testing.F) { fuzz(f, pncountermaps()) }

func FuzzLWWRegister(f *testing.F) { fuzz(f, lwwregisters()) }

func FuzzLWWMap(f *testing.F) { fuzz(f, lwwmaps()) }

func FuzzMVRegister(f *testing.F) { fuzz(f, mvregisters()) }

func FuzzORMapOfCounters(f *testing.F) { fuzz(f, ormapsOfCounters()) }

func FuzzORMapOfMaps(f *testing.F) { fuzz(f, ormapsOfMaps()) }
