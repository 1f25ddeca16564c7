// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package durable keeps the durable keys of a replica in a directory: a [store.Store]
// of a log and sorted files, with a check sum over every byte.
//
// # Use
//
//	config := durable.Default()
//	config.Dir, config.Cluster = "/var/lib/bank/data", "bank"
//	s, err := durable.Open(ctx, config)
//	...
//	defer s.Close()
//
// A node is given [OpenIn]: cluster.WithStore(durable.OpenIn).
//
// [Check], [Export] and [Repair] are what `quorate data` does with the directory of a node
// that does not run.
//
// # Files
//
//	dir/
//	  lock        held by the process that uses the directory, empty
//	  manifest    text: cluster, ID, starts, and the names of what follows
//	  log-N       what was applied, a frame for each sync; the last one is written
//	  run-N       sorted by group and key, never changed
//	  aside-N     a copy of a group that was wiped; nothing loads it
//	  *.damaged   what a repair has replaced; nothing loads it
//
//	Apply --> log, sync, mark --> table in memory --+--> Load: all merged by key
//	            | full                              |
//	            +--> run --> larger runs -----------+
//
// # Lifecycle and concurrency
//
// Open takes the directory, reads manifest and logs, and starts one goroutine, which
// turns full logs into runs and merges runs; Close ends it. All methods are safe for
// concurrent use. One Apply is written at a time: collect what many writers want into
// one call.
//
// # Guarantees
//
//   - What Apply has acknowledged is synced. After kill -9, a crash of the machine or a
//     full disk it is there, each batch whole.
//   - A byte that was changed, a file that was cut, emptied, exchanged or removed is an error
//     that wraps [store.ErrCorrupt], of Open or of Load, and names the file and what to do.
//   - A directory of another cluster, of another version, or in use is refused, and not
//     changed.
//   - Memory: at most about two logs of [Config.LogBytes], with what maps cost; eight while the
//     disk does not keep up or is full. Beyond that Apply waits or fails.
//   - Files are for their owner only.
//
// # Non-guarantees
//
// The store does not notice that it is an older copy of the whole directory: what was
// acknowledged after it was taken is not in it. The replicator does, see its documentation:
// the replica takes no part, and begins anew with a copy of the directory's keys in aside-N.
// After a crash of the machine, not of the process, damage to the very last batch looks
// like one that was never acknowledged. The file system must keep what it has synced.
package durable
