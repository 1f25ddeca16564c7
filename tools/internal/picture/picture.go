// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/simulation"
)

// An observer observes nodes ([Observer.observe]), messages ([Observer.observeMessage]) and what the script does
// ([Observer.observeScript]), and looks at the whole world in each second and after each change from outside
// ([Observer.inspect]). What it has seen is a [Run], in the form in which the page reads it.

// The bounds of a run.
const (
	maxLanes    = 48     // A view of all by all is a table of 48 by 48 at most.
	maxChanges  = 40_000 // Some 25 bytes each.
	maxMessages = 12_000
	maxLast     = 2_000
	maxMarks    = 4_000
	maxText     = 240 // Bytes of a text.
	maxKinds    = 60
	maxRates    = 3_600 // Buckets of messages, of a second or more.
	maxTail     = 60    // Lines of the trace.
)

// watchEvery is how often at most lanes are looked at between the seconds, for the ends of standings.
const watchEvery = 50 * time.Millisecond

// Observer observes a run, and makes a [Run] of it. Make one with [New].
type Observer struct {
	world  *simulation.World
	hosted func(*simulation.Node) []uint32

	lanes  map[gossip.Address]int
	places []gossip.Address        // By lane.
	strays map[gossip.Address]bool // Addresses without a lane.
	until  []machine.Instant       // By lane: until when it may host, by its own clock.
	states []*gossip.State         // By lane: the state that it has published last.
	shards [][]uint32              // By lane: what it hosts.

	changes  *changeHistory
	messages *drawnMessages
	marks    marks
	rates    rates
	kinds    []Kind
	types    map[reflect.Type]int

	changed time.Duration // The last change from outside that was looked at.
	looked  time.Duration
}

// New returns an observer. Hosted returns the shards that a node hosts; nil if nothing does.
func New(hosted func(*simulation.Node) []uint32) *Observer {
	return &Observer{
		hosted: hosted, lanes: make(map[gossip.Address]int), strays: make(map[gossip.Address]bool), types: make(map[reflect.Type]int),
		changes: newChangeHistory(maxChanges), messages: newDrawnMessages(maxMessages, maxLast), marks: newMarks(maxMarks), rates: rates{width: 1},
	}
}

// Begin has the observer observe a world.
func (p *Observer) Begin(w *simulation.World) {
	p.world = w
	w.Observe(p.observe)
	w.Listen(p.observeScript)
	w.Network().Observe(p.observeMessage)
	w.Check(p)
}

// Seen reports whether the run has had a world.
func (p *Observer) Seen() bool { return p.world != nil }

// Stepped does nothing.
func (p *Observer) Stepped(*simulation.World, *simulation.Node) error { return nil }

// Second looks at the world.
func (p *Observer) Second(*simulation.World) error {
	p.inspect()
	return nil
}

func micros(d time.Duration) int64 { return d.Microseconds() }

func (p *Observer) now() int64 { return micros(p.world.Now()) }

// lane returns the lane of an address, which it makes if there is room; -1 without one.
func (p *Observer) lane(a gossip.Address) int {
	if i, ok := p.lanes[a]; ok {
		return i
	}
	if len(p.places) == maxLanes {
		if len(p.strays) < 10_000 {
			p.strays[a] = true
		}
		return -1
	}
	i := len(p.places)
	p.lanes[a] = i
	p.places, p.until, p.states, p.shards = append(p.places, a), append(p.until, 0), append(p.states, nil), append(p.shards, nil)
	return i
}

func (p *Observer) set(kind, a, b, v int) { p.changes.set(p.now(), valueKey{kind, a, b}, v) }

func (p *Observer) observe(o simulation.Observation) {
	i := p.lane(o.Node.ID().Address)
	if i < 0 {
		return
	}
	switch e := o.Event.(type) {
	case simulation.Started:
		p.set(kindLife, i, 0, 1)
		p.marks.add(p.now(), markBegan, i, "began, generation "+fmt.Sprint(o.Node.Generation()))
	case simulation.Ended:
		p.ended(i, e.Why)
	case component.Changed:
		p.viewed(i, e)
	case component.Standing:
		p.until[i] = e.Until
		p.hosts(i, o.Node)
	case component.Fenced:
		p.marks.add(p.now(), markFenced, i, fmt.Sprintf("fences %s", e.Node))
	case component.Stopping:
		p.marks.add(p.now(), markEnded, i, fmt.Sprintf("stops: %s. %s", e.Reason, e.Detail))
	case machine.Decide:
		p.marks.add(p.now(), markDecided, i, fmt.Sprintf("%s of %s: %s. %s", e.Topic, e.Subject, e.Verdict, e.Reason))
	}
}

func (p *Observer) ended(i int, why string) {
	p.set(kindLife, i, 0, 0)
	p.marks.add(p.now(), markEnded, i, "ended: "+why)
	p.until[i], p.states[i] = 0, nil
	p.set(kindHosts, i, 0, 0)
	p.set(kindLeader, i, 0, 0)
	p.set(kindAgreed, i, 0, 0)
	for j := range p.places {
		p.set(kindView, i, j, 0)
	}
	p.hold(i, nil)
}

