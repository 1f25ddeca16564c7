// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package lease keeps a lease: the right to be the only one, which a store outside of the
// cluster gives to one holder at a time and takes back when it is not renewed.
//
// # Use
//
//	keeper, err := lease.NewKeeper(store, lease.Default(), "bank-downing", node.String())
//	...
//	defer keeper.Close()
//	held, err := keeper.Acquire(ctx)
//	if refused, ok := errors.AsType[*lease.RefusedError](err); ok {
//		// refused.Holder has the lease.
//	}
//	...
//	if now, ok := keeper.Check(); ok {
//		write(now.Token) // Whoever is written to refuses tokens lower than the highest seen.
//	}
//
// A [Store] answers single questions: packages memory and file, beside this one, are
// stores, and so are the modules downing/lease/etcd and downing/lease/kubernetes. Package
// leasetest has the suite for further ones.
//
// # Lifecycle
//
//	          refused
//	idle <------------ waiting --- granted ---> held --+-- renewed, from the moment of the call
//	  |                  ^   |                   |  ^  |
//	  +----- Acquire ----+   +-- unknown, again  |  +--+
//	  ^                                          |
//	  +---- releasing <---- Release -------------+---- the end by the own clock, a refusal: lost
//
// Nothing is asked before the first [Keeper.Acquire]. Close gives back what is held.
//
// # Concurrency
//
// A [Keeper] is safe for concurrent use. One call to the store is under way at a time, on
// a goroutine of its own.
//
// # Guarantees
//
//   - At most one keeper of a lease says at any moment that it holds the lease, as long
//     as all clocks run at the same rate within 1 %, whatever time they show: a holding
//     ends here 5 % before the store can end it, counted from before the call was sent.
//   - [Keeper.Check] looks at the clock itself, so that a process that was frozen, or a
//     machine that slept, learns of the end with the first question after it.
//   - An answer that is unknown, late, of another owner or with a token that shrank begins
//     no holding and prolongs none.
//   - Tokens of successive holders grow, as long as the store forgets nothing.
//   - Every wait ends, even if the store ignores its context.
//
// # Non-guarantees
//
// Between a Check and what follows from it the process may be frozen for as long as you
// like: what must not happen twice has to compare tokens. A lease that was not given back
// keeps others out until its time is over.
package lease
