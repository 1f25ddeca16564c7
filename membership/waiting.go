// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/protocol"
)

// Waiting says for whom a node waits that is in no cluster yet: those whose votes
// count in who may found one.
type Waiting struct {
	// Remembered says that the voters are those of the last cluster that somebody
	// who answered remembers. Else they are the seed nodes of this node's list.
	Remembered bool
	Voters     []WaitedFor
	// Reason says in one sentence what is missing.
	Reason string
	// Cure is what an operator can do.
	Cure string
}

// WaitedFor is one voter.
type WaitedFor struct {
	// Node is the voter as it was remembered; a listed seed node has no uid.
	Node gossip.NodeID
	// Answer is what the voter says: "in no cluster" (its vote counts), "silent",
	// "lost its memory" (another disk answers in its place, which speaks for
	// nobody), "has left", or "in a cluster without a majority".
	Answer string
	// For is how long it has been so.
	For time.Duration
}

// waitingCure is what an operator can do for a node that waits.
const waitingCure = "start the missing nodes with the data they had; only if they are gone for good: quorate form, on one node"

// lookout is what a node tells of its search for a cluster and of its record.
type lookout struct {
	waiting    atomic.Pointer[Waiting]
	recordLost atomic.Bool
}

// wait takes in for whom the node waits. It is true if that was told before.
func (l *lookout) wait(w protocol.Waiting) bool {
	waiting := &Waiting{Remembered: !w.Basis.IsZero(), Reason: w.Reason, Cure: waitingCure}
	for _, v := range w.Voters {
		waiting.Voters = append(waiting.Voters, WaitedFor{Node: v.Voter.Node, Answer: v.Said.String(), For: v.For})
	}
	last := l.waiting.Swap(waiting)
	return last != nil && last.Reason == waiting.Reason
}

// Waiting returns for whom this node waits, nil if it is in a cluster or has not
// waited for long.
func (n *Node) Waiting() *Waiting { return n.lookout.waiting.Load() }

// RecordLost reports whether the node's record could not be written and was removed:
// after a restart it has no vote in who starts the cluster again.
func (n *Node) RecordLost() bool { return n.lookout.recordLost.Load() }
