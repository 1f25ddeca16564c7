// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/explain"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// What people ask about a running system. Coordinators, Refused, Kinds, Shards and Entities answer from this node
// alone.
// Explain asks the coordinator, and puts its answer, the cell's own snapshot and the record of the entity together;
// String lays the result out in lines.

// Explanation says where a shard lives, why, and what is pending there, as far as
// one node and the coordinator know. Nodes are named by their text form.
type Explanation struct {
	Kind   string `json:"kind"`
	Entity string `json:"entity,omitempty"` // The entity that was asked for; empty when a shard was.
	Shard  int    `json:"shard"`

	Self string `json:"self"` // The node that answers.
	// Complete says that the coordinator has answered. If not, the other fields are what
	// Self knows, and Pending says why the coordinator's knowledge is missing.
	Complete    bool   `json:"complete"`
	Coordinator string `json:"coordinator,omitempty"`

	Home  string    `json:"home,omitempty"`  // The node that hosts the shard; none while it has no home.
	Epoch string    `json:"epoch,omitempty"` // The number of the home, which only grows.
	State string    `json:"state"`           // "serving", "stopping", "open" without a home, ...
	Since time.Time `json:"since,omitzero"`  // When the state began, as far as is known.

	Decision string   `json:"decision,omitempty"` // By which decision the shard has its home, and why.
	Pending  []string `json:"pending,omitempty"`  // What waits, or is waited for, a sentence each.
	Moves    []Move   `json:"moves,omitempty"`    // The last moves, the oldest first.
}

// Move is a move of a shard from one home to another.
type Move struct {
	From    string    `json:"from,omitempty"`
	To      string    `json:"to,omitempty"` // Empty when the move ended before its target was decided.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Outcome string    `json:"outcome"` // "moved", "called off" or "lost".
	Reason  string    `json:"reason,omitempty"`
}

// ShardInfo is what a node knows of a shard. Nodes are named by their text form.
type ShardInfo struct {
	Shard int `json:"shard"`
	// Layout tells shards of one number apart while the number of shards changes, those of the former layout with the
	// lower one: how often the number had changed since the cluster formed.
	Layout int `json:"layout,omitempty"`

	Home  string `json:"home,omitempty"`  // The node that hosts the shard; empty while this node knows of none.
	Epoch string `json:"epoch,omitempty"` // The number of the home, which only grows.
	State string `json:"state"`           // "serving" or "stopping" on this node, "hosted elsewhere", "retired", or "unknown".

	Entities int `json:"entities"` // How many entities live here, those included that rest after failures.
	Stuck    int `json:"stuck"`    // How many of them do not return from a call.
	Sent     int `json:"sent"`     // How many messages of this node wait until the home has taken them.
	Passed   int `json:"passed"`   // How many messages of others wait here for the next home.
}

// EntityInfo is what a node knows of an entity that lives on it.
type EntityInfo struct {
	ID      string    `json:"id"`
	Shard   int       `json:"shard"`
	State   string    `json:"state"`            // "waiting", "starting", "idle", "busy", "stopping" or "failed".
	Since   time.Time `json:"since"`            // When the state began; for "failed" when it ends.
	Waiting int       `json:"waiting"`          // How many messages are in its mailbox.
	Stuck   bool      `json:"stuck"`            // It does not return from a call.
	Reason  string    `json:"reason,omitempty"` // Why it has failed.
}

// KindInfo is what a node knows of a kind that runs on it.
type KindInfo struct {
	Name   string
	Shards int  // The number of shards of the kind in the cluster.
	Hosted int  // The number of shards of the kind that live on this node.
	Proxy  bool // This node never hosts a shard of the kind.
	// Resharding is the change of the number of shards that is under way, as this node knows; nil for none. Then Shards
	// is the number when it is over.
	Resharding *Resharding
	// TakingOver says that entities of the kind that were remembered under another number of shards are being taken over,
	// or that this node has shards and has not heard yet that none are. Meanwhile the number cannot be changed again.
	TakingOver bool
}

// CoordinatorInfo says who coordinates a kind.
type CoordinatorInfo struct {
	// Node is the text form of the coordinator's node id; empty when no node can coordinate the kind at
	// present, and Missing says why.
	Node    string
	Missing string
	Term    string // The coordinator's term; empty when this node has not heard from the coordinator yet.
}

// Coordinators returns the coordinators of the kinds that run on this node, by the name of
// the kind, as far as this node knows. A kind of which nothing is known yet is missing. Nobody is asked, and a
// node that is busy answers as well.
func (s *System) Coordinators() map[string]CoordinatorInfo {
	all := map[string]CoordinatorInfo{}
	known := s.coordinators.Load()
	if known == nil {
		return all
	}
	for _, k := range known.Kinds {
		info := CoordinatorInfo{Missing: k.Missing}
		if !k.Node.IsZero() {
			info.Node = k.Node.String()
		}
		if !k.Term.IsZero() {
			info.Term = k.Term.String()
		}
		all[k.Kind] = info
	}
	return all
}

