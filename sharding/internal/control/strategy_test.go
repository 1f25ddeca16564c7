// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/control"
)

// A strategy that is called and says where shards should live: first when and with what it
// is asked; then answers that are wrong, late, about an old view, or incomplete; last the
// text of a decision.

// asked returns the kind of the tests in which the strategy is called.
func asked() control.KindConfig {
	k := six()
	k.Strategy = "mine"
	return k
}

// to returns the answer that places every shard of a request on one node.
func to(r allocation.AllocateRequest, n *peer) allocation.AllocateResult {
	var res allocation.AllocateResult
	for _, p := range r.Shards {
		res.Placements = append(res.Placements, allocation.Placement{
			Shard: p.Shard, Region: allocation.Region(n.id.String()), Reason: "mine: because",
		})
	}
	return res
}

// A strategy is called once for all shards without a home, and is told the regions.
func TestStrategyIsAskedInBatches(t *testing.T) {
	f := newFleet(t)
	var a, b *peer
	f.answers = func(c machine.Call) (any, error) {
		require.Equal(t, control.AllocationCall, c.Port)
		require.Equal(t, 5*time.Second, c.Limit)
		r := c.Request.(allocation.AllocateRequest)
		require.Equal(t, "k", r.Kind)
		require.Len(t, r.Regions, 2)
		return to(r, b), nil
	}
	a, b = f.start(1, asked()), f.start(2, asked())
	f.run(5 * time.Second)
	f.settled(6, a, b)
	require.Len(t, b.hosts(), 6)
	require.Len(t, a.calls, 1)
	require.Equal(t, []string{"k: 6 shards: 6 to " + b.id.String() + ": mine: because"}, a.decided("allocation"))

	f.answers = func(c machine.Call) (any, error) {
		r := c.Request.(allocation.AllocateRequest)
		require.True(t, r.Regions[1].Leaving)
		require.Len(t, r.Shards, 6)
		return to(r, a), nil
	}
	f.set(gossip.Leaving, b)
	f.run(time.Second)
	f.settled(6, a)
	require.Len(t, a.calls, 2)
}

// When the strategy returns an error, an answer of another type, or placements that break
// the contract, the built-in strategy decides, and the decision log says why.
// covers F40.
func TestWrongAnswersFallBack(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*allocation.AllocateResult) (any, error)
		why    string
	}{
		"unknown region": {func(r *allocation.AllocateResult) (any, error) {
			r.Placements[0].Region = "nowhere"
			return *r, nil
		}, "not in the request"},
		"too many placements": {func(r *allocation.AllocateResult) (any, error) {
			r.Placements = append(r.Placements, r.Placements[0])
			return *r, nil
		}, "7 placements for 6 shards"},
		"a shard nobody asked for": {func(r *allocation.AllocateResult) (any, error) {
			r.Placements[0].Shard = 77
			return *r, nil
		}, "was not asked for"},
		"another type": {func(*allocation.AllocateResult) (any, error) { return "nonsense", nil }, "the answer is a string"},
		"an error":     {func(*allocation.AllocateResult) (any, error) { return nil, errors.New("out of ideas") }, "out of ideas"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			var n *peer
			f.answers = func(c machine.Call) (any, error) {
				res := to(c.Request.(allocation.AllocateRequest), n)
				return test.change(&res)
			}
			n = f.start(1, asked())
			f.run(4 * time.Second)
			f.settled(6, n)
			require.Len(t, n.calls, 1)
			require.Len(t, n.decided("allocation"), 2)
			require.Contains(t, n.decided("allocation")[0], "k: least-shard: strategy mine: ")
			require.Contains(t, n.decided("allocation")[0], test.why)
		})
	}
}

// A strategy that does not answer is waited for until the limit of its call. An answer that
// comes later is counted and ignored.
// covers F40.
func TestStrategyThatDoesNotAnswer(t *testing.T) {
	f := newFleet(t)
	n := f.start(1, asked())
	f.run(8 * time.Second)
	require.Empty(t, n.hosts())
	f.run(time.Second)
	f.settled(6, n)
	require.Contains(t, n.decided("allocation")[0], "it did not answer in time")
	homes := n.Inspect("k").Homes
	n.step(machine.Called{ID: n.calls[0].ID, Result: to(n.calls[0].Request.(allocation.AllocateRequest), n)})
	require.Equal(t, homes, n.Inspect("k").Homes)
	require.Len(t, n.calls, 1)
	require.EqualValues(t, 1, n.Unsolicited(), "it is counted")
}

