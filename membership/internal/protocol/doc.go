// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package protocol is the membership machine: it joins a node to a cluster,
// gossips, monitors, leads, downs, leaves, and says at each moment whether the
// node may host anything.
//
// A [Machine] is made by [New], is fed [Join] with the addresses of the seed
// nodes, or [Discover], and ends itself with [component.Stopping]. It is a machine.Machine: it decides and
// does nothing else. Each concern is a part of it, a type of its own; DESIGN.md says
// which part may use which. The head of each file says what its part decides:
//
//	core.go             what all parts share
//	survey.go           what follows from a state: leader, convergence, sets of voters
//	members.go          what parts read off a state and its survey
//	inquiry.go          whom a node asks about clusters, and what they answer
//	contactsearch.go    how contact points are looked up, and dialled
//	join.go             how a node without a cluster finds one
//	formation.go        how nodes that find none found one, by a vote
//	record.go           what a node must not forget over a restart
//	memory.go           when the record is on disk, and what waits for that
//	otherclusters.go    which of two clusters of one name that meet goes on
//	waiting.go          for whom a node in no cluster waits
//	admission.go        how a member takes a node in
//	gossiper.go         how the state spreads
//	gossippeers.go      with whom a node of a large cluster gossips
//	heartbeat.go        who monitors whom, and when a node is marked unreachable
//	flapdetector.go     which unreachable records are kept for a time after an answer
//	judgesession.go     how a failure detector outside of the machine is asked
//	answers.go          when heartbeats were answered; the answers to those of others
//	standing.go         until when this node may host
//	standingrelay.go    how proofs of a majority are lent in a large cluster
//	standby.go          which of the nodes that lend proofs ask the members
//	undecided.go        until when a node may host where a minority may survive
//	leader.go           what the leader does under convergence
//	gate.go             when a newcomer may become up
//	backoff.go          which addresses are kept out for a time
//	voting.go           who votes
//	linksurvey.go       what is done while links between surviving members are broken
//	downing.go          when it must be decided who goes after a partition
//	deciding.go         which strategy decides that, on which node
//	strategies.go       which strategies there are, and how the cluster changes to another
//	fences.go           from when on a removed node hosts nothing any more
//	seensets.go         who had seen which records, for the fences
//	leave.go            how a node leaves in order
//	clustershutdown.go  how a whole cluster is stopped
//	endexplainer.go     what a node says of its own end
//	settle.go           in which order the parts are told of a new state
//	conduct.go          what concerns several parts at once
//
// # The life of a node
//
//	Join        Welcome        leader       Leave       all stopped   leader
//	 |             |              |           |              |          |
//	idle -> joining -> member: joining -> up -> leaving -> (confirmed) exiting -> removed
//	                                 \           |            |
//	                                  '----------+------------+--> down -> removed
//
// # What other components see
//
// [component.Changed] after each change of the state, [component.Standing] when the moment up to
// which the node may host moves, [component.Fenced] when nothing of a removed node can be
// hosting any more, [component.Stopping] at the end. A component that has work to hand over
// before the node leaves publishes [component.Busy], and [component.Drained] when it is done.
//
// # Guarantees
//
//   - Two nodes of different sides of a partition never host at the same time
//     after one side has given the other's work new homes, as long as clocks of
//     nodes run at rates that differ by at most one percent, and as long as no
//     node stands still without its clock noticing. This holds at any number of
//     nodes: where a node monitors some of the voters only, others that hear all
//     lend it what they have proven, and the fence counts every one of them.
//   - Only the leader under convergence changes voters and the downing strategy,
//     gives up-numbers, and removes members; all in one edit.
//   - Every voter can decide by the downing strategy of the cluster. While the
//     strategy changes, no side survives that another one's strategy does not keep.
//   - Nothing is waited for without a timer, and nothing is refused without a
//     reason, a count, and, unless it is expected in normal operation, an event.
//
// A node whose process stands still is not accused by its own clock of others'
// silence: it accuses nobody for as long as silence is allowed.
//
// # Timing of a failover
//
// With the default settings, from the crash of a node to [component.Fenced] at the
// others: at most 5 s until it is marked unreachable, 0.1 s until all know, 3 s
// of an unchanged view, 0.3 s until it is down and all have seen it, 0.4 s until
// its removal is known. The fence of 3 s runs meanwhile. Where the downing strategy
// may let a side without a majority survive, work gets new homes 10.5 s after the
// first voter marked the node.
//
// # Concurrency
//
// A Machine belongs to one goroutine. The values that it publishes are immutable.
package protocol
