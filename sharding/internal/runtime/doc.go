// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package runtime carries messages to entities: on one node it holds, for each kind, the cell
// of every shard with its lock, and carries out what the cells ask for. There is one such
// interpreter. It has no goroutine, no channel, no reading of the time and no code of a
// program in it: whatever can wait, or differs between a process and a simulated node, is a
// port, see [Ports].
//
//	              production                         simulation
//	lanes         transport.Lane                     passages that stall, break and fill up
//	clock         machine.SystemClock                the clock of the world
//	timers        time.AfterFunc                     timers of the world
//	work          goroutines on a [Queue]            virtual workers on a [Queue]
//	asker         a channel                          the ledger
//	program       the methods of an entity           stubs that take virtual time
//
// The way of a message through the files:
//
//	send.go    Tell, Offer        a message of this node comes to its cell
//	carry.go   carry              what the cell asks for: lanes, work, replies
//	batch.go   transmit           its bytes with those of other cells, when the lane calls
//	link.go    append             or by themselves, into the lane to the home
//	inbox.go   Received           a frame comes from a lane, and is handed to its cells
//	job.go     Begin, Handled     an entity with messages, step by step, by a worker
//	queue.go   Put, Next, Look    which worker takes which entity
//	replies.go reply              its reply goes back, with others if the lane is busy
//	asks.go    complete           the reply reaches whoever asked
//	acks.go    Acknowledge        the cells acknowledge, in rounds
//
// A [Node] is shared by the kinds of a node, a [Region] is a kind, a [Slot] the cell of one
// shard. Methods of all three may be called from any goroutine, but those of a [Job] only by
// the worker that does the job. Ports are called with the lock of a slot held, unless their
// documentation says otherwise: they return at once, and call nothing of this package before
// that.
package runtime
