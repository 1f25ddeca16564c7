// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
)

// script is a machine made of a function.
type script func(now machine.Now, in machine.Input, out *machine.Outbox)

func (s script) Step(now machine.Now, in machine.Input, out *machine.Outbox) { s(now, in, out) }

// journal records the effects that are carried out.
type journal struct{ lines []string }

func (j *journal) note(format string, values ...any) {
	j.lines = append(j.lines, fmt.Sprintf(format, values...))
}

func (j *journal) Carry(from machine.ID, e machine.Effect) { j.note("%d: %T", from, e) }

// Two components that answer each other neither recurse nor block: events published
// during a step are fed after the step, in the order of their publication.
func TestComponentsHearOfEachOtherInOrder(t *testing.T) {
	var j journal
	g := machine.NewGroup(&j)
	component := func(name string, reply map[string][]string) {
		g.Attach(machine.Now{}, machine.Component{Name: name, Machine: script(
			func(_ machine.Now, in machine.Input, out *machine.Outbox) {
				j.note("%s <- %v", name, in)
				if s, ok := in.(string); ok {
					for _, event := range reply[s] {
						out.Publish(event)
					}
				}
			})})
	}
	component("a", map[string][]string{"go": {"one", "two"}, "uno": {"fin"}})
	component("b", map[string][]string{"one": {"uno"}, "two": {"due"}})
	component("c", nil)
	g.Start(machine.Now{})
	j.lines = nil
	g.Step(machine.Now{}, 0, "go")
	require.Equal(t, []string{
		"a <- go", "0: machine.Publish", "0: machine.Publish",
		"b <- one", "1: machine.Publish", "c <- one",
		"b <- two", "1: machine.Publish", "c <- two",
		"a <- uno", "0: machine.Publish", "c <- uno",
		"a <- due", "c <- due",
		"b <- fin", "c <- fin",
	}, j.lines)
}

func TestStartedIsTheFirstInputOfEach(t *testing.T) {
	var j journal
	g := machine.NewGroup(&j)
	for _, name := range []string{"a", "b"} {
		g.Attach(machine.Now{}, machine.Component{Name: name, Machine: script(
			func(_ machine.Now, in machine.Input, out *machine.Outbox) {
				j.note("%s <- %T", name, in)
				if _, ok := in.(machine.Started); ok {
					out.Publish("hello")
				}
			})})
	}
	g.Start(machine.Now{})
	g.Attach(machine.Now{}, machine.Component{Name: "late", Machine: script(
		func(_ machine.Now, in machine.Input, _ *machine.Outbox) { j.note("late <- %T", in) })})
	require.Equal(t, []string{
		"a <- machine.Started", "0: machine.Publish", "b <- machine.Started", "1: machine.Publish",
		"b <- string", "a <- string",
		"late <- machine.Started", "a <- machine.Attached", "b <- machine.Attached",
	}, j.lines)
}

func TestEndlessDialogueOfComponentsIsADefect(t *testing.T) {
	g := machine.NewGroup(&journal{})
	for _, name := range []string{"a", "b"} {
		g.Attach(machine.Now{}, machine.Component{Name: name, Machine: script(
			func(_ machine.Now, _ machine.Input, out *machine.Outbox) { out.Publish("again") })})
	}
	require.PanicsWithError(t, "broken invariant: components do not answer each other for ever deliveries=65536",
		func() { g.Start(machine.Now{}) })
}

func TestNamesAndServicesAreUnique(t *testing.T) {
	g := machine.NewGroup(&journal{})
	idle := script(func(machine.Now, machine.Input, *machine.Outbox) {})
	g.Attach(machine.Now{}, machine.Component{Name: "a", Service: 1, Machine: idle})
	require.Panics(t, func() { g.Attach(machine.Now{}, machine.Component{Name: "b", Service: 1, Machine: idle}) })
	require.Panics(t, func() { g.Attach(machine.Now{}, machine.Component{Name: "a", Service: 2, Machine: idle}) })
}

func TestInstantSaturates(t *testing.T) {
	require.Equal(t, machine.Never, machine.Never.Add(1))
	require.Equal(t, machine.Instant(3), machine.Instant(5).Add(-2))
}
