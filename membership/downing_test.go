// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// casting is a downing provider that keeps the side that asks, and counts.
type casting struct{ asked, released atomic.Int32 }

// Class promises nothing but equal answers.
func (*casting) Class() downing.Class { return downing.Class{Pure: true} }

// Decide keeps the side.
func (c *casting) Decide(_ context.Context, v downing.View) (downing.Decision, error) {
	c.asked.Add(1)
	d := downing.Decision{Verdict: downing.KeepSide, Reason: "it has the casting vote"}
	for _, m := range v.Side().Lost() {
		d.Down = append(d.Down, m.Node)
	}
	return d, nil
}

// as is the provider as a strategy.
func (c *casting) as(version string) membership.Downing {
	return membership.Downing{Name: "casting", Version: version, Provider: c, Release: func() { c.released.Add(1) }}
}

// A strategy is given to one node after the other. The cluster changes to it when all
// have it, says so, decides by it, and releases the one before.
func TestDowningStrategyChangesWhenAllNodesHaveIt(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		var first, second casting
		nodes := p.cluster(3, membership.WithDowning(membership.Downing{Provider: &strangeCounted{&first}, Version: "0.9", Parameters: "a=b"}))
		require.Equal(t, gossip.DowningStrategy{Name: "keep-majority", Version: "0.9", Parameters: "a=b", Pure: true}, nodes[0].State().Downing().DowningStrategy)
		sub := nodes[1].Subscribe()
		defer sub.Close()
		for i, n := range nodes {
			require.NoError(t, n.SetDowning(t.Context(), second.as("1.0.0")))
			<-time.After(time.Minute)
			for _, n := range nodes {
				require.Equal(t, i == 2, n.State().Downing().Name == "casting", "after node %d of 3", i+1)
			}
		}
		for changed := (membership.DowningChanged{}); changed.Strategy.Name == ""; {
			e, err := sub.Next(t.Context())
			require.NoError(t, err)
			changed, _ = e.(membership.DowningChanged)
			if changed.Strategy.Name != "" {
				require.Equal(t, nodes[1].State().Downing().DowningStrategy, changed.Strategy)
				require.Equal(t, "0.9", changed.Previous.Version)
			}
		}
		require.NoError(t, nodes[2].Close())
		p.await(nodes[0], "node 3 is removed", func(v membership.View) bool { return len(v.State.Members()) == 2 })
		require.Zero(t, first.asked.Load())
		require.EqualValues(t, 1, second.asked.Load())
		var why []string
		for _, d := range nodes[0].Decisions().Of("downing") {
			if d.Subject == "strategy" {
				why = append(why, d.Verdict)
			}
		}
		require.Equal(t, "changed loaded waiting waiting changed unloaded", strings.Join(why, " "))
		require.NoError(t, nodes[0].Close())
		require.NoError(t, nodes[1].Close())
		synctest.Wait()
		require.EqualValues(t, 3, second.released.Load(), "once on each node, at its end")
	})
}

// strangeCounted is a casting under another name.
type strangeCounted struct{ *casting }

// A strategy with the identity of a loaded one takes its place at once, and a strategy
// that the cluster does not use is released.
func TestDowningProviderIsReplacedUnderItsIdentity(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		var old, again, unused casting
		nodes := p.cluster(2)
		for _, n := range nodes {
			require.NoError(t, n.SetDowning(t.Context(), old.as("1")))
		}
		p.await(nodes[0], "the strategy changes", func(v membership.View) bool { return v.State.Downing().Name == "casting" })
		<-time.After(time.Second)
		require.NoError(t, nodes[0].SetDowning(t.Context(), unused.as("2")))
		require.NoError(t, nodes[0].SetDowning(t.Context(), again.as("1")))
		<-time.After(time.Second)
		require.EqualValues(t, 1, old.released.Load())
		require.EqualValues(t, 1, unused.released.Load())
		require.NoError(t, nodes[1].Close())
		p.await(nodes[0], "node 2 is removed", func(v membership.View) bool { return len(v.State.Members()) == 1 })
		require.Zero(t, old.asked.Load()+unused.asked.Load())
		require.EqualValues(t, 1, again.asked.Load())
		require.Zero(t, again.released.Load())
		require.NoError(t, nodes[0].SetDowning(t.Context(), membership.Downing{Name: downing.DownAllName}))
		p.await(nodes[0], "a built-in strategy decides", func(v membership.View) bool { return v.State.Downing().Name == downing.DownAllName })
		<-time.After(time.Second)
		require.EqualValues(t, 1, again.released.Load())
	})
}

