// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcd is a store of leases in etcd: a lease is a key under a lease of etcd, and
// vanishes with that.
//
// # Use
//
//	settings := etcd.Default()
//	settings.Endpoints = []string{"https://10.0.0.1:2379", "https://10.0.0.2:2379"}
//	leases, err := etcd.New(settings)
//	...
//	defer leases.Close()
//	keeper, err := lease.NewKeeper(leases, lease.Default(), "bank", node.String())
//
// The key is the prefix and the name, such as /quorate/leases/bank, its value is the owner,
// and its token the revision at which etcd created it.
//
// # Lifecycle and concurrency
//
// Each call opens a connection, with the password and the certificates that the files hold then,
// and closes it. No goroutine outlives a call. All methods are safe for concurrent use.
//
// # Guarantees
//
//   - What is told is what a majority of the members of etcd has agreed on, read after the
//     lease of etcd was renewed. While etcd cannot be asked there is an error.
//   - Tokens grow over all leases of one etcd, whatever becomes of the keys.
//
// # Non-guarantees
//
// Who deletes the key of a lease lets another take it, until the holder notices at its next
// renewal. An etcd that was restored from a backup may give lower tokens than before; a keeper
// that has seen a higher one does not take them.
package etcd
