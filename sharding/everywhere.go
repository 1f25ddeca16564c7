// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/sharding/internal/asking"
	"github.com/quorate/quorate/sharding/internal/census"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/survey"
)

// What all nodes know of a kind, asked at once: ShardsEverywhere, EntitiesEverywhere, and TellAll, which tells
// all entities that live. None waits longer than its context, or three seconds; each says who did not answer.

// Unanswered is a node that did not answer, and why.
type Unanswered struct {
	Node   string `json:"node"`
	Reason string `json:"reason"` // In words, such as "did not answer within 3s: members do not hear from it".
}

// ShardCensus is what all nodes host of a kind. What the nodes in Missing host is not in it.
type ShardCensus struct {
	Self     string       `json:"self"` // The node that has asked.
	Kind     string       `json:"kind"`
	Shards   int          `json:"shards"`   // The number of shards in use; while it changes, of both layouts, without the retired ones.
	Hosted   int          `json:"hosted"`   // How many of them the nodes that have answered host.
	Entities int          `json:"entities"` // How many entities have a record there: those that live, and those that rest after failures.
	Stuck    int          `json:"stuck"`    // How many of these do not return from a call.
	Nodes    []NodeCensus `json:"nodes"`    // The nodes that have answered and run the kind, by their names.
	Missing  []Unanswered `json:"missing"`  // The nodes that did not answer.
}

// NodeCensus is what one node hosts of a kind.
type NodeCensus struct {
	Node     string        `json:"node"`
	Standing bool          `json:"standing"` // It may host at present.
	Drained  bool          `json:"drained,omitempty"`
	Proxy    bool          `json:"proxy,omitempty"` // It never hosts the kind.
	Entities int           `json:"entities"`
	Shards   []HostedShard `json:"shards"` // By number.
}

// HostedShard is a shard at its home.
type HostedShard struct {
	Shard    int    `json:"shard"`
	Layout   int    `json:"layout,omitempty"` // As [ShardInfo.Layout].
	Epoch    string `json:"epoch"`
	State    string `json:"state"` // "serving" or "stopping".
	Entities int    `json:"entities"`
	Stuck    int    `json:"stuck,omitempty"`
	Waits    string `json:"waits,omitempty"` // For what it waits before its entities may start.
}

// ShardsEverywhere asks all nodes what they host of a kind, with how many entities. It waits until the deadline of ctx,
// 1 min at most, or for 3 s without one, for those that do not answer; the answers of the others are the result in any
// case. The error says that the kind does not run on this node, which must run it to ask, is that of ctx if that is
// canceled, or [ErrClosed]. Safe for concurrent use; a node asks 16 questions at one time.
func ShardsEverywhere(ctx context.Context, h Host, kind string) (ShardCensus, error) {
	s := h.Sharding()
	r := s.router(kind)
	if r == nil {
		return ShardCensus{}, noKind(kind)
	}
	f, err := s.survey(ctx, survey.Ask{Limit: census.Limit(ctx, census.UsualTimeout), Question: survey.Question{Type: survey.TypeShards, Kind: kind}})
	if err != nil {
		return ShardCensus{}, err
	}
	c := ShardCensus{Self: s.self.String(), Kind: kind, Shards: len(inUse(r)), Nodes: []NodeCensus{}, Missing: missingOf(f.Missing)}
	hosted := map[protocol.ShardID]bool{}
	for _, said := range f.Answers {
		if said.Answer.Fault != survey.FaultNone {
			continue
		}
		n := nodeCensus(said)
		for _, shard := range said.Answer.Shards {
			hosted[shard.Shard] = true
			c.Stuck += int(shard.Stuck)
		}
		c.Entities += n.Entities
		c.Nodes = append(c.Nodes, n)
	}
	c.Hosted = len(hosted)
	return c, nil
}

