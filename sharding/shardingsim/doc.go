// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package shardingsim names runs of a simulated cluster with entities, so that a
// program can run them and repeat a failure by name, seed and number of nodes. It is
// what `quorate soak` runs of sharding; the runs of members alone are those of
// membershipsim/scenario.
//
// Every scenario starts nodes with the machines of production, lets clients send to
// entities while faults strike, and checks all the time that no message is lost or
// handled twice and that no entity lives twice. In the end the cluster has to recover.
// A run is a function of its scenario, its seed and its number of nodes: it takes
// virtual time, no real clock and one goroutine, that of the caller.
//
// The package has no state, and its functions may be called by several goroutines. The
// names of the scenarios and what happens in them may change in any release, and with
// that what a seed stands for.
package shardingsim
