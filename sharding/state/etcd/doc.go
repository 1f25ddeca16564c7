// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcd keeps the state of entities in etcd, for clusters that have an etcd and states that are
// few and small: settings of tenants, work that is under way. Etcd keeps all in memory and on each of
// its members, 2 to 8 GiB in all; for more than some 100,000 entities take a database.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"10.0.0.1:2379"}})
//	...
//	states, err := etcd.New(client, etcd.Options{})
//	keeper, err := state.NewKeeper(states, state.Default())
//
// The client is the program's: certificates and passwords are its matter, and so is to close it after the
// node has ended.
//
// # Keys
//
// Each record has the keys PREFIX owners/KIND/ID and versions/KIND/ID, and, with a snapshot,
// snapshots/KIND/ID; each save of events has events/KIND/ID/VERSION. Kinds and ids are escaped as in the path
// of a URL.
//
// # Guarantees
//
//   - A claim, and a write, is a transaction of etcd: a majority of its members has agreed on it. Those
//     of a call share transactions: up to 20 claims, or 33 writes, and some 1 MiB.
//   - What is no record is an error that names its key.
//
// # Non-guarantees
//
// A snapshot, or the events of one message, take at most what etcd takes in a request: 1.5 MiB by its
// default. Set state.Config.MaxBytes to no more than 1 MiB. Etcd keeps each revision until it is compacted:
// run it with --auto-compaction-retention.
//
// A Store is safe for concurrent use, and has no goroutines of its own.
package etcd
