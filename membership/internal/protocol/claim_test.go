// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// remembering returns the record of a node whose cluster had n voters.
func remembering(n int) protocol.Record {
	r := protocol.Record{Data: 7, Cluster: gossip.ClusterID{Born: 1, Nonce: 1}, Stamp: protocol.Stamp{Born: 1, Gen: 1, By: 1}}
	for _, voter := range strangers(n) {
		r.Voters = append(r.Voters, protocol.Voter{Node: voter, Data: 7})
	}
	return r
}

// Any node may ask a member which cluster it is in, with a record that names many voters.
// The answer says whether this member would ask one of them; it looks that up once, and
// not once a voter.
func TestWhatALongRecordCostsToAnswer(t *testing.T) {
	w := newTown(t, 3)
	member := w.settle(3)[0]
	stranger := gossip.NodeID{Address: address(66), UID: 66}
	cost := func(voters int) float64 {
		record := remembering(voters)
		require.NoError(t, record.Validate())
		return testing.AllocsPerRun(10, func() {
			member.step(machine.Received{From: stranger, Message: protocol.InitJoin{Attempt: 1, Claim: protocol.Claim{Record: record}}})
		})
	}
	w.run(time.Second)
	few, many := cost(10), cost(1000)
	require.Less(t, many, few+100, "allocations for 1000 voters, where 10 voters take %v", few)
}
