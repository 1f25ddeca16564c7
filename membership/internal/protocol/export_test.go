// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/gossip"

// Believe has a node take voters for relays by another rule than the usual one, whose
// answer the other rule is given. All who take themselves for relays ask then.
func (m *Machine) Believe(relays func(voter gossip.NodeID, usual bool) bool) {
	usual := m.relaying.believes
	m.relaying.standby.never = true
	m.relaying.believes = func(voter *gossip.Member) bool { return relays(voter.Node, usual(voter)) }
}

// Relays returns the voters that relay, as far as the node knows.
func (m *Machine) Relays() []*gossip.Member { return m.relaying.relaysOf(m.State()) }
