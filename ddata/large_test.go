// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership"
)

// A value that is larger than a frame, and than the window of a lane, is written, read and
// taken over by a node that joins.
func TestAValueLargerThanAFrame(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ int, m *membership.Config, _ *ddata.Config) {
			m.Transport.MaxFrameBytes, m.Transport.WindowBytes = 128<<10, 64<<10
		}
		w.start(2)
		ctx := patience.Context(t)
		key := ddata.NewKey[crdt.GSet[string]]("large")
		text := strings.Repeat("0123456789", 500_000)
		for _, n := range w.nodes {
			_, err := ddata.Update(ctx, n, key, ddata.All(), func(_ crdt.Origin, v crdt.GSet[string]) (crdt.GSet[string], error) {
				return v.Add(text + n.Self().String()), nil
			})
			require.NoError(t, err)
		}
		late := w.build()
		w.ready(late)
		for _, level := range []ddata.Consistency{ddata.Local(), ddata.All()} {
			got, err := ddata.Get(ctx, late, key, level)
			require.NoError(t, err)
			require.True(t, got.Has(text+w.nodes[0].Self().String()))
			require.True(t, got.Has(text+w.nodes[1].Self().String()))
		}
		require.NoError(t, late.add("visits", 1, ddata.All()))
	})
}

// What a hostile member sends is counted and dropped, and the replicator goes on.
func TestAHostileMember(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		n := w.nodes[0]
		lane := w.nodes[1].Transport().Lane(n.Self(), machine.LaneMessage)
		for _, frame := range []string{"", "nonsense", strings.Repeat("\xff", 1000), "\x7a\x02\x08\x01"} {
			require.NoError(t, lane.Append(component.ServiceData, func(dst []byte) []byte { return append(dst, frame...) }))
		}
		eventually(t, "all of it is counted", func() bool {
			s := n.Data().Stats()
			return s.Malformed+s.Broken == 4
		})
		require.NoError(t, n.add("visits", 1, ddata.All()))
	})
}
