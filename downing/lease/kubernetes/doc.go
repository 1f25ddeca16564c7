// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes is a store of leases in Kubernetes: a lease is a Lease object of
// coordination.k8s.io/v1.
//
// # Use
//
//	settings := kubernetes.Default() // in a pod: its service account
//	leases, err := kubernetes.New(settings)
//	...
//	defer leases.Close()
//	keeper, err := lease.NewKeeper(leases, lease.Default(), "bank", node.String())
//
// The object has the name of the lease. The token is its leaseTransitions, which grow with each
// change of the holder.
//
// # Lifecycle and concurrency
//
// Nothing is asked before the first Take, and no goroutine is started. All methods are safe for
// concurrent use.
//
// # Guarantees
//
//   - Each change names the resource version that it is based on: of two who take a lease, the
//     API server refuses one. A grant is told only after the server has confirmed it.
//   - Times in the object are for people and are not compared. A holder has died if its object
//     has not changed for as long as the lease lasts, and 5 % more, by the monotonic clock of
//     whoever watches.
//   - What others have written into the object, such as labels, stays.
//   - An answer is bounded: to 1 MiB, and in time.
//
// # Non-guarantees
//
// Who begins to look at a lease cannot tell at once whether its holder lives: Take returns an
// error that wraps [ErrUndecided] until the holder has renewed it, or its time is over. A
// lease object that is deleted begins with the token 1 again; a keeper that has seen a higher
// one does not take it.
package kubernetes