func nodeCensus(said survey.NodeAnswer) NodeCensus {
	n := NodeCensus{
		Node: said.Node.String(), Standing: said.Answer.Standing, Drained: said.Answer.Drained, Proxy: said.Answer.Proxy, Shards: []HostedShard{},
	}
	for _, s := range said.Answer.Shards {
		state := "serving"
		if s.Stopping {
			state = "stopping"
		}
		n.Entities += int(s.Entities)
		n.Shards = append(n.Shards, HostedShard{
			Shard: int(s.Shard.Index()), Layout: int(s.Shard.Layout()), Epoch: s.Epoch.String(), State: state, Entities: int(s.Entities), Stuck: int(s.Stuck), Waits: s.Waits,
		})
	}
	return n
}

// inUse returns the shards of the kind that are in use, as far as this node knows: while their number changes, those of
// both layouts but for the retired ones.
func inUse(r *router) (all []protocol.ShardID) {
	scale := r.program.scale.Load()
	for _, sl := range r.census.Slots() {
		if scale == nil || sl.Shard().Index() < scale.Count {
			all = append(all, sl.Shard())
		}
	}
	return all
}

// EntityPage is a part of the entities of a kind, in the order of their shards, and in each of their ids.
type EntityPage struct {
	Self     string         `json:"self"` // The node that has asked.
	Kind     string         `json:"kind"`
	Entities []PlacedEntity `json:"entities"`
	Next     string         `json:"next,omitempty"` // What EntitiesEverywhere is given for the next page; empty: there is none.
	Missing  []Unanswered   `json:"missing"`        // The nodes that did not answer, whose entities are missing.
}

// PlacedEntity is an entity where it lives.
type PlacedEntity struct {
	EntityInfo
	Node string `json:"node"`
}

// EntitiesEverywhere asks all nodes which entities of a kind live there, and returns those that follow the page of
// which after is the [EntityPage.Next], at most limit of them, 1 to 1,000; with an empty after from the beginning. Ids
// of 256 KiB at most come from one node at a time. Whatever stays where it is while the pages are asked for is in one
// of them, once; what moves or comes meanwhile may be missing. Otherwise it is like [ShardsEverywhere]; an after that
// is no place in that order is [ErrInvalid].
func EntitiesEverywhere(ctx context.Context, h Host, kind, after string, limit int) (EntityPage, error) {
	s := h.Sharding()
	if s.router(kind) == nil {
		return EntityPage{}, noKind(kind)
	}
	from, err := parseCursor(after)
	if err != nil {
		return EntityPage{}, err
	}
	limit = min(max(limit, 1), survey.MaxPageEntities)
	f, err := s.survey(ctx, survey.Ask{
		Limit:    census.Limit(ctx, census.UsualTimeout),
		Question: survey.Question{Type: survey.TypeEntities, Kind: kind, After: from, Most: uint32(limit)},
	})
	if err != nil {
		return EntityPage{}, err
	}
	p := EntityPage{Self: s.self.String(), Kind: kind, Entities: []PlacedEntity{}, Missing: missingOf(f.Missing)}
	all, more := survey.Merge(f.Answers, limit)
	for _, e := range all {
		p.Entities = append(p.Entities, PlacedEntity{
			EntityInfo{ID: e.At.ID, Shard: int(e.At.Shard.Index()), State: e.State, Since: e.Since, Waiting: int(e.Waiting), Stuck: e.Stuck}, e.Node.String(),
		})
	}
	if n := len(all); more && n > 0 {
		p.Next = fmt.Sprintf("%d/%s", all[n-1].At.Shard, all[n-1].At.ID)
	}
	return p, nil
}

// parseCursor reads a place in the order of entities.
func parseCursor(text string) (survey.Cursor, error) {
	if text == "" {
		return survey.Cursor{}, nil
	}
	number, id, cut := strings.Cut(text, "/")
	shard, err := strconv.ParseUint(number, 10, 32)
	if err != nil || !cut || id != "" && protocol.EntityFault(id) != "" {
		return survey.Cursor{}, fmt.Errorf("sharding: %q is no place in the order of entities, give what a page has as next: %w", protocol.Clip(text), ErrInvalid)
	}
	return survey.Cursor{Shard: protocol.ShardID(shard), ID: id}, nil
}

