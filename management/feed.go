// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// A feed keeps the last events of a node in a ring ([Feed.add]): what happens to its cluster, from a
// subscription ([Feed.follow]), and its decisions, as they are taken. Each reader has a position in the ring
// and nothing else ([Feed.after]): one that is slower than the ring turns misses events, and is told so.

const (
	// eventsKept is how many events a feed remembers.
	eventsKept = 2000
	// eventsDefault is how many events are listed when no limit is given.
	eventsDefault = 100
)

// Event is one event of a node: something that happened to its cluster, as it saw it, or a decision
// that it took.
type Event struct {
	// ID is the place of the event in the feed of its node, for [Request.LastEventID] and the parameter after.
	ID string    `json:"id"`
	At time.Time `json:"at"` // When the node noticed it.

	// Type is "member" when a member has a new status, "removed" when one is gone for good, "unreachable" and
	// "reachable", "leader", "downing" when the cluster has another downing strategy, "fenced" when the work of a
	// removed node may be taken over, "decision", or "gap": events before this one are not known any more.
	Type string `json:"type"`

	Node     string    `json:"node,omitempty"`     // The node that the event is about; none for a leader that is gone.
	Status   string    `json:"status,omitempty"`   // The status of the member.
	Previous string    `json:"previous,omitempty"` // The status before; the strategy before, of type downing.
	Missed   uint64    `json:"missed,omitempty"`   // Of a gap, how many events are missing; none if that is not known.
	Decision *Decision `json:"decision,omitempty"` // Of a decision, all of it.
	Text     string    `json:"text"`               // What has happened, in one sentence.

	source membership.Event // What it was made of; nil for decisions, and gaps of the feed.
}

// EventList lists the last events of a node, the oldest first.
type EventList struct {
	Self   string  `json:"self"` // The node that answers.
	Events []Event `json:"events"`
	// Last is the place up to which events are listed, or were left out by their type, for the parameter
	// after of who wants those that follow.
	Last string `json:"last"`
}

// Feed keeps the last 2,000 events of a node, for [Feed.Routes]. It must be closed.
type Feed struct {
	node  *membership.Node
	self  gossip.NodeID
	sub   *membership.Subscription
	stop  func()
	ended chan struct{} // Closed when follow has returned.

	mu   sync.Mutex    // Guards all below.
	ring []Event       // Those with the numbers last-len(ring)+1 to last, the one with number n at (n-1) % eventsKept.
	last uint64        // Number of the last event; 0 before the first.
	more chan struct{} // Closed and replaced when there is another event.
}

// OpenFeed begins to keep the events of a node.
func OpenFeed(node *membership.Node) *Feed {
	f := &Feed{node: node, self: node.Self(), sub: node.Subscribe(), ended: make(chan struct{}), more: make(chan struct{})}
	f.stop = node.Decisions().Watch(f.decided)
	// Owned by the feed: ends when Close has closed the subscription, or the node has ended; Close waits.
	go f.follow()
	return f
}

// Close ends the feed; its routes go on to answer with what it has kept. It returns nil, and may be called
// again, and on a nil feed.
func (f *Feed) Close() error {
	if f == nil {
		return nil
	}
	f.stop()
	f.sub.Close()
	<-f.ended
	return nil
}

// follow adds what happens to the cluster.
func (f *Feed) follow() {
	defer close(f.ended)
	for {
		e, err := f.sub.Next(context.Background()) // Close ends it.
		if err != nil {
			return
		}
		if event, told := happened(e); told {
			f.add(event)
		}
	}
}

// decided adds a decision. Its goroutine must not wait: nothing that holds the lock does.
func (f *Feed) decided(d membership.Decision) {
	decision := Decision(d)
	text := d.Subject + ": " + d.Verdict
	if d.Reason != "" {
		text += ", because " + d.Reason
	}
	f.add(Event{At: d.At, Type: "decision", Decision: &decision, Text: text})
}

