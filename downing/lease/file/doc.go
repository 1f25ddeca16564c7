// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package file is a store of leases for the processes of one host: a lease is a lock of the
// operating system on a file.
//
//	leases, err := file.New("/var/lib/bank/leases")
//	...
//	defer leases.Close()
//	keeper, err := lease.NewKeeper(leases, lease.Default(), "bank", node.String())
//
// All processes have the same directory, on a local disk. A lease "bank" is two files: the
// lock, bank.lock, and bank.lease with the token and the last owner.
//
// # Guarantees
//
//   - A lease belongs to one process at a time: the system keeps the lock, and gives it free
//     when the process ends, however that happens; a kill -9 is enough. With [Open] the lease
//     lasts for its TTL from there on, unless it was given back.
//   - A lease is not taken from a process that is frozen, whatever its TTL.
//   - Tokens are synced to the disk before they are given.
//   - A file that was damaged is an error, and no token begins anew because of it.
//   - On a system without such locks every Take fails.
//
// # Non-guarantees
//
// Who deletes a lock file lets a second process take the lease, until the first one notices at
// its next renewal. File systems of a network may keep locks badly, or not at all. Closing a
// store unlocks its leases without giving them back: close the keepers first.
//
// All methods are safe for concurrent use. No goroutine is started.
package file