// Refused returns why coordinators refuse kinds of this node, in no order; nothing while
// they do not. Such a node serves no messages of the kind, and will not before its
// settings are those of the other nodes. Kinds that wait for their coordinator are not
// refused.
func (s *System) Refused() []*SettingsError {
	var all []*SettingsError
	for _, r := range *s.routers.Load() {
		if err := r.verdict.Load().err; err != nil {
			all = append(all, err)
		}
	}
	return all
}

// Kinds returns the kinds that run on this node, sorted by name.
func (s *System) Kinds() []KindInfo {
	var kinds []KindInfo
	for _, r := range *s.routers.Load() {
		k := KindInfo{Name: r.name, Shards: r.region.Shards(), Proxy: r.proxy, Resharding: r.resharding()}
		remembered, _ := r.region.Remembering()
		k.TakingOver = remembered.Taking
		r.region.EachSlot(func(sl *runtime.Slot) {
			if !r.proxy && sl.Info().Hosting {
				k.Hosted++
			}
		})
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b KindInfo) int { return strings.Compare(a.Name, b.Name) })
	return kinds
}

// Shards returns the shards of a kind as this node knows them, by layout and number. The error says that the
// kind does not run here. Safe for concurrent use; it takes the lock of each shard for a moment.
func (s *System) Shards(kind string) ([]ShardInfo, error) {
	r := s.router(kind)
	if r == nil {
		return nil, noKind(kind)
	}
	infos := make([]ShardInfo, 0, r.region.Shards())
	r.region.EachSlot(func(sl *runtime.Slot) {
		i := sl.Info()
		info := ShardInfo{
			Shard: int(sl.Shard().Index()), Layout: int(sl.Shard().Layout()), State: explain.State(i),
			Entities: i.Entities, Stuck: i.StuckCount, Sent: i.Window, Passed: i.Transit,
		}
		if !i.Home.IsZero() {
			info.Home, info.Epoch = i.Home.String(), i.Epoch.String()
		}
		infos = append(infos, info)
	})
	return infos, nil
}

// Entities returns the entities of a kind that live on this node, by shard, and in each the
// one first that came to life first: at most limit of them, 1 at least, and whether there are more. The error
// says that the kind does not run here. Safe for concurrent use; it takes the lock of each
// shard while it copies what is known of its entities.
func (s *System) Entities(kind string, limit int) (all []EntityInfo, more bool, err error) {
	r := s.router(kind)
	if r == nil {
		return nil, false, noKind(kind)
	}
	limit = max(1, limit)
	r.region.EachSlot(func(sl *runtime.Slot) {
		sl.Do(func(c *cell.Cell) {
			for e := range c.Entities() {
				if more = len(all) == limit; more {
					return
				}
				i := e.Info()
				all = append(all, EntityInfo{
					ID: i.ID, Shard: int(sl.Shard().Index()), State: i.State, Since: s.wall(i.Since), Waiting: i.Waiting, Stuck: i.Stuck, Reason: i.Reason,
				})
			}
		})
	})
	return all, more, nil
}

// Explain says where an entity of a kind lives, and why. There need not be such an
// entity: every id has a place. Explain asks the coordinator, and waits for at most two
// seconds; when the coordinator does not answer, the explanation says so, and is what this
// node knows. Only the home of an entity knows what the entity is doing: ask there. The
// error is that of ctx, or says what is wrong with the question.
func (s *System) Explain(ctx context.Context, kind, entity string) (Explanation, error) {
	r := s.router(kind)
	if r == nil {
		return Explanation{}, noKind(kind)
	}
	return r.explainEntity(ctx, entity)
}

// ExplainShard says where a shard of a kind lives, like [System.Explain]. While the number of shards
// changes, it is a shard of those that are to stay.
func (s *System) ExplainShard(ctx context.Context, kind string, shard int) (Explanation, error) {
	r := s.router(kind)
	switch {
	case r == nil:
		return Explanation{}, noKind(kind)
	case shard < 0 || shard >= r.region.Shards():
		return Explanation{}, fmt.Errorf("sharding: kind %q has the shards 0 to %d, not %d: %w", kind, r.region.Shards()-1, shard, ErrInvalid)
	}
	in := r.region.Layouts()
	id := in[len(in)-1].Shard(uint32(shard))
	sl := r.region.Slot(id)
	if sl == nil { // Two changes have come in between.
		return Explanation{}, fmt.Errorf("sharding: kind %q: shard %d is of a layout that is gone: %w", kind, shard, ErrInvalid)
	}
	x, err := r.explain(ctx, sl)
	if waits, _ := s.leases.Waits(kind, id); waits != "" && err == nil {
		x.Pending = append(x.Pending, "the shard "+waits)
	}
	return x, err
}

// resharding says how far the change of the number of shards is; nil for none.
func (r *router) resharding() *Resharding {
	in := r.region.Layouts()
	if len(in) < 2 {
		return nil
	}
	change := &Resharding{From: int(in[0].Shards), To: int(in[1].Shards)}
	r.region.EachSlot(func(sl *runtime.Slot) {
		if in[0].Has(sl.Shard()) && r.region.Retired(sl) {
			change.Retired++
		}
	})
	return change
}

