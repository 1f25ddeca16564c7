// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
)

// The HTTP interface has everything that an explanation of sharding has.
func TestExplanationsAreTakenOverWhole(t *testing.T) {
	at := time.Unix(1, 0)
	x := sharding.Explanation{
		Kind: "k", Entity: "e", Shard: 3, Self: "s", Complete: true, Coordinator: "c", Home: "h", Epoch: "1.2.3",
		State: "serving", Since: at, Decision: "d", Pending: []string{"p"},
		Moves: []sharding.Move{
			{From: "f", To: "h", Started: at, Ended: at.Add(1), Outcome: "moved", Reason: "r"},
			{From: "h", Started: at, Ended: at.Add(2), Outcome: "lost"},
		},
	}
	require.Equal(t, management.Explanation{
		Kind: "k", Entity: "e", Shard: 3, Self: "s", Complete: true, Coordinator: "c", Home: "h", Epoch: "1.2.3",
		State: "serving", Since: at, Decision: "d", Pending: []string{"p"},
		History: []management.Move{
			{At: at.Add(1), From: "f", To: "h", Reason: "moved: r"}, {At: at.Add(2), From: "h", Reason: "lost"},
		},
	}, explanation(x))
}
