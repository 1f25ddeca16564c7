// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/simulation"
)

// disks returns a world of one node that writes a disk, and what each incarnation
// found on it.
func disks(seed uint64, d simulation.Writes) (w *simulation.World, found *[]any) {
	w = simulation.New(simulation.Options{Seed: seed, Disks: d})
	w.Disks().Keep("write", errEmptied)
	found = new([]any)
	w.Start(address(0), func(env simulation.Env) []machine.Component {
		*found = append(*found, env.Disk.Value)
		return []machine.Component{{Name: "writer", Service: service, Machine: &writer{}}}
	})
	return w, found
}

// covers F50: the disk in the simulation is whole, lost, older, torn, hangs or fails.
func TestDiskOutlivesItsNode(t *testing.T) {
	w, found := disks(1, simulation.Writes{})
	for _, text := range []string{"one", "two", "three"} {
		w.Input(address(0), service, text)
		require.NoError(t, w.Run(time.Second))
	}
	require.Equal(t, []error{nil, nil, nil}, w.Node(address(0)).Machine(service).(*writer).answered)
	w.Restart(address(0))
	require.False(t, w.Disks().Age(address(0), 3), "it never held anything before the first")
	require.True(t, w.Disks().Age(address(0), 1))
	w.Restart(address(0))
	w.Disks().Tear(address(0))
	w.Restart(address(0))
	w.Input(address(0), service, "four")
	require.NoError(t, w.Run(time.Second))
	w.Disks().Lose(address(0))
	w.Restart(address(0))
	require.Equal(t, []any{nil, "three", "two", nil, nil}, *found)
}

// The promise of one cluster holds until half of the disks that vote were lost, or one
// disk was set back.
func TestAWorldIsForgetfulWhenHalfOfItsDisksWereLost(t *testing.T) {
	world := func() *simulation.World {
		w := simulation.New(simulation.Options{Seed: 1})
		w.Disks().Keep("write", errEmptied)
		for i := range 3 {
			w.Start(address(i), func(simulation.Env) []machine.Component {
				return []machine.Component{{Name: "writer", Service: service, Machine: &writer{}}}
			})
		}
		w.Disks().Lose(address(0))
		w.Disks().Lose(address(1))
		for _, text := range []string{"one", "two"} {
			for i := range 3 {
				w.Input(address(i), service, text)
			}
			require.NoError(t, w.Run(time.Second))
		}
		require.False(t, w.Disks().Forgetful(addresses(0, 3)), "they held nothing")
		return w
	}
	w := world()
	w.Disks().Lose(address(0))
	w.Input(address(0), service, "three")
	require.NoError(t, w.Run(time.Second))
	w.Disks().Lose(address(0))
	require.False(t, w.Disks().Forgetful(addresses(0, 3)), "one is a minority")
	require.True(t, w.Disks().Forgetful(addresses(0, 2)))
	w.Disks().Tear(address(1))
	w.Restart(address(1))
	require.True(t, w.Disks().Forgetful(addresses(0, 3)))
	w = world()
	require.True(t, w.Disks().Age(address(2), 1))
	require.True(t, w.Disks().Forgetful(addresses(0, 2)), "whose ever it is")
	w = world()
	w.Disks().Set(simulation.Writes{Fail: 1})
	for range 20 {
		for i := range 3 {
			w.Input(address(i), service, "three")
		}
		require.NoError(t, w.Run(time.Second))
	}
	require.True(t, w.Disks().Forgetful(addresses(0, 3)), "writes that fail may empty a disk")
}

// Content that was being written when the node crashed, or whose write was answered
// with an error, may be on the disk or not.
func TestUnansweredWriteIsOnTheDiskOrNot(t *testing.T) {
	write := func(seed uint64, faults simulation.Writes, crash time.Duration) any {
		w, found := disks(seed, simulation.Writes{})
		w.Input(address(0), service, "old")
		require.NoError(t, w.Run(time.Second))
		w.Disks().SetAt(address(0), faults)
		w.Input(address(0), service, "new")
		require.NoError(t, w.Run(crash))
		w.Restart(address(0))
		w.Disks().Set(simulation.Writes{})
		return (*found)[1]
	}
	seen := make(map[string][]any)
	for seed := range uint64(20) {
		for name, faults := range map[string]simulation.Writes{"fails": {Fail: 1}, "hangs": {Hang: 1}, "torn": {Tear: 1}, "slow": {Min: 100 * time.Millisecond, Max: 200 * time.Millisecond}} {
			crash := 50 * time.Millisecond
			if name == "hangs" {
				crash = 1500 * time.Millisecond
			}
			if name == "torn" {
				crash = time.Nanosecond
			}
			if value := write(seed, faults, crash); !slices.Contains(seen[name], value) {
				seen[name] = append(seen[name], value)
			}
		}
	}
	require.Equal(t, []any{nil}, seen["torn"], "it cannot be read, and is emptied")
	require.ElementsMatch(t, []any{nil, "old", "new"}, seen["fails"], "it may be emptied too")
	for _, name := range []string{"hangs", "slow"} {
		require.ElementsMatch(t, []any{"old", "new"}, seen[name], name)
	}
}
