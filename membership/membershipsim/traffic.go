// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"math/rand/v2"

	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// Traffic says which messages membership sends, for [simulation.LossFaults].
func Traffic() simulation.Traffic {
	return simulation.Traffic{Types: messageTypes(), News: isGossip, Heartbeat: isHeartbeat, Service: protocol.Service}
}

// FoundingFaults returns faults around the founding of a cluster: the end of all nodes at
// once, after which the restarted nodes vote on a new cluster, and the loss of each
// single type of message by which a cluster is founded and joined.
func FoundingFaults() []simulation.Fault {
	return []simulation.Fault{
		{Name: "crash-all", Weight: 2, Inject: func(w *simulation.World, _ *rand.Rand) {
			for _, n := range w.Nodes() {
				w.Crash(n.ID().Address)
			}
		}},
		simulation.LoseTypes("lose-founding", 5, foundingTypes()),
	}
}

func isGossip(message any) bool {
	switch message.(type) {
	case protocol.GossipStatus, protocol.GossipDelta, protocol.GossipState:
		return true
	}
	return false
}

func isHeartbeat(message any) bool {
	switch message.(type) {
	case protocol.Heartbeat, protocol.HeartbeatReply, protocol.AskStanding, protocol.GiveStanding, protocol.LendStanding:
		return true
	}
	return false
}

// messageTypes are the messages of membership, except those only in foundingTypes.
func messageTypes() []any {
	return []any{
		protocol.InitJoin{},
		protocol.InitJoinAck{},
		protocol.InitJoinNack{},
		protocol.JoinRequest{},
		protocol.Welcome{},
		protocol.JoinRefused{},
		protocol.Heartbeat{},
		protocol.HeartbeatReply{},
		protocol.AskStanding{},
		protocol.GiveStanding{},
		protocol.LendStanding{},
		protocol.GossipStatus{},
		protocol.GossipDelta{},
		protocol.GossipState{},
		protocol.ExitingConfirmed{},
		protocol.NotMember{},
		protocol.AskDowning{},
		protocol.DowningAnswer{},
	}
}

// foundingTypes are the messages by which a cluster is founded, and newcomers become up.
func foundingTypes() []any {
	return []any{
		protocol.InitJoin{},
		protocol.InitJoinAck{},
		protocol.InitJoinNack{},
		protocol.AskVote{},
		protocol.Vote{},
		protocol.Reached{},
	}
}
