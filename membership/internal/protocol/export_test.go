// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/gossip"

// Believe has a node take voters for relays by another rule than the usual one, whose
// answer the other rule is given. Where the other rule insists, the node never stands by.
func (m *Machine) Believe(rule func(voter gossip.NodeID, usual bool) (relays, insists bool)) {
	usual := m.relay.believes
	m.relay.believes = func(voter *gossip.Member) bool {
		relays, insists := rule(voter.Node, usual(voter))
		m.relay.standby.never = insists
		return relays
	}
}

// Relays returns the voters that relay, as far as the node knows.
func (m *Machine) Relays() []*gossip.Member { return m.relay.relaysOf(m.State()) }
