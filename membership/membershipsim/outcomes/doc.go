// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package outcomes runs a downing strategy through every fault of a family, on clusters so
// small that this is possible, and counts who goes on: the whole cluster, a majority of it, a
// smaller part, nobody, or, which must never be, two parts at once.
//
//	table, err := outcomes.Run(ctx, outcomes.Options{Nodes: 5, Strategy: strategy})
//
// Each case is a run of its own in virtual time: the machines of production form a cluster of
// that many nodes, the fault strikes, and nothing is repaired. A case has a number and a text;
// its number, the strategy and the number of nodes repeat it to the byte.
//
// The families ([Families]) are splits into two and into three sides, the same while a member
// leaves, is downed by command or joins, and while leaders crash; links that carry messages in
// one direction only; one or two broken links; crashes of any set of nodes, by themselves
// and while a node joins; and splits after which one side downs the other by command.
//
// # Guarantees
//
// A run checks the invariants of [membershipsim.Invariants] after every step; one that does
// not hold ends [Run] with an error that names the case. So does a case in which two parts go
// on. A strategy may be one that must be asked, such as that of another process: it is asked
// for each decision, one call at a time, and takes no virtual time.
//
// # Limits
//
// A case has the clocks, the latencies and the moments of its number: the faults are all
// tried, their timing is not. [scenario] draws that at random.
package outcomes
