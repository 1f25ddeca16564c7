// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/membershipsim"
)

// Two hundred nodes start in one moment, and half of them are let in by one member, half
// by another: the two halves hear of each other, and become one cluster. With seed 11 and
// these few contacts they did not: all that a member knew were those that came by the same
// way, and it refused the news of strangers. covers F1, F8, I9.
func TestThoseWhoJoinByDifferentMembersBecomeOneCluster(t *testing.T) {
	from, to := seedsFrom(11, 1)
	for seed := from; seed < to; seed++ {
		l := newLending(t, seed, 200)
		for i := range l.n {
			if i < 3 {
				l.start(i)
			} else {
				l.startBy(i, place(1+i%2))
			}
		}
		took, err := l.RunUntil(20*time.Second, func() bool {
			for _, n := range l.nodes {
				s := membershipsim.MachineOf(n).State()
				if m := s.Member(n.ID()); m == nil || m.Status != gossip.Up || len(s.Members()) != l.n {
					return false
				}
			}
			return true
		})
		require.NoError(t, err, "seed %d", seed)
		t.Log("seed", seed, "all are up after", took)
	}
}
