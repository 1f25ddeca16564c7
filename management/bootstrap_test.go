// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// looking returns the configuration of the i-th node, which looks contact points up.
func looking(i int) membership.Config {
	c := configuration(i, seeds()...)
	c.Membership.Discovery.Methods = []string{"static"}
	return c
}

// A node that looks contact points up says in one line what it waits for, at its own route
// and among the members.
func TestANodeSaysForWhichContactPointsItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memory.NewNetwork()
		first := start(t, network, looking(1))
		<-time.After(4 * time.Second)
		b := of[management.BootstrapStatus](t, first, "/bootstrap", 200)
		require.Regexp(t, `^1 of 2 contact points, unchanged for [34] s of 5 s; 10.0.0.2:7946 does not answer: .+`, b.Waits)
		require.Equal(t, []management.ContactPoint{{Address: "10.0.0.1:7946", Answers: true}, {Address: "10.0.0.2:7946"}}, b.ContactPoints)
		require.True(t, b.Looks)
		require.Equal(t, 2, b.Required)
		require.Equal(t, "5s", b.StableMargin)
		require.NotNil(t, b.LookedUp)
		w := of[management.ClusterMembers](t, first, "/v1/members", 200).Waiting
		require.Regexp(t, `^1 of 2 contact points, unchanged for [34] s of 5 s; 10.0.0.2:7946 does not answer`, w.Reason)
		require.True(t, w.Found)
		second := start(t, network, looking(2))
		require.NoError(t, second.AwaitUp(t.Context()))
		require.Equal(t, "nothing: this node is in a cluster", of[management.BootstrapStatus](t, second, "/bootstrap", 200).Waits)
	})
}

func TestANodeThatLooksForNobodySaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := node(t, memory.NewNetwork(), 1, "10.0.0.1:7946")
		b := of[management.BootstrapStatus](t, n, "/bootstrap", 200)
		require.Equal(t, management.BootstrapStatus{Self: n.Self().String(), Waits: "nothing: this node looks no contact points up"}, b)
	})
}
