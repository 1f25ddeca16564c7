// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/simulation"
)

// covers F15.
func TestMessagesOfOneSortAreLostUntilTheEnd(t *testing.T) {
	w := pingers(simulation.Options{}, 3)
	end := w.Network().Lose("pings to n001", func(from, to gossip.Address, message any) bool {
		_, is := message.(ping)
		return is && to == address(1) && from != address(2)
	})
	require.NoError(t, w.Run(2500*time.Millisecond))
	require.Empty(t, machineOf(w, 1).heard["n000"])
	require.Equal(t, []int{1, 2}, machineOf(w, 1).heard["n002"])
	require.Equal(t, []int{1, 2}, machineOf(w, 0).heard["n001"])
	_, quiet := w.Quiet()
	require.False(t, quiet, "something is wrong")
	end()
	end()
	require.NoError(t, w.Run(time.Second))
	require.Equal(t, []int{3}, machineOf(w, 1).heard["n000"])
	passed, quiet := w.Quiet()
	require.True(t, quiet)
	require.Equal(t, time.Second, passed)

	all := func(_, _ gossip.Address, _ any) bool { return true }
	other := w.Network().LoseService(service+1, all)
	require.NoError(t, w.Run(time.Second))
	require.Equal(t, []int{3, 4}, machineOf(w, 1).heard["n000"], "that is no service of theirs")
	other()
	w.Network().LoseService(service, all)
	require.NoError(t, w.Run(time.Second))
	require.Equal(t, []int{3, 4}, machineOf(w, 1).heard["n000"])
	w.Network().Heal()
	require.NoError(t, w.Run(time.Second))
	require.Equal(t, []int{3, 4, 6}, machineOf(w, 1).heard["n000"])
}

// covers F13.
func TestCloggedNodeIsCutOffWhateverItsLinksAre(t *testing.T) {
	w := pingers(simulation.Options{}, 3)
	w.Network().Clog(address(0))
	w.Network().Clog(address(1))
	w.Network().Unclog(address(0))
	require.False(t, w.Network().Connected(address(0), address(1)), "one end is clogged")
	require.True(t, w.Network().Connected(address(0), address(2)))
	w.Network().Cut(address(0), address(2))
	w.Network().Mend(address(0), address(2))
	require.True(t, w.Network().Connected(address(0), address(2)))
	require.NoError(t, w.Run(1500*time.Millisecond))
	require.Empty(t, machineOf(w, 0).heard["n001"])
	require.Equal(t, []int{1}, machineOf(w, 1).heard["n001"], "it reaches itself")
	w.Network().Heal()
	require.True(t, w.Network().Connected(address(0), address(1)))
}

// covers F11, F16.
func TestALinkMayBeWorseThanTheNetwork(t *testing.T) {
	w := pingers(simulation.Options{}, 3)
	w.Network().SetLink(address(0), address(1), simulation.Link{Min: 1400 * time.Millisecond, Max: 1500 * time.Millisecond})
	w.Network().SetLink(address(0), address(2), simulation.Link{Loss: 1})
	require.NoError(t, w.Run(2300*time.Millisecond))
	require.Empty(t, machineOf(w, 1).heard["n000"], "the first one is still on its way")
	require.Equal(t, []int{1, 2}, machineOf(w, 0).heard["n001"], "the other direction is well")
	require.Empty(t, machineOf(w, 2).heard["n000"])
	require.NoError(t, w.Run(400*time.Millisecond))
	require.Equal(t, []int{1}, machineOf(w, 1).heard["n000"])
	w.Network().SetLink(address(0), address(2), simulation.Link{})
	require.NoError(t, w.Run(500*time.Millisecond))
	require.Equal(t, []int{3}, machineOf(w, 2).heard["n000"])
}

func TestNodeCrashesInTheMiddleOfAStep(t *testing.T) {
	w := pingers(simulation.Options{}, 4)
	w.CrashWithin(address(0), 2, func(message any) bool { return message == ping{2} })
	old := w.Node(address(0))
	require.NoError(t, w.Run(3500*time.Millisecond))
	why, ended := old.Ended()
	require.True(t, ended)
	require.Equal(t, "crashed", why)
	require.Equal(t, []int{1, 2}, machineOf(w, 1).heard["n000"], "this message was out")
	require.Equal(t, []int{1}, machineOf(w, 2).heard["n000"], "this one was never sent, in the same step")
	require.Equal(t, []int{1}, machineOf(w, 3).heard["n000"])
	require.Len(t, old.Machine(service).(*pinger).fired, 2, "and no timer was armed")
}

// errEmptied is the answer to a write that failed and emptied the disk.
var errEmptied = errors.New("emptied")

// writer writes every input that it is fed to its disk.
type writer struct {
	calls    machine.CallID
	answered []error
}

func (d *writer) Step(_ machine.Now, in machine.Input, out *machine.Outbox) {
	switch in := in.(type) {
	case string:
		d.calls++
		out.Add(machine.Call{ID: d.calls, Port: "write", Request: in, Limit: time.Second})
	case machine.Called:
		d.answered = append(d.answered, in.Err)
	}
}
