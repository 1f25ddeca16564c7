// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation runs whole clusters on one thread in virtual time. A run
// is a pure function of its seed: the same seed gives the same trace, to the
// byte, so that a seed that fails is a test for ever.
//
// A [World] steps the very machines that production runs, in the same order:
// each node has the [machine.Group] that a [machine.Driver] has. What differs
// is the outside: the world is the network, the clocks, the strategies that
// may block, and whatever goes wrong with them.
//
//	       ┌──────────────── World ────────────────┐
//	       │ one heap of events in virtual time    │
//	       └──┬─────────────┬──────────────┬───────┘
//	timers    │   packets   │    answers   │  scripted and random faults
//	       ┌──v──┐       ┌──v──┐        ┌──v──┐
//	       │node │ Send  │node │ Call   │node │   machine.Group each, a clock
//	       │     ├──────>│     ├───┐    │     │   with a rate and a wall of its own
//	       └──┬──┘       └──┬──┘   │    └──┬──┘
//	          └─────────────┴──────┼───────┘
//	            Publish, Decide    │ latency, hang, failure, garbage
//	                 v             v
//	        observers and checkers   answering functions
//
// # Use
//
//	w := simulation.New(simulation.Options{Seed: 7})
//	w.Start(address, func(env simulation.Env) []machine.Component { ... })
//	w.At(10*time.Second, func() { w.Network().Split(left, right) })
//	w.At(40*time.Second, w.Network().Heal)
//	err := w.Run(2 * time.Minute)
//
// The World starts and ends nodes, and has the time, the script, observers and checkers.
// What is around the nodes is in three parts of it:
//
//	w.Network()     messages and links       Cut, Split, Heal, SetLink, Lose, SetDelivery
//	w.Strategies()  who is asked by calls    Answer, Garble, Set, SetAt
//	w.Disks()       a disk at each address   Keep, Set, SetAt, Lose, Age, Tear
//
// Run returns the first violation, with the last lines of the trace and the
// command that replays it. After a violation a world does nothing more.
//
// # Faults
//
// Messages are late, lost, doubled and out of order, all of them or those of one
// type or lane ([Network.Lose]); links are cut in one direction or both, slow or lossy
// by themselves ([Network.SetLink]), nodes are clogged; nodes crash, also in the middle
// of the effects of a step ([World.CrashWithin]), come back at the same address with
// another uid, and freeze while time goes on, one or many at once; clocks run at
// different rates and show different wall times; strategies hang, fail, crash,
// answer garbage, too late or never ([Calls]); disks hang, fail, tear, are lost and
// come back older ([Writes], [Disks]). [Chaos] draws a schedule of faults from the seed.
//
// The world knows no protocol: [LossFaults] are told by a [Traffic] which messages there
// are. Who starts nodes again that ended, and what must hold of them, comes with the
// component: for members that is package membershipsim of module membership.
//
// # Strategies that are asked
//
// The outcome of a call is drawn from the seed, by chances that hold everywhere or at one
// address, and decides what is answered and when:
//
//	asked ──> answered ──────────────────> fed within the limit
//	      ├─> garbage, fail, hang, slow ─> fed, an error or worse
//	      ├─> crash ─────────────────────> refused at once, as all are until it is back
//	      ├─> stuck ─────────────────────> refused at the limit, the next ones busy
//	      └─> late ──────────────────────> fed after the limit, of no use
//
// An answer that comes after its limit must have no effect: that is checked for every
// machine.
//
// With [Options.Record] a run writes down its calls and their answers, and the state of
// its trace in each second. With [Options.Replay] the answers come from such a recording:
// no strategy is called, and the run is the recorded one to the byte, or ends with a
// [DivergenceError] that says in which second and at which call it differs.
//
// # Checkers
//
// A [Checker] sees every node after each of its steps, and the world once in
// every virtual second. Observers see everything that nodes publish and
// decide. Both are apart from the machines: what they check is worked out
// from the outside.
//
// # Guarantees
//
// No goroutine, no real clock, no global randomness, no order of map
// iteration takes part in a run. A World belongs to one goroutine.
package simulation
