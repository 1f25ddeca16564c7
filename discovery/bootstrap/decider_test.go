// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bootstrap_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
)

// seen is what 10.0.0.9 observes of itself and others.
func seen(others ...bootstrap.Observed) bootstrap.Observations {
	return bootstrap.Observations{
		Self: point(9), Required: 2, StableMargin: time.Second, Stable: time.Second,
		Points: append([]bootstrap.Observed{{Point: point(9)}}, others...),
	}
}

func TestTheBuiltInRule(t *testing.T) {
	decide := func(o bootstrap.Observations) bootstrap.Decision {
		d, err := bootstrap.LowestAddress{}.Decide(t.Context(), o)
		require.NoError(t, err)
		require.NoError(t, d.Check(o))
		return d
	}
	require.Equal(t, bootstrap.Decision{Action: bootstrap.Form, Reason: "10.0.0.9:7946 has the lowest address of 2 contact points"},
		decide(seen(bootstrap.Observed{Point: point(10)})))
	require.Equal(t, "1 contact points answer, 2 are required", decide(seen(bootstrap.Observed{Point: point(10), Answered: -1})).Reason)
	young := seen(bootstrap.Observed{Point: point(10)})
	young.Stable = 0
	require.Equal(t, "the contact points have not been unchanged for 1s", decide(young).Reason)
	joined := decide(seen(bootstrap.Observed{Point: point(10), SeedNodes: points(10)}))
	require.Equal(t, bootstrap.Decision{Action: bootstrap.Join, SeedNodes: points(10), Reason: "10.0.0.10:7946 is in a cluster that goes on"}, joined,
		"the margin does not matter, nor how many there are")
	higher := seen(bootstrap.Observed{Point: point(8)})
	higher.Points[0], higher.Points[1] = higher.Points[1], higher.Points[0]
	require.Equal(t, "10.0.0.8:7946 has a lower address, and forms the cluster", decide(higher).Reason)
}

func TestDecisionsAreChecked(t *testing.T) {
	o := seen(bootstrap.Observed{Point: point(10), SeedNodes: points(10)})
	require.NoError(t, bootstrap.Decision{}.Check(o))
	require.NoError(t, bootstrap.Decision{Action: bootstrap.Join, SeedNodes: points(10)}.Check(o))
	for name, d := range map[string]bootstrap.Decision{
		"no such action":    {Action: 3},
		"nobody to join":    {Action: bootstrap.Join},
		"a form that joins": {Action: bootstrap.Form, SeedNodes: points(10)},
		"nobody named it":   {Action: bootstrap.Join, SeedNodes: points(11)},
		"more than named":   {Action: bootstrap.Join, SeedNodes: append(points(10), points(10)...)},
	} {
		require.Error(t, d.Check(o), name)
	}
	require.Equal(t, "probe join form", bootstrap.Probe.String()+" "+bootstrap.Join.String()+" "+bootstrap.Form.String())
}

// A decider that ends with Check hears of what a node refuses.
func TestAClusterIsFormedOnlyWhereTheObservationsAllow(t *testing.T) {
	form := bootstrap.Decision{Action: bootstrap.Form}
	require.NoError(t, form.Check(seen(bootstrap.Observed{Point: point(10)})))
	young := seen(bootstrap.Observed{Point: point(10)})
	young.Stable = 160 * time.Millisecond
	for want, o := range map[string]bootstrap.Observations{
		"bootstrap: form with 1 contact points, 2 are required": seen(),
		"bootstrap: form while 10.0.0.10:7946 is in a cluster":  seen(bootstrap.Observed{Point: point(10), SeedNodes: points(10)}),
		"bootstrap: form after 160ms, the margin is 1s":         young,
	} {
		require.EqualError(t, form.Check(o), want)
	}
}

// Two nodes that sorted addresses differently would both form a cluster, or neither would.
func TestAddressesAreOrderedAsNumbers(t *testing.T) {
	ordered := []discovery.Target{
		{Host: "9.0.0.200", Port: 1},
		{Host: "10.0.0.1", Port: 1},
		{Host: "10.0.0.9", Port: 2},
		{Host: "10.0.0.9", Port: 10},
		{Host: "10.0.0.10", Port: 1},
		{Host: "10.0.0.200", Port: 1},
		{Host: "::2", Port: 1},
		{Host: "::10", Port: 1},
		{Host: "a.example", Port: 1},
		{Host: "b.example", Port: 1},
	}
	rapid.Check(t, func(t *rapid.T) {
		i, j := rapid.IntRange(0, len(ordered)-1).Draw(t, "i"), rapid.IntRange(0, len(ordered)-1).Draw(t, "j")
		switch c := bootstrap.Compare(ordered[i], ordered[j]); {
		case i < j:
			require.Negative(t, c, "%v %v", ordered[i], ordered[j])
		case i > j:
			require.Positive(t, c, "%v %v", ordered[i], ordered[j])
		default:
			require.Zero(t, c)
		}
	})
}
