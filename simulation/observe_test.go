// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/simulation"
)

// Who is given the options of a run only sees its messages, its cuts and what its script says, and
// the run stays what it is.
func TestWorldIsObservedFromItsOptions(t *testing.T) {
	run := func(begin func(*simulation.World)) (*simulation.World, []simulation.DirectedLink) {
		w := pingers(simulation.Options{Seed: 3, Begin: begin, Network: simulation.Delivery{Loss: 0.2}}, 3)
		require.NoError(t, w.Run(5*time.Second))
		w.Network().Cut(address(0), address(1))
		w.Network().Clog(address(2))
		cut := w.Network().Blocked()
		require.NoError(t, w.Run(5*time.Second))
		w.Network().Heal()
		require.Empty(t, w.Network().Blocked())
		return w, cut
	}
	plain, _ := run(nil)
	var said []string
	sent, lost := uint64(0), uint64(0)
	observed, cut := run(func(w *simulation.World) {
		require.Empty(t, w.Nodes())
		w.Listen(func(text string) { said = append(said, text) })
		w.Network().Observe(func(p simulation.Passage) {
			sent++
			if p.Lost {
				lost++
				require.Zero(t, p.Arrives)
				return
			}
			require.Greater(t, p.Arrives, w.Now())
			require.NotEqual(t, p.To, p.From.ID().Address)
		})
	})
	require.Equal(t, plain.Trace().Hash(), observed.Trace().Hash())
	require.Equal(t, []uint64{observed.Stats().Sent / 3 * 2, observed.Stats().Lost}, []uint64{sent, lost}, "each node pings itself too")
	require.Positive(t, lost)
	require.Equal(t, []string{"clog " + address(2).String(), "healed"}, said)
	require.Equal(t, []simulation.DirectedLink{
		{From: address(0), To: address(1)},
		{From: address(0), To: address(2)},
		{From: address(1), To: address(2)},
		{From: address(2), To: address(0)},
		{From: address(2), To: address(1)},
	}, cut)
}
