// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
)

// Waiting for something to come true, and what a test is told when it does not: the state of
// each node, as the node explains it, and the links that are cut.

// pollInterval is how often a condition is looked at, in virtual time: a small part of what a
// cluster needs for anything that it decides.
const pollInterval = 10 * time.Millisecond

// WaitError says that a condition did not come true within the limit.
type WaitError struct {
	// What was waited for.
	What string
	// After is how long it was waited for, by the clock of the bubble.
	After time.Duration
	// Err says what was missing at the end.
	Err error
	// Nodes says of each node of the test what it is at, in a line each.
	Nodes []string
	// Cuts are the directions of links that are cut, as "10.0.0.1:7946 -> 10.0.0.2:7946", sorted,
	// without those of killed nodes.
	Cuts []string
}

// Error names all of it, the nodes a line each.
func (e *WaitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "clustertest: not within %v: %s: %v", e.After, e.What, e.Err)
	for _, n := range e.Nodes {
		b.WriteString("\n  node " + n)
	}
	if len(e.Cuts) > 0 {
		b.WriteString("\n  cut: " + strings.Join(e.Cuts, ", "))
	}
	return b.String()
}

// Unwrap returns what was missing.
func (e *WaitError) Unwrap() error { return e.Err }

// Await waits until a condition holds, and ends the test if that takes longer than the limit.
// The condition returns nil if it holds, and otherwise what is missing. It is called again and
// again, at moments at which every goroutine of the bubble waits. What says in words what is awaited.
func (c *Cluster) Await(what string, condition func() error) {
	c.t.Helper()
	if err := c.Wait(what, condition); err != nil {
		c.t.Fatal(err)
	}
}

// Wait is [Cluster.Await] for a test that goes on if the condition does not come true: it
// returns a [*WaitError] then.
func (c *Cluster) Wait(what string, condition func() error) error {
	began := time.Now()
	for {
		c.Advance(0)
		err := condition()
		if err == nil {
			return nil
		}
		if time.Since(began) >= c.limit {
			return c.waitError(what, began, err)
		}
		c.Advance(pollInterval)
	}
}

func (c *Cluster) waitError(what string, began time.Time, err error) *WaitError {
	e := &WaitError{What: what, After: time.Since(began), Err: err}
	for _, n := range c.nodes {
		e.Nodes = append(e.Nodes, c.stateOf(n))
	}
	for l := range c.cuts {
		if !c.hasEnded(l.from) && !c.hasEnded(l.to) {
			e.Cuts = append(e.Cuts, l.String())
		}
	}
	slices.Sort(e.Cuts)
	return e
}

// AwaitConverged waits until nodes are a whole cluster: each is ready, sees exactly these as members,
// all up and none of them unreachable, and knows that all agree. Without an argument these are all nodes that run.
// It ends the test if that takes longer than the limit.
func (c *Cluster) AwaitConverged(nodes ...*Node) {
	c.t.Helper()
	if len(nodes) == 0 {
		nodes = c.Nodes()
	}
	if len(nodes) == 0 {
		c.t.Fatal("clustertest: await: no node of the cluster runs any more")
	}
	for _, n := range nodes {
		c.mustRun("await", n)
	}
	c.Await(fmt.Sprintf("%d nodes are a whole cluster", len(nodes)), func() error { return Converged(nodes...) })
}

// Converged returns nil if nodes are a whole cluster, see [Cluster.AwaitConverged], and
// otherwise what is missing.
func Converged(nodes ...*Node) error {
	var missing []error
	for _, n := range nodes {
		if why := n.notConverged(nodes); why != "" {
			missing = append(missing, fmt.Errorf("%s: %s", n.address, why))
		}
	}
	return errors.Join(missing...)
}

// notConverged says why a node does not see exactly these nodes as a whole cluster; empty if it does.
func (n *Node) notConverged(nodes []*Node) string {
	if why := n.Ready(); len(why) > 0 {
		return strings.Join(why, "; ")
	}
	view := n.Membership().View()
	for _, other := range nodes {
		switch m := view.State.Member(other.Self()); {
		case m == nil:
			return other.address + " is no member"
		case !isUp(m):
			return fmt.Sprintf("%s is %v", other.address, m.Status)
		}
	}
	for _, m := range view.State.Members() {
		if !slices.ContainsFunc(nodes, func(o *Node) bool { return o.Self() == m.Node }) {
			return fmt.Sprintf("%s is still a member, and is %v", m.Node, m.Status)
		}
	}
	if !view.Converged {
		return "does not know that all agree: " + blockers(n)
	}
	return ""
}

// isUp reports whether a member takes part in everything.
func isUp(m *gossip.Member) bool { return m.Status >= gossip.Up && m.Status <= gossip.Ready }

// blockers says what keeps a node from knowing that all agree.
func blockers(n *Node) string {
	view := n.Membership().View()
	_, why := view.State.Convergence(view.Self, nil)
	return fmt.Sprint(why)
}

// stateOf says in one line in which state a node is.
func (c *Cluster) stateOf(n *Node) string {
	if n.ended != "" {
		return n.address + ": " + n.ended
	}
	if !n.Running() {
		return fmt.Sprintf("%s: has ended: %v", n.address, n.Err())
	}
	words := n.Ready()
	if len(words) == 0 {
		words = []string{"ready"}
	}
	if view := n.Membership().View(); view.Member() != nil && !view.Converged {
		words = append(words, "not agreed: "+blockers(n))
	}
	return n.address + ": " + strings.Join(words, "; ")
}
