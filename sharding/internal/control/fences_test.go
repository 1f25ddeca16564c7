// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/control"
)

// A kind that is added after a node was fenced does not wait for that node: all kinds share
// what the control machine knows of fences.
func TestAKindThatIsAddedAfterAFence(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	f.set(gossip.Down, nodes[0])
	f.remove(nodes[0])
	f.fence(nodes[0])
	later := six()
	later.Name = "later"
	nodes[1].step(control.AddKind{Kind: later})
	f.run(5 * time.Second)
	require.True(t, nodes[1].Inspect("later").Coordinating)
}

// The control machine forgets that a node was fenced when the cluster forgets its tombstone.
// covers I23.
func TestFencesAreForgottenWithTheTombstones(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	f.set(gossip.Down, nodes[1])
	f.remove(nodes[1])
	f.fence(nodes[1])
	f.publish()
	require.Equal(t, 1, nodes[0].Fences())
	f.edit(func(e *gossip.Edit) bool { return e.SetPrunedBefore(time.Unix(2000, 0)) })
	f.publish()
	require.Zero(t, nodes[0].Fences())
}
