// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
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
	// Cure is what an operator can do, or that there is nothing to be done.
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
	// Since is when it began to be so, by this node's clock.
	Since time.Time
}

// What an operator can do for a node that waits: where those who are here are not enough
// to found a cluster, and where they are.
const (
	waitingCure = "start the missing nodes with the data they had; only if they are gone for good: quorate form, on one node"
	votingCure  = "nothing: the nodes that are here vote, which takes some seconds"
)

// lookout is what a node tells of its search for a cluster and of its record, and who
// has asked it to found one.
type lookout struct {
	waiting    atomic.Pointer[Waiting]
	recordLost atomic.Bool

	mu     sync.Mutex // Guards all below; held for a moment.
	asked  uint64     // Numbers the commands to found a cluster.
	askers map[uint64]chan protocol.FormAnswered
}

// wait takes in for whom the node waits at a moment.
func (l *lookout) wait(w protocol.Waiting, now time.Time) *Waiting {
	waiting := &Waiting{Remembered: !w.Basis.IsZero(), Reason: w.Reason, Cure: waitingCure}
	if w.Enough {
		waiting.Cure = votingCure
	}
	for _, v := range w.Voters {
		if !waiting.Remembered {
			v.Voter.Node.UID = 0 // A place in the list; who comes is not known.
		}
		waiting.Voters = append(waiting.Voters, WaitedFor{Node: v.Voter.Node, Answer: v.Said.String(), Since: now.Add(-v.For).UTC()})
	}
	l.waiting.Store(waiting)
	return waiting
}

// votersTold bounds how many voters one line of the log names. Ten voters vote in a
// cluster of any size, and lists of seed nodes are short.
const votersTold = 32

// voters says in one line what each voter answered, and since when.
func (w *Waiting) voters() string {
	var told []string
	for _, v := range w.Voters[:min(len(w.Voters), votersTold)] {
		told = append(told, fmt.Sprintf("%v %s since %s", v.Node, v.Answer, v.Since.Format(time.RFC3339)))
	}
	if more := len(w.Voters) - len(told); more > 0 {
		told = append(told, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(told, "; ")
}

// Waiting returns for whom this node waits, nil if it is in a cluster or has not
// waited for long.
func (n *Node) Waiting() *Waiting { return n.lookout.waiting.Load() }

// RecordLost reports whether the node's record could not be written and was removed:
// after a restart it has no vote in who starts the cluster again.
func (n *Node) RecordLost() bool { return n.lookout.recordLost.Load() }

// ask returns the number of a new command to found a cluster, and where its answer
// comes. The capacity is one: there is one answer.
func (l *lookout) ask() (uint64, <-chan protocol.FormAnswered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.askers == nil {
		l.askers = make(map[uint64]chan protocol.FormAnswered)
	}
	l.asked++
	l.askers[l.asked] = make(chan protocol.FormAnswered, 1)
	return l.asked, l.askers[l.asked]
}

// answer takes the answer to a command, which nobody may wait for any more.
func (l *lookout) answer(a protocol.FormAnswered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if asker := l.askers[a.ID]; asker != nil {
		asker <- a
		delete(l.askers, a.ID)
	}
}

// forget ends the wait for an answer.
func (l *lookout) forget(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.askers, id)
}

// Form founds a new cluster with this node as its only voter, whatever other voters
// remember: the last resort when a majority of them is gone for good. It is for a
// node that waits, see [Node.Waiting]; on another, and while a member of a cluster
// that goes on answers, it returns an error that wraps [ErrFormRefused] and says why.
// It returns the cluster when this node is its first member. With the error of ctx, of
// [Node.Err] or [ErrClosed] it may have been founded; what became of it is in the
// decisions with the topic "join".
func (n *Node) Form(ctx context.Context) (gossip.ClusterID, error) {
	if n.Waiting() == nil && n.View().Member() == nil && n.running() {
		return gossip.ClusterID{}, fmt.Errorf("%w: this node has not waited for a cluster for so long that others had the time to answer", ErrFormRefused)
	}
	id, answered := n.lookout.ask()
	defer n.lookout.forget(id)
	if err := n.command(ctx, protocol.Form{ID: id}); err != nil {
		return gossip.ClusterID{}, err
	}
	select {
	case a := <-answered:
		if a.Cluster.IsZero() {
			return gossip.ClusterID{}, fmt.Errorf("%w: %s", ErrFormRefused, a.Reason)
		}
		return a.Cluster, n.await(ctx, func(m *gossip.Member) bool { return m != nil })
	case <-n.done:
		return gossip.ClusterID{}, cmp.Or(n.err, ErrClosed)
	case <-ctx.Done():
		return gossip.ClusterID{}, context.Cause(ctx)
	}
}

// running reports whether the node has not begun to end.
func (n *Node) running() bool {
	select {
	case <-n.stopping:
		return false
	default:
		return true
	}
}