// Told says what came of [TellAll].
type Told struct {
	// Reached is how many entities got the message into their mailboxes, Full how many had no room there.
	Reached, Full int
	// Shards is how many shards were told as a whole, Cut how many went away in the middle of that, or when the time was
	// over, Lost those whose home did not say what came of it, and Open those that were not told, since no home was found
	// in time.
	Shards, Cut, Lost, Open int
	// Missing are the nodes that did not answer.
	Missing []Unanswered
}

// Complete reports whether every entity that lived was told, or had no room.
func (t Told) Complete() bool { return t.Cut == 0 && t.Lost == 0 && t.Open == 0 }

// tellAgain is how long a shard that has moved is waited for before its next home is asked.
const tellAgain = 100 * time.Millisecond

// TellAll tells a message to all entities of a kind that live, wherever they are, and wakes none. Each of them gets it
// once at most: a shard is told at one home, and at its next one only if that home has told nobody. An entity that
// starts or moves meanwhile may be left out, and so may one whose shard is retired since the number of shards changes.
// Each gets a message of its own, decoded from the encoding, also on this node. Rate bounds how many a node tells in a
// second, so that not all of them work at once; 0: 20,000. Until the deadline of ctx, 1 min at most, or for 30 s
// without one, shards that move are waited for, and answers of nodes. There is no order between this message and
// others. What a mailbox holds is handled, or lost with its node, like every message; the sender does not hear which.
// The error is about the message, is that of ctx if it is canceled, after which some may have been told, or
// [ErrClosed]. What was reached is in the result.
func TellAll[C any](ctx context.Context, g *Region[C], message C, rate int) (Told, error) {
	payload, err := encoded(ctx, g.r, message)
	if err != nil {
		return Told{}, err
	}
	s := g.r.local
	limit := time.Now().Add(census.Limit(ctx, tellAllTimeout))
	b := survey.NewBroadcast(survey.Question{
		Type: survey.TypeTell, Kind: g.r.name, Payload: payload, Rate: uint32(min(max(rate, 0), 1<<30)),
	}, inUse(g.r))
	for b.Open() > 0 && time.Until(limit) > 0 {
		parts := b.Next(g.r.census.HomeOf)
		f, err := s.survey(ctx, survey.Ask{Limit: time.Until(limit), To: slices.Clip(append([]survey.Part{}, parts...))})
		if err != nil {
			return toldOf(b), err
		}
		if b.Answered(f); b.Open() > 0 {
			if err := asking.Pause(ctx, min(tellAgain, time.Until(limit))); err != nil {
				return toldOf(b), err
			}
		}
	}
	return toldOf(b), nil
}

// tellAllTimeout is how long TellAll takes at most when its context has no deadline.
const tellAllTimeout = 30 * time.Second

func toldOf(b *survey.Broadcast) Told {
	o := b.Outcome()
	return Told{
		Reached: o.Reached, Full: o.Full, Shards: o.Shards, Cut: o.Cut, Lost: o.Lost, Open: b.Open(), Missing: missingOf(o.Missing),
	}
}

// encoded checks a message that is for no entity in particular, and encodes it.
func encoded(ctx context.Context, r *router, message any) ([]byte, error) {
	const everybody = "*"
	if err := r.check(ctx, everybody, message); err != nil {
		return nil, err
	}
	return r.encode(everybody, message, nil)
}

// missingOf names the nodes that did not answer.
func missingOf(all []survey.Missing) []Unanswered {
	var missing []Unanswered
	for _, m := range all {
		missing = append(missing, Unanswered{Node: m.Node.String(), Reason: m.Why})
	}
	return missing
}
