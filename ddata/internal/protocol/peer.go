// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// What is known of the other replicas: what each has said of itself in its last envelope ([peerStatus]), how far it has
// caught up, what was sent to it, and how its store compares with what is remembered of it.

// participation says whether a replica counts, and if not, why.
type participation uint8

const (
	// takesPart: it counts.
	takesPart participation = iota
	// apart: its store is compared with what others remember of it, and it does not count before.
	apart
	// unsure: it may have lost what it has acknowledged, and takes in what the others hold before it counts.
	unsure
	// older: its store is older than what others remember of it. It counts no more, and comes back as another replica.
	older
)

// compared reports whether the store was compared by all members, so that others may depend on the replica.
func (c participation) compared() bool { return c == takesPart || c == unsure }

// participation returns what an envelope says of its sender's replica.
func (e *Envelope) participation() participation {
	switch {
	case e.Older:
		return older
	case e.Unsure && e.Apart:
		return unsure
	case e.Apart:
		return apart
	default:
		return takesPart
	}
}

// peerStatus is what a peer has said of itself in its last envelope.
type peerStatus struct {
	gen           uint64 // The generation that it knows, 0 for no register,
	turn          uint32 // and the turn of its lineage.
	participation participation
	hosts         bool            // Its node may host.
	unsure        machine.Instant // Since when it has said that it is unsure, 0 if it does not say so.
	heard         machine.Instant // When the envelope came.
}

// statusOf returns what an envelope that has come now says of its sender, after what an earlier one of the node has
// said.
func statusOf(e Envelope, before peerStatus, now machine.Instant) peerStatus {
	w := peerStatus{gen: e.Gen, turn: e.Lineage.Turn, participation: e.participation(), hosts: !e.Suspended, heard: now}
	if e.Unsure {
		if w.unsure = before.unsure; w.unsure == 0 {
			w.unsure = now
		}
	}
	return w
}

// peer is another replica of the group, or a member of which no replica is known yet.
type peer struct {
	peerStatus

	node gossip.NodeID
	id   ReplicaID // 0 while it is not known.

	caught   uint64   // The last generation in which it has said that it caught up.
	progress struct { // The greatest [Hello.Taken] that it has sent, and when that came.
		taken uint64
		at    machine.Instant
	}

	stoppedBy string // The reason of the guard that stopped its last envelope, "" if none did.

	compared  bool   // Its store was compared with what is remembered of it,
	lostBatch uint64 // and lacks this batch, 0 for none.
	agrees    bool   // It has said that it remembers no batch of this replica's store that is missing here.
	written   uint64 // The greatest number of a batch that it has shown under its id.
	shown     uint64 // The number of the batch that was shown to it last.
	// verified is when its node was last asked whether it still is this replica, since another node claims to be.
	verified machine.Instant

	registerSent struct { // The generation of the register that was sent to it last, and when.
		gen uint64
		at  machine.Instant
	}
}

// former reports whether an envelope was sent before the replica of its node was given another id (see [RenewID]), and
// comes late: the numbers of batches go on under the new id.
func (p *peer) former(e Envelope) bool {
	return p.id != 0 && p.id != e.From && e.Written < p.written
}
