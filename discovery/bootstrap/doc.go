// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package bootstrap decides what a node without a cluster does with the contact points
// that discovery finds: ask them, join the cluster of one of them, or form a cluster.
//
// # Use
//
// A [Search] is told the answers of lookups and of contact points. It says when to look up
// again, which contact points to ask, and whether a cluster may be formed:
//
//	s := bootstrap.NewSearch(config, self)
//	s.LookedUp(now, targets, err)
//	ask := s.Points()
//	seen := s.Observe(now, answers)
//	if missing := s.Missing(seen); missing == "" {
//		decision := bootstrap.LowestAddress{}.DecideNow(seen)
//		...
//	}
//
// A [JoinDecider] takes the place of [LowestAddress], the built-in rule. The module
// membership runs a search in its machine, and decides by a vote among the contact points
// whether a cluster is really founded.
//
// # States
//
//	            lookup failed, found nothing, or did not find this node
//	           .-------------------------------------------------------.
//	           v                                                       |
//	looking --found--> probing --all answer, enough of them,--> may form
//	                     ^       and the margin has passed         |
//	                     '------ another set was found ------------'
//
//	in every state: a contact point is in a cluster that goes on --> join that cluster at once
//
// The margin runs from the lookup that found the set, whether its contact points answer or
// not.
//
// # Invariants
//
//	B1  The margin begins anew when another set is found, and after a lookup that failed or
//	    found nothing.
//	B2  No cluster may be formed before the margin has passed, with fewer contact points
//	    than required, after a lookup that failed, or by a node whose own address was not
//	    found.
//	B3  The contact points that were found last are asked until others are found.
//	B4  The order of contact points is that of their addresses as numbers, and the same
//	    on every node.
//
// # Lifecycle and concurrency
//
// Everything here is a plain value: no goroutine, no lock, no clock, no I/O. Time is an
// argument, of which only differences are used. A Search has one owner.
//
// # Non-guarantees
//
// Discovery may give two nodes different answers for any time. This package does not promise
// that they form only one cluster: the vote among the contact points sees to that.
package bootstrap
