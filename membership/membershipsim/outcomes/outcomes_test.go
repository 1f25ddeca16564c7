// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package outcomes_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/membershipsim/outcomes"
)

func keepMajority() outcomes.Strategy {
	s := downing.KeepMajority{}
	return outcomes.Strategy{Name: downing.KeepMajorityName, Version: "1", Class: s.Class(), Decide: s.DecideNow}
}

// ran runs a strategy on all cases, and checks that the table adds up.
func ran(t *testing.T, o outcomes.Options) outcomes.Table {
	t.Helper()
	table, err := outcomes.Run(t.Context(), o)
	require.NoError(t, err)
	sum := 0
	for _, r := range table.Rows {
		require.Equal(t, r.Cases, r.Whole+r.Majority+r.Smaller+r.Waits+r.Nobody, r.Family)
		require.LessOrEqual(t, r.Needless, r.Waits+r.Nobody, r.Family)
		sum += r.Cases
	}
	require.Len(t, table.Outcomes, sum)
	return table
}

func row(t *testing.T, table outcomes.Table, family string) outcomes.Row {
	t.Helper()
	for _, r := range table.Rows {
		if r.Family == family {
			return r
		}
	}
	require.Fail(t, "no row", family)
	return outcomes.Row{}
}

// Of three nodes the two that are together go on, whatever is broken, and without two that
// are together nobody does.
//
// covers F9, F14, I1, I2.
func TestKeepMajorityKeepsTheMajority(t *testing.T) {
	table := ran(t, outcomes.Options{Nodes: 3, Strategy: keepMajority()})
	for family, want := range map[string][2]int{ // Majority, nobody.
		"split-2": {3, 0}, "split-3": {0, 1}, "leader-crash": {15, 15}, "one-way": {6, 0}, "links": {45, 0}, "crash": {3, 3},
	} {
		r := row(t, table, family)
		require.Equal(t, want, [2]int{r.Majority, r.Nobody}, family)
		require.Zero(t, r.Needless, family)
	}
	for _, r := range table.Rows {
		require.Less(t, r.Slowest.Seconds(), 15., r.Family)
	}
}

// Who downs the other side by command does not go on by that alone.
//
// covers F9, F14, I1, I2.
func TestKeepOldestGoesOnOnceWhateverIsCommanded(t *testing.T) {
	for _, alone := range []bool{true, false} {
		cfg := outcomes.DefaultConfig()
		cfg.Strategy, cfg.KeepOldest.DownIfAlone = downing.KeepOldestName, alone
		s, err := outcomes.BuiltIn(cfg)
		require.NoError(t, err)
		for n := 2; n <= 4; n++ {
			r := row(t, ran(t, outcomes.Options{Nodes: n, Strategy: s, Families: []string{"commanded"}}), "commanded")
			require.Equal(t, r.Cases, r.Majority+r.Smaller, "one side goes on, of %d nodes", n)
		}
	}
}

// covers F14, I2.
func TestDownAllKeepsNobodyThatIsCutOff(t *testing.T) {
	s := downing.All{}
	table := ran(t, outcomes.Options{
		Nodes: 3, Families: []string{"split-2", "links"},
		Strategy: outcomes.Strategy{Name: downing.DownAllName, Version: "1", Class: s.Class(), Decide: s.DecideNow},
	})
	require.Len(t, table.Rows, 2)
	for _, r := range table.Rows {
		require.Equal(t, r.Cases, r.Nobody)
		require.Equal(t, r.Cases, r.Needless)
	}
}

// keepEverySide keeps whoever asks: the planted fault.
func keepEverySide(class downing.Class) outcomes.Strategy {
	return outcomes.Strategy{
		Name: "keep-every-side", Version: "1", Class: class, Asked: true,
		Decide: func(v downing.View) (downing.Decision, error) {
			side := v.Side()
			var lost []gossip.NodeID
			for _, m := range side.Lost() {
				if downing.CanBeDowned(m) {
					lost = append(lost, m.Node)
				}
			}
			if len(lost) == 0 {
				return downing.Decision{}, nil
			}
			return downing.Decision{Verdict: downing.KeepSide, Down: lost, Reason: "planted"}, nil
		},
	}
}

// covers F9, I1.
func TestTwoPartsThatGoOnAreFound(t *testing.T) {
	o := outcomes.Options{Nodes: 3, Families: []string{"split-2"}, Strategy: keepEverySide(downing.Class{})}
	_, err := outcomes.Run(t.Context(), o)
	var broken *outcomes.CaseError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, "split-2", broken.Case.Family)
	require.ErrorContains(t, err, "case 1 (split-2: 0+1 | 2): ")

	// A strategy that breaks its promise is not followed.
	o.Strategy = keepEverySide(downing.Class{Pure: true, MajorityOnly: true})
	require.Equal(t, 3, row(t, ran(t, o), "split-2").Majority)
}

// covers I30.
func TestACaseIsRepeatedToTheByte(t *testing.T) {
	all := ran(t, outcomes.Options{Nodes: 3, Strategy: keepMajority()})
	last := all.Outcomes[len(all.Outcomes)-1]
	var first, again strings.Builder
	for _, trace := range []*strings.Builder{&first, &again} {
		one := ran(t, outcomes.Options{Nodes: 3, Strategy: keepMajority(), Case: last.Case, Trace: trace})
		require.Equal(t, []outcomes.Outcome{last}, one.Outcomes)
	}
	require.NotEmpty(t, first.String())
	require.Equal(t, first.String(), again.String())
}

func TestEverySplitIsThereOnce(t *testing.T) {
	// Stirling numbers of the second kind.
	for n, want := range map[int][2]int{3: {3, 1}, 4: {7, 6}, 5: {15, 25}, 6: {31, 90}} {
		count, texts := map[string]int{}, map[string]bool{}
		for i, c := range outcomes.Cases(n) {
			require.Equal(t, i+1, c.Number)
			require.False(t, texts[c.Family+c.Text], c.Text)
			texts[c.Family+c.Text] = true
			count[c.Family]++
		}
		require.Equal(t, want, [2]int{count["split-2"], count["split-3"]})
		require.Equal(t, 1<<n-2, count["crash"])
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for what, o := range map[string]outcomes.Options{
		"0 nodes: want 2 to 6": {Strategy: keepMajority()},
		"7 nodes: want 2 to 6": {Nodes: 7, Strategy: keepMajority()},
		"no strategy":          {Nodes: 3},
		`no family "x"`:        {Nodes: 3, Strategy: keepMajority(), Families: []string{"x"}},
		"case 416 of 3 nodes":  {Nodes: 3, Strategy: keepMajority(), Case: 416},
		"case -1 of 3 nodes":   {Nodes: 3, Strategy: keepMajority(), Case: -1},
		"a trace is that of":   {Nodes: 3, Strategy: keepMajority(), Trace: &strings.Builder{}},
	} {
		_, err := outcomes.Run(t.Context(), o)
		require.ErrorIs(t, err, outcomes.ErrOptions)
		require.ErrorContains(t, err, what)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	_, err := outcomes.Run(ctx, outcomes.Options{Nodes: 5, Strategy: keepMajority(), Progress: func(n, of int) {
		require.Equal(t, 5055, of)
		done = n
		cancel()
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, done, 100)
}
