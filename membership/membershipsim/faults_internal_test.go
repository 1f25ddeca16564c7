// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// The faults lose, one by one, every type of message that nodes send while a cluster is
// founded, is cut, loses a member and starts again. covers F15.
func TestEveryTypeOfMessageIsLost(t *testing.T) {
	lost := make(map[reflect.Type]bool)
	for _, m := range append(messageTypes(), foundingTypes()...) {
		lost[reflect.TypeOf(m)] = true
	}
	var all []gossip.Address
	for i := range 5 {
		all = append(all, gossip.Address{Host: fmt.Sprintf("n%d", i), Port: 7946})
	}
	w := simulation.New(simulation.Options{Seed: 1})
	Serve(w)
	supervisor := &Supervisor{Seeds: all, Min: time.Second, Max: 2 * time.Second}
	supervisor.Supervise(w)
	seen := make(map[reflect.Type]bool)
	w.Network().Lose("nothing", func(_, _ gossip.Address, message any) bool {
		seen[reflect.TypeOf(message)] = true
		return false
	})
	build := Component(Config{Disk: true})
	for _, a := range all {
		w.Start(a, func(env simulation.Env) []machine.Component { return []machine.Component{build(env)} })
	}
	require.NoError(t, w.Run(30*time.Second))
	w.Network().Split(all[:2], all[2:])
	require.NoError(t, w.Run(time.Minute))
	w.Network().Heal()
	w.Input(all[4], protocol.Service, protocol.Leave{Address: all[4]})
	require.NoError(t, w.Run(time.Minute))
	require.NoError(t, Settled(w))
	for sent := range seen {
		require.True(t, lost[sent], "%v is never lost by itself", sent)
	}
}
