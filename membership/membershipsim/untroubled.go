// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/simulation"
)

// Untroubled reports whether the node sees no unreachable member that could still be
// downed: a pending question to a downing strategy is moot then. It is meant for
// [simulation.Calling].
func Untroubled(n *simulation.Node, _ string) bool {
	m := MachineOf(n)
	for _, id := range m.State().Unreachable() {
		if member := m.State().Member(id); id != n.ID() && member != nil && downing.CanBeDowned(member) {
			return false
		}
	}
	return true
}
