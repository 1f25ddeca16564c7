// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// The stream of events of Akka and Pekko Management ([Feed.domainEvents]): each event of the feed that they have too,
// in their words ([Feed.inAkka]). It begins with the members as they are, as events ([Feed.present]).

// akkaEvent is an event in the words of Akka. Of a gap, which those do not have, it says how many events are missing.
type akkaEvent struct {
	Type           string       `json:"type"`
	Member         *akkaSubject `json:"member,omitempty"`
	PreviousStatus string       `json:"previousStatus,omitempty"` // Of MemberRemoved.
	Address        string       `json:"address,omitempty"`        // Of LeaderChanged; none when nobody leads.
	Missed         uint64       `json:"missed,omitempty"`
}

// akkaSubject is the member that an event is about.
type akkaSubject struct {
	DataCenter    string            `json:"dataCenter"` // The zone.
	Roles         []string          `json:"roles"`
	Status        string            `json:"status"`
	UniqueAddress akkaUniqueAddress `json:"uniqueAddress"`
}

// akkaUniqueAddress is the id of a node.
type akkaUniqueAddress struct {
	Address string `json:"address"`
	LongUID uint64 `json:"longUid"`
}

// akkaDefaultZone is the name of the data centre of a member without a zone.
const akkaDefaultZone = "default"

// The names of groups of events.
const (
	akkaAll          = "ClusterDomainEvent"
	akkaMemberEvents = "MemberEvent"
	akkaReachability = "ReachabilityEvent"
	akkaUnreachables = "UnreachableMember"
	akkaReachables   = "ReachableMember"
	akkaLeader       = "LeaderChanged"

	akkaBegin = "begin" // Of the event, never sent, behind which a stream tells what is so.
)

// akkaEventOf names the event that a member has a status.
func akkaEventOf(s gossip.Status) string {
	switch s {
	case gossip.Joining:
		return "MemberJoined"
	case gossip.Leaving:
		return "MemberLeft"
	case gossip.Exiting:
		return "MemberExited"
	case gossip.Down:
		return "MemberDowned"
	case gossip.StatusNone, gossip.WeaklyUp, gossip.Up, gossip.Preparing, gossip.Ready, gossip.Removed:
	}
	return "Member" + akkaStatus(s)
}

// akkaNames are the names by which events are selected.
func akkaNames() []string {
	names := []string{akkaAll, akkaMemberEvents}
	for s := gossip.Joining; s <= gossip.Removed; s++ {
		names = append(names, akkaEventOf(s))
	}
	return append(names, akkaReachability, akkaUnreachables, akkaReachables, akkaLeader)
}

// akkaWanted returns what selects events by their names: the parameter type, given several times or with commas.
func akkaWanted(r Request) (func(name string) bool, error) {
	var names []string
	for _, given := range r.query["type"] {
		names = append(names, strings.Split(given, ",")...)
	}
	for _, name := range names {
		if !slices.Contains(akkaNames(), name) {
			return nil, refuse(http.StatusBadRequest, "type: there are no events of type %q; there are %s", clip(name), strings.Join(akkaNames(), ", "))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return func(name string) bool {
		switch {
		case len(names) == 0, slices.Contains(names, akkaAll), slices.Contains(names, name):
			return true
		case name == akkaUnreachables, name == akkaReachables:
			return slices.Contains(names, akkaReachability)
		}
		return name != akkaLeader && slices.Contains(names, akkaMemberEvents)
	}, nil
}

// domainEvents sends events of the cluster as they happen.
func (f *Feed) domainEvents(ctx context.Context, r Request, out *Stream) error {
	want, err := akkaWanted(r)
	if err != nil {
		return err
	}
	send := func(id string, e akkaEvent) error {
		if !want(e.Type) {
			return nil
		}
		return out.Send(id, e.Type, e)
	}
	at, first := f.position(r.LastEventID())
	if r.LastEventID() == "" {
		first = &Event{ID: f.id(at), Type: akkaBegin}
	}
	return f.tell(ctx, out, at, first, func(e Event) error {
		switch e.Type {
		case "gap":
			if err := out.Send(e.ID, e.Type, akkaEvent{Type: e.Type, Missed: e.Missed}); err != nil {
				return err
			}
		case akkaBegin:
		default:
			if event, told := f.inAkka(e); told {
				return send(e.ID, event)
			}
			return nil
		}
		for _, now := range f.present() {
			if err := send(e.ID, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// present are events that lead to the cluster as it is.
func (f *Feed) present() []akkaEvent {
	view := f.node.View()
	var all []akkaEvent
	for _, m := range view.State.Members() {
		all = append(all, akkaEvent{Type: akkaEventOf(m.Status), Member: f.subject(m)})
		if !view.State.Reachable(m.Node) {
			all = append(all, akkaEvent{Type: akkaUnreachables, Member: f.subject(m)})
		}
	}
	return append(all, f.led(view.Leader))
}

// inAkka puts an event into the words of Akka, if those have it.
func (f *Feed) inAkka(e Event) (event akkaEvent, told bool) {
	switch e := e.source.(type) {
	case membership.MemberChanged:
		return akkaEvent{Type: akkaEventOf(e.Member.Status), Member: f.subject(e.Member)}, true
	case membership.MemberRemoved:
		event = akkaEvent{Type: akkaEventOf(gossip.Removed), Member: f.subject(e.Member), PreviousStatus: akkaStatus(e.Previous)}
		event.Member.Status = akkaStatus(gossip.Removed)
		return event, true
	case membership.ReachabilityChanged:
		event = akkaEvent{Type: akkaUnreachables, Member: f.subject(e.Member)}
		if e.Reachable {
			event.Type = akkaReachables
		}
		return event, true
	case membership.LeaderChanged:
		return f.led(e.Leader), true
	}
	return akkaEvent{}, false
}

// led is the event that a member leads.
func (f *Feed) led(leader gossip.NodeID) akkaEvent {
	event := akkaEvent{Type: akkaLeader}
	if !leader.IsZero() {
		event.Address = akkaName(f.node, leader)
	}
	return event
}

// subject describes the member that an event is about.
func (f *Feed) subject(m *gossip.Member) *akkaSubject {
	return &akkaSubject{
		DataCenter: cmp.Or(m.Zone, akkaDefaultZone), Roles: append([]string{}, m.Roles...), Status: akkaStatus(m.Status),
		UniqueAddress: akkaUniqueAddress{Address: akkaName(f.node, m.Node), LongUID: uint64(m.Node.UID)},
	}
}
