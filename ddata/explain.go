// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Why a key is as it is: Explain asks the machine, which asks the homes of the key, and
// explanation puts the answer into the names that people use. Then what a node holds, for
// people who know neither keys nor types: the value of a key as text ([Replicator.Look]), and
// the names of keys ([Replicator.Keys]).

// Explanation says where a key lives and why it is as it is.
type Explanation struct {
	Key   string `json:"key"`
	Self  string `json:"self"` // The node that answers.
	Group Group  `json:"group"`
	// Replicas are the nodes that hold the key and count for it, as far as they are known,
	// sorted.
	Replicas []string `json:"replicas,omitempty"`
	Here     bool     `json:"here"` // This node holds the key.

	// State is "live", "deleted", "expired", or "absent", at this node, or, if it does not
	// hold the key, at a home that has answered; "unknown" if none has.
	State string `json:"state"`
	Type  string `json:"type,omitempty"`  // The name of the type of the value.
	Bytes int    `json:"bytes,omitempty"` // About how much memory the value takes.
	// Versions says how many updates of each origin the value holds, sorted by origin.
	Versions []OriginVersion `json:"versions,omitempty"`

	Homes []Home `json:"homes,omitempty"`
	// Held says that the key belongs to a bucket that has lost its homes, see [Group.Held].
	Held    *Held       `json:"held,omitempty"`
	Kept    string      `json:"kept,omitempty"` // What keeps a deleted or expired key from being forgotten.
	Waiting []Operation `json:"waiting,omitempty"`
}

// Home is a replica that is to hold a key, and what it has answered.
type Home struct {
	Replica  string          `json:"replica"` // Its node, or its number if the node is not known.
	Sets     []string        `json:"sets"`    // See [Replica].
	Answered bool            `json:"answered"`
	State    string          `json:"state,omitempty"` // As in [Explanation].
	Versions []OriginVersion `json:"versions,omitempty"`
	// Lacks are the updates that other homes have and this one has not.
	Lacks []OriginVersion `json:"lacks,omitempty"`
	// Undead says that other homes know that the key was deleted, and this one does not.
	Undead bool `json:"undead,omitempty"`
	// Since is since when, at least, the replica has lacked what Lacks and Undead say: when
	// the node that answers took in the first of that, or, if that is long ago, learned
	// that the replica lacks it. Zero if it lacks nothing.
	Since time.Time `json:"since,omitzero"`
	// Unread is since when a batch of this node with the key has waited for the replica.
	Unread time.Time `json:"unread,omitzero"`
}

// OriginVersion says that the first Count updates of an origin are meant, or, of what a
// replica lacks, the last Count. An origin is a life of a node.
type OriginVersion struct {
	Origin uint64 `json:"origin"`
	Count  uint64 `json:"count"`
}

// Operation is an operation of this node that waits for replicas.
type Operation struct {
	Kind    string    `json:"kind"`  // "read", "write" or "delete".
	Level   string    `json:"level"` // The consistency.
	Since   time.Time `json:"since"`
	Missing []string  `json:"missing,omitempty"` // The replicas that have not answered.
}

// explainTimeout is how long homes may take to say what they hold.
const explainTimeout = time.Second

// Explain says where a key lives and why it is as it is. It asks all homes of the key, and
// says what is known if some have not answered after a second.
func (r *Replicator) Explain(ctx context.Context, key string) (Explanation, error) {
	if err := checkName(key); err != nil {
		return Explanation{}, err
	}
	g := r.groups[r.keys.of(key)]
	c := r.calls.begin(g, key)
	defer c.end()
	answer, err := r.query(ctx, c, protocol.ExplainKey{Op: c.op, Group: g.index, Key: key, Limit: explainTimeout})
	if err != nil {
		return Explanation{}, fmt.Errorf("ddata: key %q is not explained: %w", key, err)
	}
	x, ok := answer.(protocol.Explanation)
	if !ok {
		return Explanation{}, fmt.Errorf("ddata: key %q: an answer of type %T", key, answer)
	}
	return r.explanation(g, key, x), nil
}

