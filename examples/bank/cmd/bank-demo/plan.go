// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

// action is one thing that the demo does to the cluster.
type action string

// The actions. Each is waited for, so the cluster never loses two nodes at
// once and always keeps a majority: it has at least three members before each
// death.
const (
	killPlain  action = "kill a node"
	killOldest action = "kill the oldest node"
	startTwo   action = "start two nodes"
	leaveOne   action = "let a node leave"
)

// step is an action and the quiet time before it.
type step struct {
	after time.Duration
	what  action
}

// plan draws the order and the moments from the seed.
func plan(seed uint64) []step {
	rnd := rand.New(rand.NewPCG(seed, 1))
	actions := []action{killPlain, killOldest, startTwo, leaveOne}
	rnd.Shuffle(len(actions), func(i, j int) { actions[i], actions[j] = actions[j], actions[i] })
	steps := make([]step, len(actions))
	for i, a := range actions {
		steps[i] = step{after: 2*time.Second + time.Duration(rnd.Int64N(int64(2*time.Second))), what: a}
	}
	return steps
}
