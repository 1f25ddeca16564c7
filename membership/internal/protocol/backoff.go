// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

const (
	// linkBackoffFirst is how long a node is kept out after its first downing for broken
	// links. Each further downing doubles the time.
	linkBackoffFirst = 5 * time.Second

	// MaxLinkBackoff is the longest time for which a node is kept out. After twice as
	// long without another downing the address starts again from the shortest.
	MaxLinkBackoff = 5 * time.Minute

	// maxLinkBackoffs bounds the addresses that are remembered.
	maxLinkBackoffs = 1024
)

// backoffs keeps out, for a growing time, nodes that were downed because some of their
// links were broken though other nodes reached them. A link that works on and off would
// otherwise have its node up and down in turns, each time with an outage of its work.
// Each member derives the entries by itself from the state in which it hears of the
// downing, so all agree except members that join later.
type backoffs map[gossip.Address]backoff

// backoff is for how long an address is kept out in all, and until when.
type backoff struct {
	last  time.Duration
	until machine.Instant
}

// note doubles the time for which an address is kept out, and starts it now.
func (b backoffs) note(a gossip.Address, now machine.Instant) {
	for other, o := range b { //quorate:unordered each is looked at by itself
		if now.Sub(o.until) > 2*MaxLinkBackoff {
			delete(b, other)
		}
	}
	was, known := b[a]
	if !known && len(b) >= maxLinkBackoffs {
		return
	}
	last := min(max(2*was.last, linkBackoffFirst), MaxLinkBackoff)
	b[a] = backoff{last: last, until: now.Add(last)}
}

// keeps tells whether an address is kept out, and for how long in all. The remaining time
// would make the text of the refusal differ from one request to the next.
func (b backoffs) keeps(a gossip.Address, now machine.Instant) (time.Duration, bool) {
	o, known := b[a]
	return o.last, known && now < o.until
}

// noteDowned notes the members that were downed for broken links between two states.
func (a *admission) noteDowned(prev, next *gossip.State) {
	for _, member := range next.Members() {
		if member.Status != gossip.Down {
			continue
		}
		was := prev.Member(member.Node)
		if was != nil && was.Status >= gossip.Up && was.Status < gossip.Down && member.Node != a.self && a.hadBrokenLinks(next, member.Node) {
			a.backoffs.note(member.Node.Address, a.now.Mono)
		}
	}
}

// hadBrokenLinks tells whether some member could not reach a node, or the node could not
// reach some member, while it and a voter that monitors it could reach each other.
// Members that were downed together with the node do not count.
func (a *admission) hadBrokenLinks(s *gossip.State, n gossip.NodeID) bool {
	goesOn := func(id gossip.NodeID) bool {
		member := s.Member(id)
		return member != nil && votes(member)
	}
	observers := s.Observers(n)
	for _, by := range observers {
		replaced := slices.ContainsFunc(s.RowsOf(by), func(r gossip.Row) bool {
			return r.Subject == n && r.Status == gossip.Terminated
		})
		if replaced {
			return false
		}
	}
	observed := slices.ContainsFunc(observers, goesOn)
	observes := slices.ContainsFunc(s.RowsOf(n), func(r gossip.Row) bool { return goesOn(r.Subject) })
	return (observed || observes) && slices.ContainsFunc(s.Members(), func(other *gossip.Member) bool {
		return other.Node != n && a.isVoter(other) && s.ReachableFrom(other.Node, n) && s.ReachableFrom(n, other.Node) &&
			slices.Contains(a.monitoring.targetsOf(other.Node), n)
	})
}

// keptOut returns the refusal of a node whose address must wait, or nil.
func (a *admission) keptOut(from gossip.NodeID, msg JoinRequest) *JoinRefused {
	wait, kept := a.backoffs.keeps(from.Address, a.now.Mono)
	if !kept || a.state.Member(from) != nil {
		return nil
	}
	return &JoinRefused{Attempt: msg.Attempt, Refusal: RefusedLinks, Retry: true, Reason: fmt.Sprintf(
		"the node at %v was downed because links to it were broken, and is let in again %v after that", from.Address, wait)}
}