// viewed notes how a node sees the members.
func (p *Observer) viewed(i int, e component.Changed) {
	agreed := 0
	if e.Converged {
		agreed = 1
	}
	p.set(kindAgreed, i, 0, agreed)
	leader := 0
	if l, ok := p.lanes[e.Leader.Address]; ok && !e.Leader.IsZero() {
		leader = l + 1
	}
	p.set(kindLeader, i, 0, leader)
	if e.State == nil || p.states[i] == e.State {
		return
	}
	p.states[i] = e.State
	lost := e.State.Unreachable()
	for j, a := range p.places {
		p.set(kindView, i, j, statusOf(e.State, a, p.world.Node(a), lost))
	}
}

// unreachable is added to the status of a member that cannot be reached.
const unreachable = 16

// statusOf returns the status of the member at an address; of none there, whether the node that
// lives there was removed.
func statusOf(s *gossip.State, a gossip.Address, n *simulation.Node, lost []gossip.NodeID) int {
	if m := s.ByAddress(a); m != nil {
		v := int(m.Status)
		if slices.Contains(lost, m.Node) {
			v += unreachable
		}
		return v
	}
	if n != nil {
		if _, removed := s.Removed(n.ID()); removed {
			return int(gossip.Removed)
		}
	}
	return 0
}

// hosts notes whether a node may host, by its own clock.
func (p *Observer) hosts(i int, n *simulation.Node) {
	v := 0
	if n != nil && n.Alive() && n.Now().Mono <= p.until[i] && p.until[i] != 0 {
		v = 1
	}
	p.set(kindHosts, i, 0, v)
}

// observeScript notes what the script does.
func (p *Observer) observeScript(text string) { p.marks.add(p.now(), markScript, -1, text) }

// observeMessage notes a message, and a change from outside that was just made.
func (p *Observer) observeMessage(m simulation.Passage) {
	if p.world.Now()-p.world.Steady() != p.changed || p.world.Now()-p.looked >= watchEvery {
		p.glance()
	}
	kind := p.kind(m)
	p.rates.add(p.world.Now(), m.Lost)
	from, to := p.lane(m.From.ID().Address), p.lane(m.To)
	if from < 0 || to < 0 {
		return
	}
	p.messages.add(drawnMessage{sent: p.now(), arrives: micros(m.Arrives), from: from, to: to, kind: kind})
}

// kind counts a message with those of its type, and returns the number of the type.
func (p *Observer) kind(m simulation.Passage) int {
	t := reflect.TypeOf(m.Message)
	i, known := p.types[t]
	if !known {
		i = min(len(p.kinds), maxKinds-1)
		p.types[t] = i
		switch {
		case len(p.kinds) == maxKinds:
			p.kinds[i].Name = "others"
		case t == nil:
			p.kinds = append(p.kinds, Kind{Name: "nil"})
		default:
			p.kinds = append(p.kinds, Kind{Name: strings.TrimPrefix(t.String(), "*")})
		}
	}
	p.kinds[i].Sent++
	if m.Lost {
		p.kinds[i].Lost++
	}
	return i
}

// glance notes links, pauses and standings.
func (p *Observer) glance() {
	p.looked = p.world.Now()
	for i, a := range p.places {
		n := p.world.Node(a)
		if n == nil {
			continue
		}
		life := 1
		if n.Frozen() {
			life = 2
		}
		p.set(kindLife, i, 0, life)
		p.hosts(i, n)
	}
	if changed := p.world.Now() - p.world.Steady(); changed != p.changed {
		p.changed = changed
		p.links()
	}
}

// links notes between which lanes no message passes.
func (p *Observer) links() {
	blocked := make(map[valueKey]bool)
	for _, way := range p.world.Network().Blocked() {
		from, fromHas := p.lanes[way.From]
		to, toHas := p.lanes[way.To]
		if fromHas && toHas {
			blocked[valueKey{kindBlocked, from, to}] = true
		}
	}
	for from := range p.places {
		for to := range p.places {
			v := 0
			if blocked[valueKey{kindBlocked, from, to}] {
				v = 1
			}
			p.set(kindBlocked, from, to, v)
		}
	}
}

// inspect notes everything, the shards too.
func (p *Observer) inspect() {
	p.glance()
	if p.hosted == nil {
		return
	}
	for i, a := range p.places {
		if n := p.world.Node(a); n != nil {
			p.hold(i, p.hosted(n))
		}
	}
}

// hold notes which shards a lane hosts.
func (p *Observer) hold(i int, hosted []uint32) {
	for _, s := range p.shards[i] {
		if !slices.Contains(hosted, s) {
			p.set(kindShard, int(s), i, 0)
		}
	}
	for _, s := range hosted {
		p.set(kindShard, int(s), i, 1)
	}
	p.shards[i] = hosted
}
