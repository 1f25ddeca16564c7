// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/gossip"
)

// What happens to a cluster: time passes, nodes end, with a word to the others or without,
// and links are cut and healed.

// cutLink is one direction of a link that is cut, by the addresses of the two nodes.
type cutLink struct{ from, to string }

// String shows the direction.
func (l cutLink) String() string { return l.from + " -> " + l.to }

// Advance lets virtual time pass, and returns when nothing is left to be done before a later
// time.
func (c *Cluster) Advance(d time.Duration) {
	<-time.After(d) //quorate:realtime It is virtual: a Cluster is in a bubble.
	synctest.Wait()
}

// Kill ends nodes as a failure of their machines does: from one moment on nobody hears from them, and nobody is told.
// Those that were connected have noticed when it returns. Entities on them are waited for, which takes no time unless
// one does not return. A node that has ended already ends the test.
func (c *Cluster) Kill(nodes ...*Node) {
	c.t.Helper()
	for _, n := range nodes {
		c.mustRun("kill", n)
		for _, other := range c.nodes {
			if other != n {
				c.cut(cutLink{n.address, other.address}, cutLink{other.address, n.address})
				c.network.Break(n.Self().Address, other.Self().Address)
			}
		}
		synctest.Wait() // Else a message might go into a connection that is broken, and its outcome be unknown.
		n.ended = fmt.Sprintf("killed after %v", time.Since(c.began))
		_ = n.stop() // An entity that does not return is told of at the end of the test.
	}
}

// Leave takes nodes out of the cluster in order, one after the other: what they host is
// handed over first. It ends the test if that takes longer than the limit.
func (c *Cluster) Leave(nodes ...*Node) {
	c.t.Helper()
	for _, n := range nodes {
		c.mustRun("leave", n)
		ctx, cancel := c.limited()
		began := time.Now()
		err := n.Leave(ctx)
		cancel()
		if err != nil {
			c.t.Fatal(c.waitError("node "+n.address+" has left", began, err))
		}
		n.ended = fmt.Sprintf("left after %v", time.Since(c.began))
	}
}

// Shutdown stops the whole cluster in order, as quorate shutdown-cluster does: all nodes prepare, and as soon as
// they are ready one leaves, and all others with it. Nodes that are added afterwards, at addresses and with directories
// of those that have left, are the same cluster again. It ends the test if that takes longer than the limit.
func (c *Cluster) Shutdown() {
	c.t.Helper()
	all := c.Nodes()
	if len(all) == 0 {
		c.t.Fatal("clustertest: shutdown: no node runs")
	}
	if err := all[0].Membership().PrepareShutdown(context.Background()); err != nil {
		c.t.Fatalf("clustertest: shutdown: node %s: %v", all[0].address, err)
	}
	c.Await("all nodes are ready for a shutdown", func() error {
		for _, n := range all {
			if m := n.Membership().View().Member(); m == nil || m.Status != gossip.Ready {
				return fmt.Errorf("%s is not", n.address)
			}
		}
		return nil
	})
	c.Leave(all[0])
	c.Await("all nodes have left", func() error {
		for _, n := range all[1:] {
			if n.Running() {
				return fmt.Errorf("%s runs", n.address)
			}
			n.ended = fmt.Sprintf("left after %v", time.Since(c.began))
		}
		return nil
	})
}

// Cut cuts every link between two groups of nodes, in both directions. What is sent over a cut link
// waits, as in a network that swallows packets.
func (c *Cluster) Cut(a, b []*Node) {
	c.t.Helper()
	c.CutOneWay(a, b)
	c.CutOneWay(b, a)
}

// CutOneWay cuts every link from one group of nodes to another: the answers still arrive.
func (c *Cluster) CutOneWay(from, to []*Node) {
	c.t.Helper()
	links := []cutLink{}
	for _, a := range from {
		for _, b := range to {
			c.mustRun("cut", a)
			c.mustRun("cut", b)
			if a == b {
				c.t.Fatalf("clustertest: cut: node %s is in both groups", a.address)
			}
			links = append(links, cutLink{a.address, b.address})
		}
	}
	if len(links) == 0 {
		c.t.Fatal("clustertest: cut: a group has no node")
	}
	c.cut(links...)
}

// SetLatency has each message be under way, from now on, for a time that is drawn between these. Before the first
// call it is at the other node at once.
func (c *Cluster) SetLatency(least, most time.Duration) {
	c.network.SetLatency(func(gossip.Address, gossip.Address) time.Duration {
		return least + rand.N(most-least+1)
	})
}

// Isolate cuts nodes off from all others that run, but not from one another.
func (c *Cluster) Isolate(nodes ...*Node) {
	c.t.Helper()
	c.Cut(nodes, c.Except(nodes...))
}

// Except returns the nodes that run, without these.
func (c *Cluster) Except(nodes ...*Node) []*Node {
	return slices.DeleteFunc(c.Nodes(), func(n *Node) bool { return slices.Contains(nodes, n) })
}

// Heal makes every link whole between nodes that were not killed.
func (c *Cluster) Heal() {
	c.heal(func(l cutLink) bool { return !c.hasEnded(l.from) && !c.hasEnded(l.to) })
}

// hasEnded reports whether the test has ended the node of an address, and started no other one there.
func (c *Cluster) hasEnded(address string) (gone bool) {
	for _, n := range c.nodes {
		if n.address == address {
			gone = n.ended != ""
		}
	}
	return gone
}

// heal makes those cut links whole that are chosen.
func (c *Cluster) heal(chosen func(cutLink) bool) {
	for l := range c.cuts {
		if chosen(l) {
			delete(c.cuts, l)
			c.network.HealOneWay(parseAddress(l.from), parseAddress(l.to))
		}
	}
}

// cut cuts links.
func (c *Cluster) cut(links ...cutLink) {
	for _, l := range links {
		c.cuts[l] = true
		c.network.CutOneWay(parseAddress(l.from), parseAddress(l.to))
	}
}

// parseAddress parses the address of a node that has started, and so is valid.
func parseAddress(text string) gossip.Address {
	a, err := gossip.ParseAddress(text)
	if err != nil {
		panic(err) // The node would not have started.
	}
	return a
}

// mustRun ends the test unless a node is one of this cluster and runs.
func (c *Cluster) mustRun(verb string, n *Node) {
	c.t.Helper()
	switch {
	case n == nil:
		c.t.Fatalf("clustertest: %s: the node is nil", verb)
	case !slices.Contains(c.nodes, n):
		c.t.Fatalf("clustertest: %s: node %s is of another cluster", verb, n.address)
	case !n.Running():
		c.t.Fatalf("clustertest: %s: node %s", verb, c.stateOf(n))
	}
}
