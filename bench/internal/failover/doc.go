// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package failover measures what callers notice when a cluster changes: a node joins,
// or a node is killed, while every entity is asked several times a second.
//
//	this process            peers, one a node
//	  watches ── ask ──────────> residents
//	  second node                first, third ... node
//	     └──── stays ─────────────> register of each node
//
// Each entity has a watch, which keeps the longest time between two answers, the errors
// and the node that answered. Each node has a register of the times at which entities
// began and ended to live on it; an entity that is in two registers at the same moment
// was active twice. This process is the second node, so that neither the oldest nor the
// youngest node is the one that measures.
package failover