// Explain says where an entity lives, like [System.Explain].
func (g *Region[C]) Explain(ctx context.Context, entity string) (Explanation, error) {
	return g.r.explainEntity(ctx, entity)
}

func (r *router) explainEntity(ctx context.Context, entity string) (Explanation, error) {
	if fault := protocol.EntityFault(entity); fault != "" {
		return Explanation{}, &MessageError{r.name, protocol.Clip(entity), fault, ErrInvalid}
	}
	sl := r.region.SlotOf(entity)
	x, err := r.explain(ctx, sl)
	if err != nil {
		return x, err
	}
	x.Entity = entity
	if x.Home != "" && x.Home != x.Self {
		x.Pending = append(x.Pending, r.local.surveys.AtHome(ctx, &r.census, x.Home, entity)...)
		return x, nil
	}
	// The entity is named once, even if it is among the entities that do not return.
	lines, named := r.census.Describe(sl, entity)
	others := slices.DeleteFunc(x.Pending, func(p string) bool { return p == named })
	x.Pending = append(lines, others...)
	return x, nil
}

// explain puts together what this node and the coordinator know of a shard.
func (r *router) explain(ctx context.Context, sl *runtime.Slot) (Explanation, error) {
	answer, err := r.local.ask(ctx, func(id uint64) machine.Input { return control.Explain{Kind: r.name, Shard: sl.Shard(), ID: id} })
	if err != nil {
		return Explanation{}, err
	}
	known, _ := answer.(control.ShardExplanation)
	info := sl.Info()
	x := Explanation{Kind: r.name, Shard: int(sl.Shard().Index()), Self: r.local.self.String()}
	if known.Coordinator.IsZero() {
		x.known(r.local, info)
	} else {
		x.coordinated(known)
	}
	if known.Detail != "" {
		x.Pending = append(x.Pending, known.Detail)
	}
	x.Pending = append(x.Pending, explain.Pending(info, r.local.wall)...)
	if st, on := r.region.Remembers(sl.Shard()); on && st.Served {
		x.Pending = append(x.Pending, explain.Remembered(st, r.local.wall)...)
	}
	return x, nil
}

// coordinated fills in what the coordinator knows.
func (x *Explanation) coordinated(known control.ShardExplanation) {
	x.Complete, x.Coordinator = true, known.Coordinator.String()
	x.State, x.Since, x.Decision = known.Phase.String(), known.Since, known.Decision
	if !known.Home.IsZero() {
		x.Home, x.Epoch = known.Home.String(), known.Epoch.String()
	}
	if move := explain.Move(known); move != "" {
		x.Pending = append(x.Pending, move)
	}
	for _, m := range known.Moves {
		move := Move{From: m.From.String(), Started: m.Started, Ended: m.Ended, Outcome: m.Outcome.String(), Reason: m.Reason}
		if !m.To.IsZero() {
			move.To = m.To.String()
		}
		x.Moves = append(x.Moves, move)
	}
}

// known fills in what this node knows by itself.
func (x *Explanation) known(l *local, i cell.Info) {
	x.State = explain.State(i)
	if !i.Home.IsZero() {
		x.Home, x.Epoch = i.Home.String(), i.Epoch.String()
	}
	if i.Since != 0 {
		x.Since = l.wall(i.Since)
	}
}

// String returns the explanation in lines of at most 80 columns, except where a single
// word is longer.
func (x Explanation) String() string {
	var b strings.Builder
	title := fmt.Sprintf("shard %d of %s", x.Shard, x.Kind)
	if x.Entity != "" {
		title = fmt.Sprintf("%q: ", protocol.Clip(x.Entity)) + title
	}
	b.WriteString(title + "\n")
	line := func(label, text string) {
		if text != "" {
			explain.Line(&b, label, text)
		}
	}
	home := x.Home
	switch home {
	case "":
		home = "none"
	case x.Self:
		home += ", this node"
	}
	state := x.State
	if !x.Since.IsZero() {
		state += " since " + x.Since.UTC().Format(time.RFC3339)
	}
	line("home", home)
	line("state", state)
	line("epoch", x.Epoch)
	line("decision", x.Decision)
	line("told by", x.teller())
	for _, p := range x.Pending {
		line("pending", p)
	}
	for _, m := range x.Moves {
		line("move", m.String())
	}
	return b.String()
}

// teller names the node whose knowledge the explanation is.
func (x Explanation) teller() string {
	if x.Complete {
		return x.Coordinator + ", the coordinator"
	}
	return x.Self + ", which is not the coordinator"
}

// String describes the move in one line.
func (m Move) String() string {
	to := m.To
	if to == "" {
		to = "nobody yet"
	}
	text := fmt.Sprintf("%s from %s to %s: %s", m.Ended.UTC().Format(time.RFC3339), m.From, to, m.Outcome)
	if m.Reason != "" {
		text += "; " + m.Reason
	}
	return text
}
