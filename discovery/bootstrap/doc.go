// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package bootstrap decides what a node without a cluster does with the contact points
// that discovery finds: ask them, join the cluster of one of them, or form a cluster.
//
// # Use
//
// A [Search] is told what lookups answer and which contact points do, and says when to
// look up again, whom to ask, and whether a cluster may be formed:
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
//	            lookup failed, found nobody, or not this node
//	           .---------------------------------------------.
//	           v                                             |
//	looking --found--> probing --all answer, enough of them--> steady --margin--> may form
//	                     ^                                       |                   |
//	                     '------- another set was found ---------+-------------------'
//
//	in every state: a contact point is in a cluster that goes on --> join it at once
//
// # Invariants
//
//	B1  The margin begins anew when another set is found, when a lookup fails, and when
//	    it finds nobody.
//	B2  No cluster may be formed before the margin has passed, with fewer contact points
//	    than required, upon a lookup that failed, or by a node that was not found itself.
//	B3  What was found last is asked until something else is found.
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
// Discovery may tell two nodes different things for any time. That two of them do not
// form two clusters is not promised here: that is for the vote.
package bootstrap
