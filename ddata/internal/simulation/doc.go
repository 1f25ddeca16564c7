// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation runs replicas of distributed data in a world of package simulation,
// with clients that read, write and delete, and checks what they were told.
//
// Who is a member is not decided by membership here but by the world: each node hears of
// the truth at a time of its own, late and in jumps, so that two nodes believe to lead, a
// removed node goes on for a while, and members come and go in the middle of reads and
// writes. The machines are those of production.
//
//	Cluster   the world: starts and ends nodes, lets clients work
//	roster    the members as one node knows them
//	client    the reads, writes and deletes of one node, as a program makes them
//	History   what was written, acknowledged, read and deleted, and what must follow
//	disks     the stores of a durable group, which fail, lag and lose
//	older     disks that are put back to an older state
//	behind    stores that are written behind, and lose their end with a crash
package simulation
