// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// The first part says what a waiting node waits for ([Waiting]), the second how an
// operator founds a cluster with it all the same ([Node.Form]).

// Waiting says which voters a node that is in no cluster yet waits for: those whose votes
// decide which node may found one.
type Waiting struct {
	// Remembered says that the voters are those of the newest cluster that this node or a
	// node that answered remembers. Otherwise they are the seed nodes of this node's
	// list, or the contact points that it has found.
	Remembered bool
	// Found says that they are contact points that this node has looked up.
	Found  bool
	Voters []WaitingVoter
	// Reason says in one sentence what is missing.
	Reason string
	// Cure is what an operator can do, or says that nothing need be done.
	Cure string
}

// WaitingVoter is one voter of a [Waiting].
type WaitingVoter struct {
	// Node is the voter as it was remembered; a listed seed node has no uid.
	Node gossip.NodeID
	// Answer is what the voter says: "in no cluster" (its vote counts), "silent" (nothing came
	// back), "lost its memory" (another disk answers in its place, which speaks for no voter),
	// "has left", "in a cluster without a majority", "not related to this node", or how and why
	// it refuses this node, as in "answers as 127.0.0.1:7946: write that into the list".
	Answer string
	// Since is when the voter's answer last changed, by this node's clock.
	Since time.Time
}

// What an operator can do for a node that waits: first where the nodes that answer are
// not enough to found a cluster, then where they are.
const (
	waitingCure = "start the missing nodes with the data they had; only if they are gone for good: quorate form, on one node"
	votingCure  = "nothing: the nodes that are here vote, which takes some seconds"
	refusedCure = "mend what the answers of the missing nodes say"
	lookingCure = "start the nodes that do not answer, or have discovery find those that there are; if nodes that remember the cluster are gone for good: quorate form, on one node"
)

// searchStatus is what a node reports about its search for a cluster and about its record, and
// the commands to found a cluster that wait for an answer.
type searchStatus struct {
	waiting    atomic.Pointer[Waiting]
	recordLost atomic.Bool
	strangers  atomic.Pointer[[]Stranger]
	forms      pendingCommands[protocol.FormAnswered]
}

// wait stores which voters the node waits for at a moment; looks says that the node looks
// contact points up.
func (l *searchStatus) wait(w protocol.Waiting, looks bool, now time.Time) *Waiting {
	waiting := &Waiting{Remembered: !w.Basis.IsZero(), Reason: w.Reason, Cure: waitingCure}
	switch {
	case looks && !waiting.Remembered:
		waiting.Found, waiting.Cure = true, lookingCure
	case w.Enough:
		waiting.Cure = votingCure
	case allAnswer(w.Voters):
		waiting.Cure = refusedCure
	}
	for _, v := range w.Voters {
		if !waiting.Remembered {
			v.Voter.Node.UID = 0 // A place in the list; which incarnation will come is not known.
		}
		waiting.Voters = append(waiting.Voters, WaitingVoter{Node: v.Voter.Node, Answer: v.String(), Since: now.Add(-v.For).UTC()})
	}
	l.waiting.Store(waiting)
	return waiting
}

// Stranger is a node of the same cluster name that answers, and that has nothing to do with
// this node's cluster by the lists of both and by what they remember.
type Stranger struct {
	Node gossip.NodeID
	// Cluster is the cluster that it is in, or none.
	Cluster gossip.ClusterID
	// Reason says in one sentence why, with both lists, and what to do.
	Reason string
}

// meet stores the strangers that answer now, and returns those that said something else before.
func (l *searchStatus) meet(e protocol.Strangers) (news []Stranger) {
	var before []Stranger
	all := make([]Stranger, len(e.All))
	for i, s := range e.All {
		all[i] = Stranger(s)
	}
	if old := l.strangers.Swap(&all); old != nil {
		before = *old
	}
	return slices.DeleteFunc(slices.Clone(all), func(s Stranger) bool { return slices.Contains(before, s) })
}

// allAnswer reports whether each missing voter has answered in a way that shows what is wrong:
// neither data that is gone nor a node that must be started.
func allAnswer(voters []protocol.VoterAnswer) bool {
	return !slices.ContainsFunc(voters, func(v protocol.VoterAnswer) bool {
		return v.Status == protocol.VoterSilent || v.Status == protocol.VoterLostMemory || v.Status == protocol.VoterLeft || v.Status == protocol.VoterInCluster
	})
}

// votersTold bounds how many voters one line of the log names. Ten voters are enough for
// a cluster of any size, and lists of seed nodes are short.
const votersTold = 32

// voters lists in one line what each voter answered, and since when.
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

// Waiting returns which voters this node waits for, nil if it is in a cluster or has not
// waited for long.
func (n *Node) Waiting() *Waiting { return n.report.waiting.Load() }

// Bootstrap returns how the search for contact points stands, nil if this node does not
// look for any, or no lookup has ended yet.
func (n *Node) Bootstrap() *Bootstrap { return n.search.told.Load() }

// RecordLost reports whether the node's record could not be written and was removed:
// after a restart the node has no vote on starting the cluster again.
func (n *Node) RecordLost() bool { return n.report.recordLost.Load() }

// Strangers returns the nodes of the same cluster name that answer this one and have nothing to do
// with its cluster, sorted by address; none if there is no such node.
func (n *Node) Strangers() []Stranger {
	if all := n.report.strangers.Load(); all != nil {
		return slices.Clone(*all)
	}
	return nil
}

// Form founds a new cluster with this node as its only voter, whatever other voters
// remember: the last resort when a majority of them is gone for good. It is for a node
// that waits, see [Node.Waiting]; on another node, and while a member of a cluster that
// goes on answers, it returns an error that wraps [ErrFormRefused] and says why. It
// returns the cluster when this node is its first member. With the error of ctx, of
// [Node.Err] or [ErrClosed] the cluster may have been founded all the same; the decisions
// with the topic "join" tell.
func (n *Node) Form(ctx context.Context) (gossip.ClusterID, error) {
	if n.Waiting() == nil && n.View().Member() == nil && n.life.running() {
		return gossip.ClusterID{}, fmt.Errorf("%w: this node has not waited for a cluster for so long that others had the time to answer", ErrFormRefused)
	}
	id, answered := n.report.forms.ask()
	defer n.report.forms.forget(id)
	if err := n.commands.give(ctx, protocol.Form{ID: id}); err != nil {
		return gossip.ClusterID{}, err
	}
	select {
	case a := <-answered:
		if a.Cluster.IsZero() {
			return gossip.ClusterID{}, fmt.Errorf("%w: %s", ErrFormRefused, a.Reason)
		}
		return a.Cluster, n.await(ctx, func(m *gossip.Member) bool { return m != nil })
	case <-n.life.done:
		return gossip.ClusterID{}, cmp.Or(n.life.err, ErrClosed)
	case <-ctx.Done():
		return gossip.ClusterID{}, context.Cause(ctx)
	}
}
