// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
)

// How the groups of keys stand, for people ([Replicator.Groups]); the one thing that only
// a person may decide ([Replicator.AcceptLoss]); and what people are told of keys that have no majority of their
// replicas, or have gone on without one ([Replicator.Warnings]).

// Group is a group of keys with one set of replicas, as this node knows it.
type Group struct {
	Name        string        `json:"name"` // "all", "durable", or a prefix with a *.
	Role        string        `json:"role,omitempty"`
	Copies      int           `json:"copies,omitempty"` // How many replicas hold each key, none for all of them.
	Durable     bool          `json:"durable"`
	ExpireAfter time.Duration `json:"expireAfter,omitempty"` // In nanoseconds.

	// Generation numbers the set of replicas, 0 while this node knows none. Phase is "stable",
	// "joint" while other replicas catch up, or "ended" when they have taken over. Sealed says
	// that no change of the set is under way any more. Since is when this node heard of the
	// generation.
	Generation uint64    `json:"generation"`
	Phase      string    `json:"phase"`
	Sealed     bool      `json:"sealed"`
	Since      time.Time `json:"since,omitzero"`
	Swept      uint64    `json:"swept"`            // The generation in which tombstones were forgotten last, 0 for none.
	Leader     string    `json:"leader,omitempty"` // The node that proposes changes of the set.
	// Quorum says that enough replicas are reachable from here for majorities.
	Quorum   bool      `json:"quorum"`
	Replicas []Replica `json:"replicas,omitempty"`
	// Held are buckets of keys that keep the replicas they had, since too few of those were left
	// to hand the keys on: their keys have no majorities until replicas come back with their
	// disks, or [Replicator.AcceptLoss] is called. The others go on.
	Held []Held `json:"held,omitempty"`

	Holds     bool      `json:"holds"`               // This node is to hold keys of the group.
	CaughtUp  bool      `json:"caughtUp"`            // This node lacks nothing that it is to hold.
	CatchesUp []string  `json:"catchesUp,omitempty"` // From which replicas this node takes in what it lacks.
	Refused   string    `json:"refused,omitempty"`   // Why this node cannot take part, and what to do.
	Lost      string    `json:"lost,omitempty"`      // Why the keys have no majorities, and what will or must happen.
	Disputed  string    `json:"disputed,omitempty"`  // Which nodes claim to be one replica, and what to do.
	Apart     string    `json:"apart,omitempty"`     // Why the replica of this node does not count for now, and what to do.
	Unsure    time.Time `json:"unsure,omitzero"`     // Since when that replica may lack what it has acknowledged: its node has crashed.
	Keys      int       `json:"keys"`                // Keys with a value on this node.
	Tombs     int       `json:"tombstones"`          // Deleted and expired keys that this node has not forgotten yet.
	Bytes     int64     `json:"bytes"`               // About how much memory keys and tombstones take.
	Unspread  int       `json:"unspread"`            // Keys with local updates that were not sent yet.
	Waiting   int       `json:"waiting"`             // Operations of this node that wait for replicas.
	Store     string    `json:"store,omitempty"`     // "ok", "writing", or why the store does not write. Empty for keys in memory.
	StoreHeld int       `json:"storeHeld,omitempty"` // Messages and answers that wait for the store.
	// Asides are the files with what the store has put aside, of any group of keys: the copy of
	// a replica that had to begin anew. They are for a person to look at and to remove.
	Asides []string `json:"asides,omitempty"`
}

// Replica is a replica of a group, as this node knows it.
type Replica struct {
	ID   string `json:"id"`             // In hexadecimal digits.
	Node string `json:"node,omitempty"` // None if the node is not known.
	Zone string `json:"zone,omitempty"`
	// Sets are the sets of the group that the replica is in: "current", which counts, "next",
	// which catches up, and "old", which was replaced.
	Sets      []string  `json:"sets"`
	Reachable bool      `json:"reachable"`
	CaughtUp  bool      `json:"caughtUp"`
	Apart     bool      `json:"apart,omitempty"`  // It does not count for now: its store is, or may be, older than it was.
	Unsure    bool      `json:"unsure,omitempty"` // It is apart because its node crashed before everything was written.
	Heard     time.Time `json:"heard,omitzero"`   // When it was heard last; not for this node itself.
}

// Held are buckets that have lost their replicas. A bucket is one of 4,096 parts of a group.
type Held struct {
	Buckets  int      `json:"buckets"`        // How many.
	Replicas []string `json:"replicas"`       // Those that hold them.
	Gone     []string `json:"gone,omitempty"` // Those of them that are gone.
	Moves    bool     `json:"moves"`          // They recover with the change that is under way.
}

