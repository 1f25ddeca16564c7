// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shutdown

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Phase is one step of the end of a program.
type Phase struct {
	// Name is how tasks name the phase. It is unique, and not empty.
	Name string
	// After names the phases that are over before this one begins.
	After []string
	// Reserve is the time that the phases before leave to this one at least, out of the deadline; not below 0.
	Reserve time.Duration
	// Most is the longest time that the phase may take; 0: as long as there is.
	Most time.Duration
}

// The phases of a node, in their order: see [Phases].
const (
	// Unready is for what keeps others from sending more, and for the time until they have noticed.
	Unready = "unready"
	// Serve is for servers, which end what is under way.
	Serve = "serve"
	// Leave hands over what the node hosts, and takes it out of its cluster.
	Leave = "leave"
	// Close is for what entities have used: connections to databases, files.
	Close = "close"
)

// Phases returns the phases of a node, which come after one another. Of the deadline at least three fifths are
// left for leaving, and one second for what is closed, or a tenth if that is less.
func Phases(deadline time.Duration) []Phase {
	return []Phase{
		{Name: Unready},
		{Name: Serve, After: []string{Unready}},
		{Name: Leave, After: []string{Serve}, Reserve: deadline * 3 / 5},
		{Name: Close, After: []string{Leave}, Reserve: min(time.Second, deadline/10)},
	}
}

// ErrPhases is wrapped by the errors of [New].
var ErrPhases = errors.New("shutdown: the phases make no sense")

// check returns the phases in an order in which each follows those that it comes after.
func check(deadline time.Duration, phases []Phase) ([]Phase, error) {
	reserved := time.Duration(0)
	for i, p := range phases {
		switch {
		case p.Name == "":
			return nil, fmt.Errorf("%w: phase %d has no name", ErrPhases, i)
		case slices.ContainsFunc(phases[:i], func(q Phase) bool { return q.Name == p.Name }):
			return nil, fmt.Errorf("%w: %q is there twice", ErrPhases, p.Name)
		case p.Reserve < 0 || p.Most < 0:
			return nil, fmt.Errorf("%w: %q has a time below 0", ErrPhases, p.Name)
		}
		reserved += p.Reserve
		for _, before := range p.After {
			if !slices.ContainsFunc(phases, func(q Phase) bool { return q.Name == before }) {
				return nil, fmt.Errorf("%w: %q comes after %q, which there is not", ErrPhases, p.Name, before)
			}
		}
	}
	if reserved > deadline {
		return nil, fmt.Errorf("%w: %v are reserved, and the deadline is %v", ErrPhases, reserved, deadline)
	}
	var order []Phase
	done := func(name string) bool {
		return slices.ContainsFunc(order, func(p Phase) bool { return p.Name == name })
	}
	for len(order) < len(phases) {
		i := slices.IndexFunc(phases, func(p Phase) bool {
			return !done(p.Name) && !slices.ContainsFunc(p.After, func(before string) bool { return !done(before) })
		})
		if i < 0 {
			return nil, fmt.Errorf("%w: some come after each other in a circle", ErrPhases)
		}
		order = append(order, phases[i])
	}
	return order, nil
}

// later returns the time that the phases which come after one keep back.
func later(phases []Phase, name string) (reserved time.Duration) {
	follows := map[string]bool{name: true}
	for _, p := range phases { // In their order, so that what a phase comes after is known.
		if slices.ContainsFunc(p.After, func(before string) bool { return follows[before] }) {
			follows[p.Name] = true
			reserved += p.Reserve
		}
	}
	return reserved
}
