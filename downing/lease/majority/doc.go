// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package majority is the downing strategy lease-majority: of the sides of a cluster the one
// goes on that gets a lease.
//
// # Use
//
//	settings := majority.Default()
//	settings.Lease, settings.Owner = "bank-downing", "10.0.0.1:7946"
//	strategy, err := majority.New(store, settings)
//	...
//	defer strategy.Close()
//	node, err := membership.Start(ctx, cfg, membership.WithDowning(membership.Downing{
//		Name: downing.LeaseMajorityName, Parameters: settings.Parameters(), Provider: strategy,
//	}))
//
// A node of package cluster does this by the file of its configuration.
//
// # Lifecycle
//
//	asked: plan --- minority: wait ---> take the lease --- granted ---> keep the side
//	                                     ^    |      '---- refused ---> wait, in the end give up
//	                                     '----'
//	                                  no answer: again
//
//	keep the side ---> hold ---> all lost members are removed ---> rest ---> give back
//
// [Machine] decides, and reads no clock; [Strategy] drives it: a timer for what is due, and a
// goroutine for the call under way.
//
// # Concurrency
//
// A [Strategy] is safe for concurrent use. Questions are answered one after the other.
//
// # Guarantees
//
//   - A side is kept only after a call that the store granted while the question was open:
//     from the beginning of that call on the store gives the lease to nobody else for
//     [Settings.ReleaseAfter], whatever becomes of the holder.
//   - The lease is given back only when every member of the decision has been removed, and
//     after that, most of [Settings.ReleaseAfter] later. A holder that ends earlier leaves it
//     to the store to end the lease.
//   - Every wait ends with the context of the question.
//
// # Non-guarantees
//
// Who asks has to bound how old the news is by which it asks ([downing.Holder]): a side that
// was cut off for longer than a lease lasts could get it after another side gave it back. A
// store that forgets a lease, or that an operator empties, can give it twice.
package majority