// happened puts an event of the membership into words. Refusals are for the log: strangers can
// cause any number of them.
func happened(e membership.Event) (event Event, told bool) {
	event.At, event.source = time.Now(), e
	switch e := e.(type) {
	case membership.MemberChanged:
		event.Type, event.Node, event.Status = "member", e.Member.Node.String(), e.Member.Status.String()
		event.Text = event.Node + " is " + event.Status
		if e.Previous != gossip.StatusNone {
			event.Previous = e.Previous.String()
			event.Text += ", it was " + event.Previous
		}
		if !e.Member.Downed.IsZero() {
			event.Text += fmt.Sprintf(": declared down by %v: %s", e.Member.Downed.By, e.Member.Downed.Why)
		}
	case membership.MemberRemoved:
		event.Type, event.Node, event.Status, event.Previous = "removed", e.Member.Node.String(), gossip.Removed.String(), e.Previous.String()
		event.Text = event.Node + " is removed, it was " + event.Previous
	case membership.ReachabilityChanged:
		event.Type, event.Node, event.Status = "unreachable", e.Member.Node.String(), e.Member.Status.String()
		event.Text = event.Node + " is unreachable for a member that monitors it"
		if e.Reachable {
			event.Type, event.Text = "reachable", event.Node+" is reachable again for all"
		}
	case membership.LeaderChanged:
		event.Type, event.Text = "leader", "no member leads"
		if !e.Leader.IsZero() {
			event.Node, event.Text = e.Leader.String(), e.Leader.String()+" leads"
		}
	case membership.DowningChanged:
		event.Type, event.Status, event.Previous = "downing", e.Strategy.Name, e.Previous.Name
		event.Text = fmt.Sprintf("the downing strategy is %s, it was %s", e.Strategy.Name, e.Previous.Name)
	case membership.Fenced:
		event.Type, event.Node = "fenced", e.Node.String()
		event.Text = fmt.Sprintf("nothing of %v runs any more, so its work may be taken over", e.Node)
	case membership.Missed:
		event.Type, event.Missed = "gap", uint64(e.N)
		event.Text = fmt.Sprintf("%d events of the cluster came too fast to be kept: see the members", e.N)
	default:
		return Event{}, false
	}
	return event, true
}

// add puts an event into the ring, in place of the oldest if it is full, and wakes all readers.
func (f *Feed) add(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	e.ID = f.id(f.last)
	if len(f.ring) < eventsKept {
		f.ring = append(f.ring, e)
	} else {
		f.ring[(f.last-1)%eventsKept] = e
	}
	close(f.more)
	f.more = make(chan struct{})
}

// id returns the id of the event with a number. It has the uid of the node, so that a number of an earlier
// process at the same address is not taken for one of this.
func (f *Feed) id(number uint64) string {
	return strconv.FormatUint(uint64(f.self.UID), 16) + "-" + strconv.FormatUint(number, 10)
}

// number returns the number of the event with an id. Where the event is none of this feed, ours is false, and
// the number is 0.
func (f *Feed) number(id string) (number uint64, ours bool) {
	uid, text, _ := strings.Cut(id, "-")
	if uid != strconv.FormatUint(uint64(f.self.UID), 16) {
		return 0, false
	}
	number, err := strconv.ParseUint(text, 10, 64)
	return number, err == nil
}

// position returns the number of the last event that a reader has got, by its id; that of the last event so far if
// it has got none. The gap is an event for what the reader has lost for good, if it has.
func (f *Feed) position(id string) (at uint64, gap *Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == "" {
		return f.last, nil
	}
	at, ours := f.number(id)
	if ours && at <= f.last {
		return at, nil
	}
	at = f.last - uint64(len(f.ring))
	return at, &Event{ID: f.id(at), At: time.Now(), Type: "gap", Text: "the events before this one are of another process, or were never sent: see the members"}
}

// oldest returns the position before all that is kept.
func (f *Feed) oldest() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last - uint64(len(f.ring))
}

// after returns the events behind a position, not more than most, after one that says how many are lost if
// some are; the position of the last of them; and what is closed when there are more.
func (f *Feed) after(at uint64, most int) (events []Event, to uint64, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.last - uint64(len(f.ring)) // The number before that of the oldest.
	if at < oldest {
		events = append(events, Event{
			ID: f.id(oldest), At: time.Now(), Type: "gap", Missed: oldest - at,
			Text: fmt.Sprintf("%d events before this one are not kept any more: see the members", oldest-at),
		})
		at = oldest
	}
	for ; at < f.last && len(events) < most; at++ {
		events = append(events, f.ring[at%eventsKept])
	}
	return events, at, f.more
}

