// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// waitsAt makes the node at an address wait where its strategy would end it, so that it
// hears from the others that it was removed.
func waitsAt(i int) func(*protocol.Config, *protocol.Dependencies) {
	return func(_ *protocol.Config, d *protocol.Dependencies) {
		decide := d.Downing.Decide
		d.Downing.Decide = func(v downing.View) (downing.Decision, error) {
			if v.Self.Address == address(i) {
				return downing.Decision{Reason: "waits"}, nil
			}
			return decide(v)
		}
	}
}

// lastWords is the text of the last decision of a node, with which it stops.
func lastWords(t *testing.T, n *node) string {
	t.Helper()
	require.NotNil(t, n.stopping)
	require.Equal(t, component.StopDowned, n.stopping.Reason)
	last := n.decisions[len(n.decisions)-1]
	require.Equal(t, "stop", last.Topic)
	require.Equal(t, n.stopping.Detail, last.Reason)
	return n.stopping.Detail
}

// covers F25: a node that was removed behind a cut says by whom it was declared down
// and why, although who decided that is gone too and another one tells it.
func TestANodeRemovedBehindACutSaysByWhomAndWhy(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(5, waitsAt(5))
	fifth := func(a gossip.Address) bool { return a == address(5) }
	l.cut = func(from, to gossip.Address) bool { return fifth(from) != fifth(to) }
	l.until(30*time.Second, func() bool { return nodes[1].sees(4, gossip.Up) })
	tomb, removed := nodes[1].machine.State().Removed(nodes[4].id)
	require.True(t, removed)
	require.Equal(t, nodes[0].id, tomb.Downed.By)
	require.True(t, strings.HasPrefix(tomb.Downed.Why, "keep-majority: "), tomb.Downed.Why)
	nodes[0].dead = true
	l.until(30*time.Second, func() bool { return nodes[1].sees(3, gossip.Up) })
	require.Nil(t, nodes[4].stopping)
	l.cut = nil
	l.until(10*time.Second, func() bool { return nodes[4].stopping != nil })
	words := lastWords(t, nodes[4])
	require.True(t, strings.HasPrefix(words, "by "+tomb.Downed.String()+"; it is removed, says "), words)
}

// covers F29: a node that was declared down by command says on which node, and so do all
// others for as long as they remember the node.
func TestANodeDownedByCommandSaysOnWhichNode(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(4)
	var told []gossip.Cause // What the others say of it while it is down.
	nodes[1].step(protocol.Down{Address: address(4)})
	l.until(10*time.Second, func() bool {
		if m := nodes[2].machine.State().Member(nodes[3].id); m != nil && m.Status == gossip.Down {
			told = append(told, m.Downed)
		}
		return l.allUp(3)
	})
	want := gossip.Cause{By: nodes[1].id, Why: "command: Down was called on that node"}
	require.Equal(t, "by "+want.String(), lastWords(t, nodes[3]))
	require.NotEmpty(t, told)
	for _, c := range told {
		require.Equal(t, want, c)
	}
	l.until(time.Hour, func() bool { return len(nodes[2].blocks) > 0 })
	require.Equal(t, "this incarnation was removed from the cluster after it was declared down by "+want.String(), nodes[2].blocks[0].Reason)

	// A transport that refuses the node passes these words on.
	nodes[0].step(protocol.PeerRefused{Peer: nodes[1].id, Removed: true, Reason: "declared down by somebody: lost"})
	require.Equal(t, "it is removed, says 10.0.0.2:7946#2: declared down by somebody: lost", lastWords(t, nodes[0]))
}

// A node whose own decision it was says so.
func TestANodeThatDownsItselfSaysWhy(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	l.cut = splitAtThree()
	l.until(30*time.Second, func() bool { return nodes[2].stopping != nil })
	words := lastWords(t, nodes[2])
	require.True(t, strings.HasPrefix(words, "by itself: keep-majority: "), words)
}

// The name of a strategy stands before its words, which need not have it, and a
// strategy of somebody else may say anything: what others are told is fit for a log.
func TestTheReasonOfAStrategyIsMadeFit(t *testing.T) {
	l := newLoop(t)
	told := func(_ *protocol.Config, d *protocol.Dependencies) {
		d.Downing.Config.Strategy, d.Downing.Decide = "witness", func(v downing.View) (downing.Decision, error) {
			decision, err := downing.KeepMajority{}.DecideNow(v)
			decision.Reason = "gone\n\xff\x1b[2J " + strings.Repeat("away ", 100)
			return decision, err
		}
	}
	nodes := l.cluster(3, told, waitsAt(3))
	l.cut = splitAtThree()
	l.until(30*time.Second, func() bool { return nodes[0].sees(2, gossip.Up) })
	l.cut = nil
	l.until(10*time.Second, func() bool { return nodes[2].stopping != nil })
	words := lastWords(t, nodes[2])
	require.True(t, strings.HasPrefix(words, "by 10.0.0.1:7946#1: witness: gone  [2J away "), words)
	tomb, _ := nodes[0].machine.State().Removed(nodes[2].id)
	require.LessOrEqual(t, len(tomb.Downed.Why), gossip.MaxCauseBytes)
}

// A member of a release that says no causes is no reason for silence: who said so,
// and who accuses, is told as before.
func TestANodeDownedWithoutACauseSaysWhoToldIt(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	state := nodes[1].machine.State().Edit(nodes[1].id, func(e *gossip.Edit) { e.SetStatus(nodes[2].id, gossip.Down, 0) })
	nodes[2].step(machine.Received{From: nodes[1].id, Message: protocol.GossipState{State: state}})
	require.Equal(t, "by the others, says 10.0.0.2:7946#2; nobody holds it for unreachable now", lastWords(t, nodes[2]))
	nodes[0].step(machine.Received{From: nodes[1].id, Message: protocol.NotMember{Node: nodes[0].id, Status: gossip.Down}})
	require.Equal(t, "it is down, says 10.0.0.2:7946#2", lastWords(t, nodes[0]))
}
