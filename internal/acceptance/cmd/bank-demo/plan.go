// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// The actions come first, then the choice of those of a run ([showing], [parsePhases]), and at last the plan, which is
// their order and the quiet times between them ([plan]); an order must leave enough members for each ([feasible]).

// action is one thing that the demo does to the cluster. Its name is that of
// the phase that begins with it, on the command line and in the last line.
type action string

// The actions. The demo waits for the end of each, so the cluster never loses two nodes
// at once and always keeps a majority: it has at least three members before it loses one.
const (
	killPlain  action = "kill"             // A node other than the oldest is killed.
	killOldest action = "coordinator_kill" // The oldest node is killed.
	startTwo   action = "join"             // Two nodes join.
	leaveOne   action = "leave"            // A node leaves in order.
	freezeOne  action = "freeze"           // A node stands still until it is removed, is replaced, and thaws.
	restartAll action = "rolling_restart"  // Every node leaves and comes back at its address, one by one.
	drainOne   action = "drain"            // A node hosts nothing for a while.
	reshardAll action = "reshard"          // The accounts get another number of shards.
	reshardOne action = "reshard_kill"     // The same, while a node is killed, which comes back at its address.
	harm       action = "plugins"          // A node joins while a plugin is killed; another plugin stands still.
)

// steady is the phase before the first action.
const steady = "steady"

// actions returns every action that this system allows.
func actions() []action {
	all := []action{killPlain, killOldest, startTwo, leaveOne, restartAll}
	if canFreeze {
		all = append(all, freezeOne)
	}
	if canOperate {
		all = append(all, drainOne, reshardAll, reshardOne)
	}
	return all
}

// possible returns every action of a run with plugins, or without.
func possible(plugins bool) []action {
	all := actions()
	if plugins && canFreeze {
		all = append(all, harm)
	}
	return all
}

// showing returns the actions of a run with default settings, which is to end within a minute. Those left out show
// little else: in a rolling restart nodes leave and join, a new node takes the place of the frozen one, and the number
// of shards changes in the phase in which a node is killed meanwhile.
func showing(plugins bool) []action {
	twice := []action{leaveOne, startTwo}
	if canOperate {
		twice = append(twice, killPlain, reshardAll)
	}
	return slices.DeleteFunc(possible(plugins), func(a action) bool { return slices.Contains(twice, a) })
}

// allPhases is the list of phases that stands for every one.
const allPhases = "all"

// parsePhases reads a list of phases, separated by commas. The empty list means those of
// [showing].
func parsePhases(list string, plugins bool) ([]action, error) {
	known := possible(plugins)
	switch list {
	case "":
		return showing(plugins), nil
	case allPhases:
		return known, nil
	}
	var chosen []action
	for name := range strings.SplitSeq(list, ",") {
		a := action(strings.TrimSpace(name))
		if !slices.Contains(known, a) {
			return nil, fmt.Errorf("phase %q is not known here, choose from %v, or %s", name, known, allPhases)
		}
		if slices.Contains(chosen, a) {
			return nil, fmt.Errorf("phase %q is named twice", name)
		}
		chosen = append(chosen, a)
	}
	return chosen, nil
}

// step is an action and the quiet time before it.
type step struct {
	after time.Duration
	what  action
}

// plan draws the order and the moments from the seed.
func plan(seed uint64, chosen []action) []step {
	rnd := rand.New(rand.NewPCG(seed, 1))
	order := slices.Clone(chosen)
	// A feasible order always exists: actions that remove no node first.
	for shuffled := false; !shuffled || !feasible(order); shuffled = true {
		rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	const least, span = time.Second, time.Second
	steps := make([]step, len(order))
	for i, a := range order {
		steps[i] = step{after: least + time.Duration(rnd.Int64N(int64(span))), what: a}
	}
	return steps
}

// feasible reports whether there are enough members for each action at its turn.
func feasible(order []action) bool {
	members := firstNodes
	for _, a := range order {
		if members < a.needs() {
			return false
		}
		members += a.brings()
	}
	return true
}

// needs is how many members an action needs before it: the rest has to be a
// majority, and a restart of fewer than four nodes would show little.
func (a action) needs() int {
	switch a {
	case startTwo, harm:
		return 1
	case restartAll:
		return 4
	default:
		return 3
	}
}

// brings is how many members there are more after an action.
func (a action) brings() int {
	switch a {
	case startTwo:
		return 2
	case harm:
		return 1
	case killPlain, killOldest, leaveOne:
		return -1
	default:
		return 0
	}
}
