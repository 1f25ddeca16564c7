// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import "github.com/quorate/quorate/gossip"

// AbsenceTracker remembers which nodes were no members in the last round. The zero value is ready
// to use.
type AbsenceTracker struct{ before, now map[gossip.NodeID]struct{} }

// Gone reports whether what is said of a node is to be removed: it is no member now, and
// was none one round ago. One look is not enough: the news of what a node has may be faster
// than the news that the node has joined.
func (a *AbsenceTracker) Gone(node gossip.NodeID, member bool) bool {
	if member {
		return false
	}
	if a.now == nil {
		a.now = map[gossip.NodeID]struct{}{}
	}
	a.now[node] = struct{}{}
	_, again := a.before[node]
	return again
}

// Round begins another round, and reports whether the last one has found anybody.
func (a *AbsenceTracker) Round() (found bool) {
	a.before, a.now = a.now, nil
	return len(a.before) > 0
}
