// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package membershipsim puts members into a world of package simulation, operates them,
// and checks what membership promises.
//
//	w := simulation.New(simulation.Options{Seed: 7})
//	membershipsim.Serve(w)
//	invariants := &membershipsim.Invariants{}
//	invariants.Watch(w)
//	operator := &membershipsim.Operator{Seeds: seeds, RestartAfter: 2 * time.Second}
//	operator.Operate(w)
//	member := membershipsim.Component(membershipsim.Config{})
//	for _, a := range addresses {
//		w.Start(a, func(env simulation.Env) []machine.Component {
//			return []machine.Component{member(env)}
//		})
//	}
//	err := w.Run(2 * time.Minute)
//
// A component that needs members attaches itself behind that of membership, in the
// function that builds the node.
//
// # What starts nodes again
//
// An [Operator] sees the whole cluster and repairs it. A [Supervisor] stands at each
// address, knows nothing of the cluster, and starts a node where it stood, inside a
// partition too.
//
// # Checks
//
// [Invariants], [Events] and [OneCluster] check in each step what must never happen.
// [Liveness] checks in each second what must happen in time; [BoundsOf] derives the times
// from the settings. The checks see nodes from outside,
// and share no code with the machine.
//
// The worlds that programs can choose by a name are in package scenario below.
//
// A World and all that is in it belong to one goroutine.
package membershipsim
