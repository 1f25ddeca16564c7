// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package clustertest is a cluster for tests: whole nodes in one process, on a network in
// memory, in the virtual time of testing/synctest. Nodes can be killed and cut off from one
// another, can leave and join, and minutes of the cluster pass in milliseconds.
//
//	func TestAccountsOutliveTheirNode(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			c := clustertest.Start(t, 3)
//			accounts := clustertest.StartKind(c, account)
//			c.Kill(accounts.Home("acct-42"))
//			...
//		})
//	}
//
// The nodes are those of package cluster, with all their parts, and are configured by the same
// text as in production ([WithConfig]). Only the connections between them are replaced, by package
// transport/memory. An [Entity] is one entity of a cluster, of one node if nothing else is to
// be tested: it runs by the code that runs it in production, and so its mailbox, timers,
// passivation and failures are the real ones. A [Recorder] stands in for entities of others.
//
// # Life cycle
//
// [Start] must be called inside of synctest.Test. It starts nodes and waits until they are one
// cluster. When the test ends, all nodes end; a goroutine that is left then fails
// the test, and so does a node that has seen two hosts of one shard.
//
// # Failures
//
// A verb that is not possible, such as the kill of a node that has ended, ends the test by
// Fatal with one line. Each wait ends after the limit of the cluster ([Cluster.SetLimit]) by the
// clock of the bubble. The error then is a [WaitError], which says what each node is
// waiting for and which links are cut.
//
// # Limits
//
// Time stands still while a goroutine waits for something outside of the bubble. So nothing
// in a bubble may use a socket, a subprocess or a database, and the section management of the
// configuration must have no address. The memory of the process is
// shared: a killed node loses what its entities hold, but not what the test holds for them.
// The order in which goroutines run is that of the Go scheduler, so that a run need not repeat
// exactly; package sharding/shardingsim is for that.
//
// # Concurrency
//
// The methods of a [Cluster], and what is made from it, are for the goroutine of the test.
// [Recorder.Messages] and [Entity.Starts] may be called from any goroutine.
package clustertest