// Routes returns the routes of the events:
//
//	GET /v1/events          [EventList]; after, type, limit
//	GET /v1/events/stream   the same as Server-sent events, as they happen; type
//	GET /cluster/domain-events   those of the cluster as of Akka and Pekko Management; type
//
// The type selects by the types of [Event], several separated by commas; gaps are always told. A stream begins with
// what follows the event in the header Last-Event-ID, or without it with what happens next; that of Akka, without it
// and after a gap, with events for what is so already.
func (f *Feed) Routes() []Route {
	return []Route{
		{Path: "/v1/events", Summary: "The last events of the node", Result: EventList{}, Query: []string{"after", "type", "limit"}, Answer: f.list},
		{Path: "/v1/events/stream", Summary: "Events as they happen", Result: Event{}, Query: []string{"type"}, Stream: f.stream},
		{Path: "/cluster/domain-events", Summary: "Events of the cluster as they happen, as of Akka Management", Result: akkaEvent{}, Query: []string{"type"}, repeated: true, Stream: f.domainEvents},
	}
}

// eventTypes are the types of events.
func eventTypes() []string {
	return []string{"member", "removed", "unreachable", "reachable", "leader", "downing", "fenced", "decision", "gap"}
}

// wanted returns what selects events by their type.
func wanted(r Request) (func(Event) bool, error) {
	if r.Query("type") == "" {
		return func(Event) bool { return true }, nil
	}
	types := strings.Split(r.Query("type"), ",")
	for _, t := range types {
		if !slices.Contains(eventTypes(), t) {
			return nil, refuse(http.StatusBadRequest, "type: there are no events of type %q; there are %s", clip(t), strings.Join(eventTypes(), ", "))
		}
	}
	return func(e Event) bool { return e.Type == "gap" || slices.Contains(types, e.Type) }, nil
}

// list answers with events that have happened.
func (f *Feed) list(_ context.Context, r Request) (any, error) {
	limit, err := r.QueryInt("limit", 1, eventsKept, eventsDefault)
	if err != nil {
		return nil, err
	}
	want, err := wanted(r)
	if err != nil {
		return nil, err
	}
	at, gap := f.oldest(), (*Event)(nil)
	if id := r.Query("after"); id != "" {
		at, gap = f.position(id)
	}
	all, to, _ := f.after(at, eventsKept+1)
	if gap != nil {
		all = slices.Insert(all, 0, *gap)
	}
	all = slices.DeleteFunc(all, func(e Event) bool { return !want(e) })
	answer := EventList{Self: f.self.String(), Last: f.id(to)}
	switch {
	case len(all) <= limit:
	case r.Query("after") == "":
		all = all[len(all)-limit:]
	default: // Whoever follows gets the next ones, and asks again.
		all = all[:limit]
		answer.Last = all[limit-1].ID
	}
	answer.Events = append([]Event{}, all...)
	return answer, nil
}

// sentAtATime is how many events a stream takes from the ring at a time.
const sentAtATime = 64

// stream sends events as they happen.
func (f *Feed) stream(ctx context.Context, r Request, out *Stream) error {
	want, err := wanted(r)
	if err != nil {
		return err
	}
	at, gap := f.position(r.LastEventID())
	return f.tell(ctx, out, at, gap, func(e Event) error {
		if !want(e) {
			return nil
		}
		return out.Send(e.ID, e.Type, e)
	})
}

// tell hands the events behind a position to a function that sends them, after a gap if there is one, and beats.
func (f *Feed) tell(ctx context.Context, out *Stream, at uint64, gap *Event, send func(Event) error) error {
	if err := out.Beat(f.id(at)); err != nil {
		return err
	}
	if gap != nil {
		if err := send(*gap); err != nil {
			return err
		}
	}
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	now := make(chan struct{})
	close(now)
	for {
		events, to, next := f.after(at, sentAtATime)
		for _, e := range events {
			if err := send(e); err != nil {
				return err
			}
		}
		if at = to; len(events) > 0 {
			next = now // There may be others already.
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-next:
		case <-beat.C:
			if err := out.Beat(f.id(at)); err != nil {
				return err
			}
		}
	}
}