// heldOf puts what the machine knows of such buckets into the names that people use.
func heldOf(route *protocol.Route, h protocol.HeldStatus) Held {
	return Held{Buckets: h.Buckets, Replicas: namesOf(route, h.Homes), Gone: namesOf(route, h.Gone), Moves: h.Moves}
}

// Groups returns the groups of keys, in their order.
func (r *Replicator) Groups(ctx context.Context) ([]Group, error) {
	c := r.calls.begin(r.groups[0], "")
	defer c.end()
	answer, err := r.query(ctx, c, protocol.Survey{Op: c.op})
	if err != nil {
		return nil, fmt.Errorf("ddata: the groups of keys are not known: %w", err)
	}
	s, ok := answer.(protocol.SurveyResult)
	if !ok {
		return nil, fmt.Errorf("ddata: an answer of type %T", answer)
	}
	now := time.Now()
	var all []Group
	for i, g := range r.groups {
		all = append(all, r.groupOf(g, s.Groups[i], now))
	}
	return all, nil
}

// groupOf puts what the machine knows of a group into the names that people use.
func (r *Replicator) groupOf(g *group, s protocol.GroupStatus, now time.Time) Group {
	route, held := g.route.Load().Route, g.table.Stats()
	of := Group{
		Name: g.name, Role: g.role, Copies: g.copies, Durable: g.durable, ExpireAfter: g.expire,
		Generation: s.Gen, Phase: s.Phase.String(), Sealed: s.Sealed, Since: ago(now, s.Since), Swept: s.Swept, Quorum: s.Quorum,
		Holds: s.Self != 0, CaughtUp: s.Caught, CatchesUp: namesOf(route, s.Sources), Refused: s.Refused, Apart: s.Apart,
		Keys: held.Entries - held.Tombstones, Tombs: held.Tombstones, Bytes: held.Bytes, Unspread: held.Pending, Waiting: s.Waiting,
	}
	if s.Unsure > 0 {
		of.Unsure = ago(now, s.Unsure)
	}
	if !s.Leader.IsZero() {
		of.Leader = s.Leader.String()
	}
	of.Disputed = s.Disputed
	if text := g.alarm.Load(); text != nil {
		of.Lost = *text
	}
	for _, h := range s.Held {
		of.Held = append(of.Held, heldOf(route, h))
	}
	for _, p := range s.Replicas {
		x := Replica{ID: fmt.Sprintf("%x", uint64(p.ID)), Zone: p.Zone, Sets: setsOf(p), Reachable: p.Present, Apart: p.Apart, Unsure: p.Unsure, CaughtUp: p.Caught, Heard: ago(now, p.Heard)}
		if !p.Node.IsZero() {
			x.Node = p.Node.String()
		}
		of.Replicas = append(of.Replicas, x)
	}
	if s.Store.Used {
		of.Store, of.StoreHeld, of.Asides = "ok", s.Store.Held, r.disk.store.Asides()
		if s.Store.Writing {
			of.Store = "writing"
		}
		if s.Store.Failed != nil {
			of.Store = s.Store.Failed.Error()
		}
	}
	return of
}

// ErrAcceptLoss is wrapped by the error of [Replicator.AcceptLoss] when there is nothing for
// a person to decide.
var ErrAcceptLoss = errors.New("no loss was accepted")

// AcceptLoss has the group of keys with a name go on without what was lost, which only a person can
// decide:
//
//   - Buckets have lost their replicas ([Group.Held]), and the group itself goes on: those buckets
//     begin anew with what their remaining replicas hold, and no other key is touched. That is
//     proposed when AcceptLoss returns, and has happened when Held is empty.
//   - Too few replicas of the group are left: it goes on with what this node holds, which the other
//     nodes copy, or begins anew on a node that waits for a replica that was removed. What only
//     others held is lost.
//
// A replica that comes back nevertheless drops its copy, and keeps one aside if it is on disk. While
// the replicas that are left decide by themselves, the error wraps [ErrAcceptLoss].
func (r *Replicator) AcceptLoss(ctx context.Context, name string) error {
	at := slices.IndexFunc(r.groups, func(g *group) bool { return g.name == name })
	if at < 0 {
		return fmt.Errorf("ddata: %w: there is no group of keys %q, there are %s", ErrAcceptLoss, name, r.names())
	}
	all, err := r.Groups(ctx)
	if err != nil {
		return err
	}
	switch g := all[at]; {
	case !g.Holds:
		return fmt.Errorf("ddata: %w: this node does not hold the keys %q: ask one with the role %q", ErrAcceptLoss, name, g.Role)
	case g.Refused == "" && g.Generation == 0:
		return fmt.Errorf("ddata: %w: this node has not heard yet which replicas the keys %q have", ErrAcceptLoss, name)
	case g.Refused == "" && g.Quorum && len(g.Held) == 0:
		return fmt.Errorf("ddata: %w: enough replicas of the keys %q are here to go on", ErrAcceptLoss, name)
	}
	if err := r.handle.PostWait(ctx, protocol.AcceptLoss{Group: r.groups[at].index}); err != nil {
		return fmt.Errorf("ddata: %w", err)
	}
	_, err = r.Groups(ctx) // Its answer comes after the machine has accepted.
	return err
}