// Each kind calls the strategy without waiting for the calls of other kinds.
func TestEachKindAsksByItself(t *testing.T) {
	f := newFleet(t)
	a, b := asked(), asked()
	a.Name, b.Name = "a", "b"
	n := f.start(1, a, b)
	f.run(4 * time.Second)
	require.Len(t, n.calls, 2)
	for i, c := range n.calls {
		require.Equal(t, control.AllocationCall, c.Port)
		require.Equal(t, [...]string{"a", "b"}[i], c.Key)
		require.Equal(t, c.Key, c.Request.(allocation.AllocateRequest).Kind)
	}
}

// When the regions have changed since the strategy was asked, its answer is discarded and
// the strategy is asked again. After three such answers the built-in strategy decides.
func TestAnswerToAnOldView(t *testing.T) {
	f := newFleet(t)
	n := f.start(1, asked())
	f.run(3010 * time.Millisecond)
	for i := range 3 {
		require.Len(t, n.calls, i+1)
		f.start(2+i, asked())
		f.run(5 * time.Millisecond)
		call := n.calls[i]
		n.step(machine.Called{ID: call.ID, Result: to(call.Request.(allocation.AllocateRequest), n)})
		require.Empty(t, n.hosts(), "the view has changed")
		f.run(3010 * time.Millisecond) // While no shard has a home, the coordinator waits for other regions.
	}
	require.Len(t, n.calls, 3)
	require.Len(t, n.hosts(), 2, "six shards on four regions")
	require.Contains(t, n.decided("allocation")[0], "least-shard: its share")
}

// The strategy is asked again about the shards that its answer left out, and the decision
// log has its reason.
func TestPartialAnswer(t *testing.T) {
	f := newFleet(t)
	var n *peer
	f.answers = func(c machine.Call) (any, error) {
		res := to(c.Request.(allocation.AllocateRequest), n)
		res.Placements = res.Placements[:1]
		res.Placements[0].Reason = ""
		res.Reason = "one at a time"
		return res, nil
	}
	n = f.start(1, asked())
	f.run(10 * time.Second)
	f.settled(6, n)
	require.Len(t, n.calls, 6)
	text := strings.Join(n.decided("allocation"), "\n")
	require.Contains(t, text, "k: incomplete: one at a time")
	require.Contains(t, text, "k: 1 shards: 1 to "+n.id.String()+": mine: it gave no reason")
}

// After three answers without any placement, which break no contract, the built-in strategy
// decides.
// covers F40, I21.
func TestStrategyThatGivesNoHomesIsPassedOver(t *testing.T) {
	f := newFleet(t)
	f.answers = func(machine.Call) (any, error) { return allocation.AllocateResult{Reason: "later"}, nil }
	n := f.start(1, asked())
	f.run(6 * time.Second)
	f.settled(6, n)
	require.Len(t, n.calls, 3)
	require.Contains(t, strings.Join(n.decided("allocation"), "\n"), "k: least-shard: strategy mine: 3 answers in a row gave no shard a home")
}

// The text of a decision about many nodes names only some of them.
func TestLongDecisionsAreCut(t *testing.T) {
	f := newFleet(t)
	var nodes []*peer
	for i := range 7 {
		nodes = append(nodes, f.start(i+1, six()))
	}
	f.run(5 * time.Second)
	require.Contains(t, nodes[0].decided("allocation")[0], "1 to n5:1#5, and more: least-shard: ")
}

// A kind that lives on the oldest goes nowhere when a node joins, and to the next oldest when the
// oldest leaves or is gone; no strategy is asked.
func TestAKindLivesOnTheOldest(t *testing.T) {
	f := newFleet(t)
	k := asked()
	k.OnOldest = true
	f.answers = func(machine.Call) (any, error) { return nil, errors.New("no strategy is asked") }
	a, b := f.start(2, k), f.start(3, k)
	f.run(5 * time.Second)
	f.settled(6, a, b)
	require.Len(t, a.hosts(), 6, "it became up first")
	require.Contains(t, a.decided("allocation")[0], "oldest: "+a.id.String()+" is the oldest of 2 that can host it")
	c := f.start(1, k)
	f.run(30 * time.Second)
	require.Len(t, a.hosts(), 6, "nothing is evened out")

	f.set(gossip.Leaving, a)
	f.run(5 * time.Second)
	require.Len(t, b.hosts(), 6)
	f.set(gossip.Exiting, a)
	f.remove(a)
	f.fence(a)
	f.remove(b)
	f.fence(b)
	f.run(10 * time.Second)
	require.Len(t, c.hosts(), 6)
	for _, n := range []*peer{a, b, c} {
		require.Empty(t, n.calls)
	}
}
