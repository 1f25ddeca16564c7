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
	// linkBackOffFirst is the time for which a node is not let in after it was downed
	// for its broken links the first time. It doubles from time to time.
	linkBackOffFirst = 5 * time.Second

	// LinkBackOffMost is the longest such time. After twice as long without another
	// downing the address begins anew.
	LinkBackOffMost = 5 * time.Minute

	// linkBackOffsMax bounds the addresses that are remembered.
	linkBackOffsMax = 1024
)

// backOffs keeps nodes out for a growing time that were downed because links to them
// were broken, though others reached them. Links that work by turns would have them up
// and downed in turns, with an outage of their work each time. Each member notes it by
// itself, from what the state says when it hears of the downing, so that all agree
// except those who join later.
type backOffs map[gossip.Address]backOff

type backOff struct {
	last  time.Duration
	until machine.Instant
}

// note begins the next time of an address.
func (b backOffs) note(a gossip.Address, now machine.Instant) {
	for other, o := range b { //quorate:unordered each is looked at by itself
		if now.Sub(o.until) > 2*LinkBackOffMost {
			delete(b, other)
		}
	}
	was, known := b[a]
	if !known && len(b) >= linkBackOffsMax {
		return
	}
	last := min(max(2*was.last, linkBackOffFirst), LinkBackOffMost)
	b[a] = backOff{last: last, until: now.Add(last)}
}

// keeps tells whether an address is kept out, and for how long in all: a reason that
// named what is left of it would be another one each time.
func (b backOffs) keeps(a gossip.Address, now machine.Instant) (time.Duration, bool) {
	o, known := b[a]
	return o.last, known && now < o.until
}

// noteDowned looks for members that were downed since a state, for their links.
func (a *admission) noteDowned(prev, next *gossip.State) {
	for _, member := range next.Members() {
		if member.Status != gossip.Down {
			continue
		}
		was := prev.Member(member.Node)
		if was != nil && was.Status >= gossip.Up && was.Status < gossip.Down && member.Node != a.self && a.hadBrokenLinks(next, member.Node) {
			a.backOffs.note(member.Node.Address, a.now.Mono)
		}
	}
}

// hadBrokenLinks tells whether some could not reach a member, or it them, while a voter
// that monitors it could. Those who went with it do not count.
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

// keptOut returns the refusal of a node whose address has to wait, or nil.
func (a *admission) keptOut(from gossip.NodeID, msg JoinRequest) *JoinRefused {
	wait, kept := a.backOffs.keeps(from.Address, a.now.Mono)
	if !kept || a.state.Member(from) != nil {
		return nil
	}
	return &JoinRefused{Attempt: msg.Attempt, Refusal: RefusedLinks, Retry: true, Reason: fmt.Sprintf(
		"the node at %v was downed because links to it were broken, and is let in again %v after that", from.Address, wait)}
}