// A node ends though the release of its strategy never returns.
func TestAReleaseThatDoesNotReturn(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		let := make(chan struct{})
		defer close(let)
		var c casting
		d := c.as("1")
		d.Release = func() { <-let }
		n := p.start(config(1))
		p.awaitUp(n)
		require.NoError(t, n.SetDowning(t.Context(), d))
		began := time.Now()
		require.NoError(t, n.Close())
		require.Less(t, time.Since(began), 15*time.Second)
	})
}

// A wrong strategy is refused, and not released: it was never taken.
func TestDowningStrategyThatIsWrongIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		var c casting
		n := p.start(config(1))
		p.awaitUp(n)
		for name, d := range map[string]membership.Downing{
			"needs a name": {Provider: &c},
			`downing.strategy: "casting" is neither built in (keep-majority, `: {Name: "casting"},
			`has no version "2" with parameters "": its version is "1"`:        {Name: downing.KeepMajorityName, Version: "2"},
			`with parameters "a=b"`:     {Name: downing.KeepMajorityName, Parameters: "a=b"},
			"is not printable UTF-8":    {Name: "a\nb", Provider: &c},
			"of 129 bytes, at most 128": {Name: strings.Repeat("n", 129), Provider: &c},
			"5000 bytes":                {Name: "casting", Parameters: strings.Repeat("p", 5000), Provider: &c},
		} {
			d.Release = func() { c.released.Add(1) }
			require.ErrorContains(t, n.SetDowning(t.Context(), d), name)
		}
		for fault, d := range map[string]membership.Downing{
			"version": {Provider: &c, Version: "\n"},
			`WithDowning gives the downing strategy "casting", and downing.strategy names "keep-majority"`: c.as("1"),
		} {
			_, err := membership.Start(t.Context(), config(2), append(p.options(), membership.WithDowning(d))...)
			require.ErrorContains(t, err, fault)
		}
		require.NoError(t, n.Close())
		require.ErrorIs(t, n.SetDowning(t.Context(), c.as("1")), membership.ErrClosed)
		synctest.Wait()
		require.Zero(t, c.released.Load())
	})
}

// covers F47: a node without the strategy of the cluster is refused, and its error
// names both.
func TestJoinerWithoutTheStrategyOfTheClusterIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		var c casting
		n := p.start(config(1))
		p.awaitUp(n)
		require.NoError(t, n.SetDowning(t.Context(), c.as("7")))
		p.await(n, "the strategy changes", func(v membership.View) bool { return v.State.Downing().Name == "casting" })
		late := p.start(config(2))
		err := p.ended(late)
		require.ErrorIs(t, err, membership.ErrRefused)
		require.ErrorContains(t, err, `downing.strategy is "casting" in the cluster and "keep-majority" here`)
		cfg := config(3)
		cfg.Downing.Strategy = "casting"
		p.awaitUp(n, p.start(cfg, membership.WithDowning(c.as("7"))))
	})
}

// sized is a catalogue with one strategy that decides by a setting of its section.
func sized(size string) downing.Catalogue {
	return downing.Catalogue{{
		Name: "sized", New: func(downing.Config) downing.Immediate { return downing.KeepMajority{} },
		Parameters: func(downing.Config) string { return "size=" + size },
	}}
}

