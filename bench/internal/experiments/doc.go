// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package experiments has the experiments of the benchmark: the tables of figures, a file for each area of the
// toolkit, and beside each table what measures its figures:
//
//	traffic.go     tells and asks: on one node, between two, over both wires, by a client
//	entities.go    entities by the number: come to life, idle, remembered, reminded
//	failover.go    a node joins, nodes are restarted, a node is killed
//	states.go      changes of entities are saved in PostgreSQL
//	data.go        replicated data: updates, bytes, disks, a node that takes over a million keys
//	plugins.go     strategies that run in another process
//	management.go  requests and health checks beside a quiet cluster
//	members.go     many real nodes: running, starting at once, and in virtual time
//
// [Groups] is the list of all tables. A new group is a function in it, with an experiment for
// each function that measures; a process that such a function starts has its role in [Servers].
//
// The nodes of all areas are started in node.go, and those in other processes by
// [harness.Peers]. Whoever starts a node ends it; all of them end with the process.
package experiments
