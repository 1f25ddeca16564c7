// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation runs replicas of distributed data in a world of package simulation,
// with clients that read, write and delete, and checks what they were told.
//
// Which nodes are members is decided by the world, and not by package membership: each node is told of a change at a
// time of its own, late, and perhaps of several at once. So two nodes may believe that they lead, a removed node goes
// on for a while, and members come and go in the middle of reads and writes. The machines of package protocol are those
// of production.
//
//	Cluster         the world: starts and ends nodes, and checks them
//	membership      tells the machine of one node who the members are
//	clients         the programs that read, write and delete
//	History         what was written, acknowledged, read and deleted, and what reads must return then
//	disk            the store at an address, whose writes may be late, fail, or be lost in a crash
//	checkedMachine  looks at what a machine sends
//	Scenarios       the runs by name; those with faults of their own are in files of their own: older.go, copied.go,
//	                writebehind.go and homes.go
//	Replicas        replicas in a world of another package, beside real membership
package simulation
