// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// planted is a world that breaks with every third seed, and panics with every fifth of the
// others.
func planted(name string) World {
	return World{Name: name, most: MaxNodes, run: func(seed uint64, nodes int) (Outcome, error) {
		switch {
		case seed%3 == 0:
			return Outcome{Virtual: time.Minute}, errors.New("broken\nwith its trace")
		case seed%5 == 0:
			panic("asserted")
		}
		return Outcome{Virtual: time.Duration(nodes) * time.Hour}, nil
	}}
}

func runs(p Plan) []Run {
	var all []Run
	p.Run(context.Background(), func(r Run) { all = append(all, r) })
	slices.SortFunc(all, func(a, b Run) int { return int(a.Seed) - int(b.Seed) })
	return all
}

func TestSoakGoesOnAfterAViolation(t *testing.T) {
	all := runs(Plan{Worlds: []World{planted("a"), planted("b")}, First: 1, Runs: 30, Jobs: 3})
	require.Len(t, all, 30)
	sizes := map[int]bool{}
	for i, r := range all {
		require.EqualValues(t, i+1, r.Seed)
		require.Equal(t, []string{"a", "b"}[i%2], r.World)
		sizes[r.Nodes] = true
		switch {
		case r.Seed%3 == 0:
			require.Equal(t, "broken", r.Violation())
			require.Equal(t, time.Minute, r.Virtual)
		case r.Seed%5 == 0:
			require.Equal(t, "panic: asserted", r.Violation())
		default:
			require.NoError(t, r.Err)
			require.Empty(t, r.Violation())
		}
	}
	require.Greater(t, len(sizes), 5, "sizes are drawn")
	require.Equal(t, "quorate soak -world b -nodes 15 -seed 8 -runs 1", Run{World: "b", Nodes: 15, Seed: 8}.Repeat())
}

func TestSoakEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	Plan{Worlds: []World{planted("a")}, First: 1}.Run(ctx, func(Run) {
		if n++; n == 7 {
			cancel()
		}
	})
	require.Equal(t, 7, n)
}

// What a run finds depends on its world, seed and nodes alone: not on its place in the plan,
// nor on the runs beside it.
//
// covers I30.
func TestRunIsRepeatedByItsSeedAndNodes(t *testing.T) {
	worlds, err := Choose([]string{"steady", "sharding-late", "lanes"})
	require.NoError(t, err)
	all := runs(Plan{Worlds: worlds, First: 40, Nodes: 3, Runs: 3, Jobs: 3})
	for i, r := range all {
		require.Equal(t, []Run{r}, runs(Plan{Worlds: worlds[i : i+1], First: r.Seed, Nodes: r.Nodes, Runs: 1}))
		require.GreaterOrEqual(t, r.Virtual, time.Minute)
	}
}

func TestWorldsAreChosenByName(t *testing.T) {
	all, err := Choose(nil)
	require.NoError(t, err)
	for i, w := range all {
		require.NotEmpty(t, w.About)
		require.Equal(t, i, slices.IndexFunc(all, func(o World) bool { return o.Name == w.Name }), "names are unique")
	}
	_, err = Choose([]string{"steady", "nonsense"})
	require.ErrorContains(t, err, `no world "nonsense"`)
}