// The parameters of a built-in strategy are part of what members compare: a node with
// another value is refused, and told both; one with the same value joins.
func TestJoinerWithOtherParametersOfABuiltInStrategyIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		node := func(i int, size string) *membership.Node {
			cfg := config(i)
			cfg.Downing.Strategy = "sized"
			return p.start(cfg, membership.WithBuiltIns(sized(size)))
		}
		first := node(1, "3")
		p.awaitUp(first)
		require.Equal(t, "size=3", first.State().Downing().Parameters)
		err := p.ended(node(2, "5"))
		require.ErrorIs(t, err, membership.ErrRefused)
		require.ErrorContains(t, err, `downing.parameters is "size=3" in the cluster and "size=5" here`)
		p.awaitUp(first, node(3, "3"))
	})
}

// A built-in strategy that is given to a running node is made of the section that comes
// with it, and cannot be given with other parameters than that section has.
func TestABuiltInStrategyIsMadeOfTheSectionGiven(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		l := downing.Catalogue{{
			Name: "lone", New: func(downing.Config) downing.Immediate { return downing.All{} },
			Parameters: func(c downing.Config) string { return "after=" + c.DownOwnSideAfter.String() },
		}}
		n := p.start(config(1), membership.WithBuiltIns(append(downing.BuiltIns(), l...)))
		p.awaitUp(n)
		give := func(d membership.Downing, want string) {
			require.NoError(t, n.SetDowning(t.Context(), d))
			p.await(n, want, func(v membership.View) bool { return v.State.Downing().Parameters == want })
		}
		give(membership.Downing{Name: "lone"}, "after=30s")
		section := downing.Default()
		section.DownOwnSideAfter = time.Minute
		give(membership.Downing{Name: "lone", Config: section}, "after=1m0s")
		section.DownOwnSideAfter = 0
		require.ErrorContains(t, n.SetDowning(t.Context(), membership.Downing{Name: "lone", Config: section}), "down-own-side-after")
		require.ErrorContains(t, n.SetDowning(t.Context(), membership.Downing{Name: "lone", Parameters: "after=1s"}), `its parameters are "after=30s"`)
	})
}

// A cluster is told to report, with a strategy of its own: the strategy is asked, and says what
// it would do, which is counted and logged. Nobody is downed but by command. The mode is part of
// the identity, and makes the strategy one by which no minority is kept.
func TestAStrategyThatReportsDownsNobody(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		var c casting
		nodes := p.cluster(3)
		d := c.as("1")
		d.Config = downing.Default()
		d.Config.Strategy, d.Config.Mode = "casting", downing.ModeReport
		for _, n := range nodes {
			require.NoError(t, n.SetDowning(t.Context(), d))
		}
		p.await(nodes[0], "the strategy changes", func(v membership.View) bool { return v.State.Downing().Name == "casting" })
		require.Equal(t, gossip.DowningStrategy{Name: "casting", Version: "1", Parameters: "mode=report", Pure: true, MajorityOnly: true},
			nodes[0].State().Downing().DowningStrategy)
		gone := nodes[2].Self()
		require.NoError(t, nodes[2].Close())
		<-time.After(time.Minute)
		require.Len(t, nodes[0].State().Members(), 3)
		require.Positive(t, c.asked.Load())
		reports := append(nodes[0].Decisions().Of("downing-report"), nodes[1].Decisions().Of("downing-report")...)
		require.NotEmpty(t, reports)
		require.LessOrEqual(t, len(reports), 4, "once for each view")
		require.Equal(t, "would keep-side", reports[0].Verdict)
		require.Contains(t, reports[0].Reason, "nobody is downed, would be: "+gone.String()+"; casting: it has the casting vote")
		require.NoError(t, nodes[0].Down(t.Context(), gone.Address.String()))
		p.await(nodes[0], "node 3 is removed", func(v membership.View) bool { return len(v.State.Members()) == 2 })
	})
}
