// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// Members of three releases are one cluster, through faults of all sorts: those of one before, which lacks a field, of
// the present one, and of a later one, whose members say something that the others do not understand. They keep and
// pass it on all the same.
//
// covers F13, F16, F25, I6, I7, I8, I9, I10, I29.
func TestMembersOfThreeReleasesAreOneCluster(t *testing.T) {
	const nodes = 6
	fields := membershipsim.Fields()
	first, n := simulationtest.Seeds(t, max(len(fields), seedsUsual/4))
	for seed := first; seed < first+n; seed++ {
		w := simulation.New(simulation.Options{
			Seed: seed, RatePPM: 10_000, WallSkew: time.Second, CodecEvery: 1,
			Network: simulation.Delivery{Loss: 0.002, Double: 0.002},
		})
		membershipsim.Serve(w)
		invariants := &membershipsim.Invariants{}
		invariants.Watch(w)
		releases := membershipsim.Releases{}
		for i := range nodes {
			switch i % 3 {
			case 0:
				releases[address(i)] = membershipsim.Release{Without: fields[seed%uint64(len(fields))]}
			case 1:
				releases[address(i)] = membershipsim.Release{Later: true}
			}
		}
		releases.Watch(w)
		operator := &membershipsim.Operator{Seeds: addresses(0, 3), RestartAfter: 2 * time.Second}
		operator.Operate(w)
		for i := range nodes {
			component := membershipsim.Component(membershipsim.Config{Release: releases[address(i)]})
			w.Start(address(i), func(env simulation.Env) []machine.Component { return []machine.Component{component(env)} })
		}
		_, err := w.RunUntil(time.Minute, func() bool { return membershipsim.Settled(w) == nil })
		require.NoError(t, err, "seed %d", seed)
		w.Chaos(simulation.Chaos{For: 30 * time.Second, Every: 3 * time.Second, Faults: simulation.Faults()})
		simulationtest.RequireRun(t, seed, w.Run(30*time.Second))
		_, err = w.RunUntil(2*time.Minute, func() bool { return membershipsim.Settled(w) == nil })
		require.NoError(t, err, "seed %d", seed)
	}
}

// One world in three has members of other releases, of both sorts, and what is drawn is the same for the same seed.
func TestReleasesAreDrawnForOneWorldInThree(t *testing.T) {
	var mixed, before, later int
	for seed := range uint64(300) {
		releases := membershipsim.DrawReleases(seed, addresses(0, 7))
		require.Equal(t, releases, membershipsim.DrawReleases(seed, addresses(0, 7)))
		if releases != nil {
			mixed++
		}
		for _, r := range releases {
			if r.Later {
				later++
			} else {
				before++
				require.Contains(t, membershipsim.Fields(), r.Without)
			}
		}
	}
	require.InDelta(t, 100, mixed, 25)
	require.InDelta(t, mixed*7/4, before, float64(mixed)/2)
	require.InDelta(t, mixed*7/4, later, float64(mixed)/2)
	require.Equal(t, membershipsim.Release{}, membershipsim.Releases(nil)[gossip.Address{}], "the present one")
}
