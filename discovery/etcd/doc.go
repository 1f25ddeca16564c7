// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcd finds contact points in etcd: each node registers itself there under a
// lease, and vanishes with the lease.
//
// # Use
//
// A program makes the method, registers its node, gives the method to the discovery
// module under a name, and closes it in the end:
//
//	settings := etcd.Default()
//	settings.Endpoints = []string{"https://10.0.0.1:2379", "https://10.0.0.2:2379"}
//	nodes, err := etcd.New(settings)
//	...
//	defer nodes.Close()
//	_, err = nodes.Register(etcd.Entry{Service: "bank", Host: "10.1.0.7", Port: 7946})
//	...
//	found, err := discovery.New(config, discovery.Method{Name: etcd.Method, Discovery: nodes})
//
// The key of a node is the prefix, the service and the address, such as
// /quorate/bank/10.1.0.7:7946, and the value is JSON: host, port, and further ports by
// their names.
//
// # Lifecycle and concurrency
//
// Nothing happens before the first lookup or registration. A lookup begins a
// conversation that reads the entries and then asks once a second whether there is
// anything new; its goroutine ends a minute after the last lookup, or with Close. A
// registration has a goroutine until it is closed:
//
//	lease --> put --> keep alive, six times in the life of the lease ...
//	  ^        |           |                    |
//	  |        |           |                    +-- Close: the lease is revoked
//	  +--------+-----------+ failed, lost: a pause of 1 to 15 seconds
//
// All types are safe for concurrent use.
//
// # Guarantees
//
//   - A lookup reads what a majority of the members of etcd has agreed on. While etcd cannot
//     be asked there is an error, and no answer from before.
//   - A registration goes on until it is closed: over the restart of etcd, the loss of
//     its lease, and the deletion of its key.
//   - An answer of etcd is bounded: to 8 MiB, to [discovery.MaxTargets] nodes, and in time.
//
// # Non-guarantees
//
// A node that has died is found for as long as its lease lasts. An answer may be as old
// as the interval and, while a request hangs, as old as the time limit of the request. Every
// user of etcd that may write below the prefix can register an address at which no node is.
package etcd
