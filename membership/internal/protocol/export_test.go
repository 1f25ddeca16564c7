// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/gossip"

// Believe has a node take voters for relays by another rule than the usual one.
func (m *Machine) Believe(relays func(voter gossip.NodeID) bool) {
	m.relaying.believes = func(voter *gossip.Member) bool { return relays(voter.Node) }
}
