// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package filequeue is a queue of deliveries in a directory: what a producer or a pool has accepted outlives its
// process, and the crash of its machine.
//
//	queue, err := filequeue.Open("/var/lib/bank/outbox")
//	defer queue.Close()
//	cfg := delivery.Default()
//	cfg.Queue = queue
//	producer, err := delivery.NewProducer(ctx, accounts, cfg)
//
// # Life cycle
//
// [Open] reads the whole file once, and takes a lock on the directory, which ends with [Queue.Close] or the process. A
// queue belongs to the machine with its disk: whoever continues it must run there.
//
// # Guarantees
//
// An entry is synced to the disk before Append returns. A removal is written and not synced, so that after a crash of
// the machine some entries may be there again, which entities recognise as delivered twice. What a crash has left of
// writes that were not synced, wherever it has left parts out, is no entry, and is taken away by the next Open. What
// was synced before something behind it was written, and is not as it was, is [ErrDamaged], and nothing is changed
// then. A disk that is full or fails is an error of the system: after one the entry was not accepted, and may be
// delivered all the same. Nothing that a message holds is ever taken for an entry: each file has random bytes of its
// own, which whoever sends messages does not know, and they are part of the checksum of every entry.
//
// # Limits
//
// The file has at most the size of what is not removed, twice, and 1 MiB, but while it is written anew, which takes
// as long as to write what is left. The queue has some 100 bytes in memory for each entry.
//
// # Concurrency
//
// A queue is safe for concurrent use; its writes come one after the other.
package filequeue