// Homes returns the nodes that hold a key and count for it, as far as they are known, sorted,
// and whether this node holds it. It asks nobody, and is quick.
func (r *Replicator) Homes(key string) (homes []gossip.NodeID, here bool) {
	route, bucket := r.groups[r.keys.of(key)].route.Load(), table.BucketOf(key)
	return route.Homes(bucket), route.Here(bucket)
}

// query asks the machine, and returns its answer or why there is none.
func (r *Replicator) query(ctx context.Context, c *call, in machine.Input) (any, error) {
	if err := r.handle.PostWait(ctx, in); err != nil {
		return nil, r.over(ctx)
	}
	select {
	case answer := <-c.answer:
		if answer == nil {
			return nil, r.closed()
		}
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// explanation puts what the machine knows of a key into the names that people use.
func (r *Replicator) explanation(g *group, key string, x protocol.Explanation) Explanation {
	now, route := time.Now(), g.route.Load().Route
	e := Explanation{Key: key, Self: r.self.String(), Group: r.groupOf(g, x.Status, now), Here: x.Here, State: "unknown"}
	sets := map[protocol.ReplicaID][]string{}
	for _, of := range x.Status.Replicas {
		sets[of.ID] = setsOf(of)
	}
	for _, node := range route.Homes(table.BucketOf(key)) {
		e.Replicas = append(e.Replicas, node.String())
	}
	seen := x.Entry
	if x.Here {
		e.State = stateOf(seen)
	}
	for _, of := range x.Homes {
		h := Home{Replica: nameOf(route, of.ID), Sets: sets[of.ID], Answered: of.Answered, Lacks: versionsOf(of.Lacks), Undead: of.Undead, Since: ago(now, of.Since), Unread: ago(now, of.Unread)}
		if of.Answered {
			if h.State = stateOf(of.Entry); of.Entry != nil {
				h.Versions = versionsOf(of.Entry.Versions)
			}
			if e.State == "unknown" || seen == nil && !x.Here {
				e.State, seen = h.State, of.Entry
			}
		}
		e.Homes = append(e.Homes, h)
	}
	e.describe(seen)
	e.Kept = kept(route, x)
	if x.Held != nil {
		held := heldOf(route, *x.Held)
		e.Held = &held
	}
	for _, o := range x.Ops {
		e.Waiting = append(e.Waiting, Operation{Kind: o.Kind, Level: consistencyOf(o.Level).String(), Since: ago(now, max(o.Since, 1)), Missing: namesOf(route, o.Missing)})
	}
	return e
}

// describe adds what an entry says of its value.
func (e *Explanation) describe(of *table.Entry) {
	if of == nil {
		return
	}
	if of.Type != nil {
		e.Type = of.Type.Name()
	}
	if of.State == table.Live {
		e.Bytes = table.SizeOf(*of)
	}
	e.Versions = versionsOf(of.Versions)
}

// consistencyOf is the consistency that a level was made of.
func consistencyOf(l protocol.Level) Consistency {
	return Consistency{name: l.Name, n: l.N, extra: l.Extra, minCap: l.MinCap}
}

// stateOf names what has become of a key.
func stateOf(e *table.Entry) string {
	if e == nil {
		return "absent"
	}
	return e.State.String()
}

func versionsOf(all []table.Version) (v []OriginVersion) {
	for _, of := range all {
		v = append(v, OriginVersion{uint64(of.Origin), of.Count})
	}
	return v
}

// ago returns when something was that is so long ago, no time for zero.
func ago(now time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return now.Add(-d)
}

// kept says what keeps a tombstone.
func kept(route *protocol.Route, x protocol.Explanation) string {
	switch x.Tombstone {
	case protocol.AwaitsGeneration:
		return "it is of this generation of the set of replicas; the leader begins another one for the next sweep"
	case protocol.AwaitsChange:
		return "the set of replicas is changing: sweeps wait for the end of that"
	case protocol.AwaitsLeader:
		return "the next sweep, for which all replicas must confirm that they hold the same; the leader " + x.Status.Leader.String() + " knows who has not"
	case protocol.AwaitsReplicas:
		return "these have not confirmed that they hold the same: " + strings.Join(namesOf(route, x.Unconfirmed), ", ")
	case protocol.AwaitsSweep:
		return "the next sweep"
	default:
		return ""
	}
}

// namesOf returns replicas for people.
func namesOf(route *protocol.Route, ids []protocol.ReplicaID) (all []string) {
	for _, id := range ids {
		all = append(all, nameOf(route, id))
	}
	return all
}

// nameOf returns a replica for people: its node, or its number if the node is not known.
func nameOf(route *protocol.Route, id protocol.ReplicaID) string {
	if node, ok := route.Node(id); ok {
		return node.String()
	}
	if node, ok := route.Gone(id); ok {
		return node.String()
	}
	return fmt.Sprintf("replica %x", uint64(id))
}

// Value is what a node holds of a key, for people.
type Value struct {
	Key   string `json:"key"`
	Group string `json:"group"`
	State string `json:"state"` // As in [Explanation].
	Type  string `json:"type,omitempty"`
	// Text is the value if its type has a text form (fmt.Stringer), at most 64 KiB of it.
	Text string `json:"text,omitempty"`
	// Encoded is the encoding of a value without a text form, in base64, at most 64 KiB of it.
	Encoded   string          `json:"encoded,omitempty"`
	Truncated bool            `json:"truncated,omitempty"` // The value is longer.
	Bytes     int             `json:"bytes,omitempty"`
	Versions  []OriginVersion `json:"versions,omitempty"`
}

// maxText bounds what is shown of a value.
const maxText = 64 << 10

// Look returns what is read of a key with a consistency, whatever type the value has. Unlike
// [Get] it is for people: a key that is absent or deleted is no error.
func (r *Replicator) Look(ctx context.Context, key string, c Consistency) (Value, error) {
	if err := checkName(key); err != nil {
		return Value{}, err
	}
	g := r.groups[r.keys.of(key)]
	v := Value{Key: key, Group: g.name}
	if err := c.validate(); err != nil {
		return v, ofKey(key, err)
	}
	e, _, err := r.read(ctx, g, key, c)
	if err != nil {
		return v, err
	}
	if v.State = stateOf(e); e == nil {
		return v, nil
	}
	v.Versions = versionsOf(e.Versions)
	if e.Type != nil {
		v.Type = e.Type.Name()
	}
	if e.State != table.Live {
		return v, nil
	}
	v.Bytes = table.SizeOf(*e)
	return v, v.show(e)
}

// checkName returns why a key is none.
func checkName(key string) error {
	if key == "" || len(key) > table.MaxKey || !gossip.IsName(key) {
		return fmt.Errorf("ddata: %w: the name of a key has 1 to %d bytes of UTF-8, of characters that print", ErrKey, table.MaxKey)
	}
	return nil
}

// show adds the value as text, or its encoding.
func (v *Value) show(e *table.Entry) error {
	if s, ok := e.Value.(fmt.Stringer); ok {
		text := s.String()
		v.Truncated = len(text) > maxText
		v.Text = strings.ToValidUTF8(text[:min(len(text), maxText)], "\ufffd")
		return nil
	}
	b, err := e.Type.Append(nil, e.Value)
	if err != nil {
		return ofKey(e.Key, err)
	}
	v.Truncated = len(b) > maxText
	v.Encoded = base64.StdEncoding.EncodeToString(b[:min(len(b), maxText)])
	return nil
}

// Keys returns the names of keys that begin with a prefix, at most limit of them, sorted; more
// says that there are others, and then any of them may be those that are returned. They are the
// keys that this node holds, tombstones included.
func (r *Replicator) Keys(ctx context.Context, prefix string, limit int) (keys []string, more bool, err error) {
	for _, g := range r.groups {
		for from, done := 0, len(keys) > limit; !done; {
			s, err := r.scan(ctx, scanQuery{group: g, prefix: prefix, from: from})
			if err != nil {
				return nil, false, err
			}
			keys = append(keys, s.keys...)
			from, done = s.next, s.next == 0 || len(keys) > limit
		}
	}
	slices.Sort(keys)
	if more = len(keys) > limit; more {
		keys = keys[:limit]
	}
	return keys, more, nil
}
