// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package locationssim names runs of a simulated cluster whose shards live where a replicated map says, so that a
// program can run them and repeat a failure by name, seed and number of nodes. It is what `quorate soak` runs of
// locations.
//
// A run starts nodes with the machines of production: members, replicas of the map, coordinators and entities.
// Operators write locations at random nodes while nodes crash, leave, stand still and come back, links break and disks
// fail. All the time it is checked that nothing is read in the place of a location that was acknowledged, and what the
// worlds of sharding check; in the end all replicas have to say the same, and shards have to live there. A run is a
// function of its seed and its number of nodes: it takes virtual time, no real clock and one goroutine, that of the
// caller.
//
// # Life cycle and concurrency
//
// The package has no state, and its functions may be called by several goroutines.
//
// # Limits
//
// The names of the scenarios and what happens in them may change in any release, and with that what a seed stands for.
package locationssim
