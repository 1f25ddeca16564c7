// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// covers F3, F50: a supervisor starts nodes where they stand, with the disk of the
// address or without.
func TestSupervisorStartsNodesInsideThePartition(t *testing.T) {
	w := simulation.New(simulation.Options{Seed: 4})
	membershipsim.Serve(w)
	supervisor := &membershipsim.Supervisor{Seeds: addresses(0, 3), Min: time.Second, Max: 2 * time.Second, Lose: 0.5}
	supervisor.Supervise(w)
	component := membershipsim.Component(membershipsim.Config{Disk: true})
	held := map[gossip.Address][]any{}
	for i := range 5 {
		w.Start(address(i), func(env simulation.Env) []machine.Component {
			held[env.Self.Address] = append(held[env.Self.Address], env.Disk.Value)
			return []machine.Component{component(env)}
		})
	}
	kept, lost := 0, 0
	for range 5 {
		requireSettled(t, w, time.Minute)
		require.NoError(t, w.Run(5*time.Second))
		w.Network().Split(addresses(0, 3), addresses(3, 5))
		require.NoError(t, w.Run(20*time.Second))
		require.False(t, w.Network().Connected(address(3), address(0)))
		require.Len(t, w.Nodes(), 5, "the losing side has ended, and runs again")
		w.Network().Heal()
	}
	for _, i := range []int{3, 4} {
		all := held[address(i)]
		require.Len(t, all, 6, "each partition ends it once")
		for _, value := range all[1:] {
			if value == nil {
				lost++
			} else {
				require.IsType(t, protocol.Record{}, value)
				kept++
			}
		}
	}
	require.Positive(t, kept)
	require.Positive(t, lost)
	require.Equal(t, 5+2*5, supervisor.Starts)
}