// names lists the groups of keys.
func (r *Replicator) names() string {
	var all []string
	for _, g := range r.groups {
		all = append(all, fmt.Sprintf("%q", g.name))
	}
	return strings.Join(all, ", ")
}

// setsOf names the sets that a replica is in.
func setsOf(of protocol.ReplicaStatus) []string {
	sets := []string{}
	for _, s := range []struct {
		name string
		in   bool
	}{{"current", of.Current}, {"next", of.Next}, {"old", of.Old}} {
		if s.in {
			sets = append(sets, s.name)
		}
	}
	return sets
}

// lossWarning says that a group of keys in memory has gone on without lost replicas.
type lossWarning struct {
	at   time.Time
	text string
}

// warnFor is for how long people are told that keys have gone on without replicas.
const warnFor = 10 * time.Minute

// textOfFate says in words what will or must happen to keys without majorities.
func textOfFate(f protocol.Recovery) string {
	switch f {
	case protocol.RecoveryReturn:
		return "they are members: it goes on when they can be reached again, or are removed"
	case protocol.RecoveryGoOn:
		return "the keys go on by themselves with what the others hold, as soon as all of those who are left can be reached"
	case protocol.RecoveryDisks:
		return "start them again with their disks; only if those are lost, let an operator accept the loss (quorate data accept-loss)"
	case protocol.RecoveryOperator:
		return "they were removed and do not come back: let an operator accept the loss of what only they held (quorate data accept-loss)"
	default:
		return "bring them back"
	}
}

// alarmed logs that a group of keys has no majorities, or has them again.
func (r *Replicator) alarmed(g *group, a protocol.Alarm) {
	if a.Recovery == protocol.RecoveryNone {
		if g.alarm.Swap(nil) != nil {
			r.log.Info("ddata: the keys have majorities again", "keys", g.name)
		}
		return
	}
	missing := namesOf(g.route.Load().Route, a.Missing)
	since := time.Now().Add(-r.node.Clock().Now().Mono.Sub(a.Since)).Round(time.Second)
	text := fmt.Sprintf("no majority since %v, missing are %s: %s", since.Format(time.RFC3339), list(missing), textOfFate(a.Recovery))
	g.alarm.Store(&text)
	r.log.Warn("ddata: the keys have no majority: no operation at level majority or all, and no change of the set of replicas",
		"keys", g.name, "since", since, "missing", missing, "then", textOfFate(a.Recovery))
}

// wentOn logs that a group of keys has gone on without replicas, and keeps a warning.
func (r *Replicator) wentOn(g *group, e protocol.ContinuedWithoutMajority) {
	lost := namesOf(g.route.Load().Route, e.Lost)
	g.wentOn.Store(&lossWarning{time.Now(), "the majority was lost with " + list(lost) + ": the keys go on with what the others held"})
	r.log.Warn("ddata: the keys go on without a majority that was lost: what only those held is lost", "keys", g.name, "lost", lost)
}

// Warnings returns what an operator should know of the data of this node, each a sentence: keys that have no
// majorities, with what will or must happen, and, for ten minutes, keys in memory that have gone on without those
// that were lost.
func (r *Replicator) Warnings() []string {
	var all []string
	for _, g := range r.groups {
		if text := g.alarm.Load(); text != nil {
			all = append(all, fmt.Sprintf("keys %q: %s", g.name, *text))
		}
		if w := g.wentOn.Load(); w != nil && time.Since(w.at) < warnFor {
			all = append(all, fmt.Sprintf("keys %q: at %v %s", g.name, w.at.Format(time.RFC3339), w.text))
		}
	}
	return all
}
