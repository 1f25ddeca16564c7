// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package singleton_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/singleton"
)

// model is a cluster whose members learn of each change at their own pace, over a
// network that delays, loses and doubles messages. A member is fenced when it was
// removed and its core has ended or its process is gone, which is what membership
// promises; each node hears of it at its own pace too.
type model struct {
	t       *rapid.T
	h       *history
	changes []change // All changes in order; what a node knows is a prefix.
	cores   map[int]*member
	mail    []letter
	now     machine.Instant
	last    singleton.Term
	next    int
}

// change is a new state, or a fence.
type change struct {
	state  *gossip.State
	fenced int
}

type member struct {
	*core
	i       int
	known   int // How many changes it knows.
	running bool
	dead    bool
}

type letter struct {
	from, to int
	message  singleton.Message
}

func (m *model) record() { m.changes = append(m.changes, change{state: m.h.state}) }

// carry carries out what a core wants, and checks the rule.
func (m *model) carry(c *member) {
	out := c.out
	c.out = singleton.Actions{}
	if !out.Start.IsZero() {
		for _, other := range m.cores {
			if other.running && !other.dead {
				m.t.Fatalf("%d starts while the instance runs at %d", c.i, other.i)
			}
		}
		if out.Start.Compare(m.last) <= 0 {
			m.t.Fatalf("%d starts under term %s, after term %s", c.i, out.Start, m.last)
		}
		m.last, c.running = out.Start, true
	}
	for _, s := range out.Send {
		m.mail = append(m.mail, letter{c.i, int(s.To.UID), s.Message})
	}
	// The instance stops later: out.Stop is answered by the action "stopped".
}

// learn lets a node hear of the next change.
func (m *model) learn(c *member) {
	if c.dead || c.known == len(m.changes) {
		return
	}
	ch := m.changes[c.known]
	c.known++
	c.now = m.now
	if ch.fenced != 0 {
		c.separate(node(ch.fenced))
	} else {
		c.learn(ch.state)
	}
	m.carry(c)
}

func (m *model) deliver(l letter) {
	c := m.cores[l.to]
	if c == nil || c.dead || m.changes[c.known-1].fenced == 0 && m.changes[c.known-1].state.Member(node(l.from)) == nil {
		return
	}
	c.now = m.now
	c.Receive(c.now, node(l.from), l.message, &c.out)
	m.carry(c)
}

func (m *model) tick(c *member) {
	if c.dead {
		return
	}
	c.now = m.now
	c.Tick(c.now, &c.out)
	m.carry(c)
}

func (m *model) stopped(c *member) {
	if c.dead || c.Phase() != singleton.HandingOver {
		return
	}
	c.running = false
	c.now = m.now
	c.InstanceStopped(c.now, &c.out)
	m.carry(c)
}

// join lets a new node join; what it knows begins with the present state.
func (m *model) join(t *rapid.T) {
	if len(m.h.state.Members()) > 6 {
		return
	}
	m.next++
	if rapid.IntRange(0, 3).Draw(t, "role") == 0 {
		m.h.joinWith(gossip.Member{Node: node(m.next), Services: []uint16{service}})
	} else {
		m.h.join(m.next)
	}
	m.record()
	m.cores[m.next] = &member{core: newCore(m.next), i: m.next, known: len(m.changes) - 1}
	m.learn(m.cores[m.next])
	for _, t := range m.h.state.Tombstones() {
		if m.cores[int(t.Node.UID)].dead {
			// Membership times the fences anew for whoever joins.
			m.changes = append(m.changes, change{fenced: int(t.Node.UID)})
		}
	}
}

// advance takes one member a step further on its way.
func (m *model) advance(t *rapid.T) {
	c := m.pick(t)
	if c == nil || m.h.state.Member(c.self) == nil {
		return
	}
	switch at := m.h.state.Member(c.self); {
	case rapid.IntRange(0, 4).Draw(t, "down") == 0 && at.Status < gossip.Down:
		m.h.set(gossip.Down, c.i)
	case at.Status == gossip.Joining:
		m.h.up(c.i)
	case at.Status == gossip.Up:
		m.h.set(gossip.Leaving, c.i)
	case at.Status == gossip.Leaving:
		m.h.set(gossip.Exiting, c.i)
	default:
		m.h.remove(c.i)
	}
	m.record()
}

// fence lets a removed member be fenced. One that is down is cut off: it may not
// know, and its instance runs until its standing ends.
func (m *model) fence(c *member) {
	if _, removed := m.h.state.Removed(c.self); !removed || c.dead {
		return
	}
	c.dead = true
	m.changes = append(m.changes, change{fenced: c.i})
}

func (m *model) pick(t *rapid.T) *member {
	if m.next == 0 {
		return nil
	}
	return m.cores[rapid.IntRange(1, m.next).Draw(t, "node")]
}

func (m *model) mailAction(t *rapid.T) {
	if len(m.mail) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.mail)-1).Draw(t, "letter")
	l := m.mail[i]
	if rapid.IntRange(0, 3).Draw(t, "fate") > 0 {
		m.mail = append(m.mail[:i], m.mail[i+1:]...)
	}
	if rapid.IntRange(0, 4).Draw(t, "lost") > 0 {
		m.deliver(l)
	}
}

// settle lets everything that is under way end, and checks that the oldest runs.
func (m *model) settle() {
	for range 60 {
		for i := 1; i <= m.next; i++ {
			c := m.cores[i]
			if st := m.h.state.Member(c.self); st != nil && st.Status == gossip.Down {
				m.h.remove(c.i)
				m.record()
			}
			m.fence(c)
			for !c.dead && c.known < len(m.changes) {
				m.learn(c)
			}
			m.stopped(c)
			m.tick(c)
		}
		for len(m.mail) > 0 {
			l := m.mail[0]
			m.mail = m.mail[1:]
			m.deliver(l)
		}
		m.now = m.now.Add(time.Second)
	}
	oldest := m.h.state.Oldest("worker", func(x *gossip.Member) bool { return x.Status == gossip.Up })
	for i := 1; i <= m.next; i++ {
		c := m.cores[i]
		if want := oldest != nil && oldest.Node == c.self; !c.dead && c.running != want {
			m.t.Fatalf("in the end %d has %s, and runs %t", i, c.Core, c.running)
		}
	}
}

// Whatever happens in whatever order, no two instances run at a time, terms rise, and
// when all nodes have heard of everything the oldest runs the instance.
// covers F34, F35, I3.
func TestNeverTwoAndInTheEndOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{t: rt, h: newHistory(t), cores: map[int]*member{}}
		of := func(act func(*member)) func(*rapid.T) {
			return func(t *rapid.T) {
				if c := m.pick(t); c != nil {
					act(c)
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"join": m.join, "advance": m.advance, "advance more": m.advance,
			"learn": of(m.learn), "learn more": of(m.learn), "learn all": of(func(c *member) {
				for !c.dead && c.known < len(m.changes) {
					m.learn(c)
				}
			}),
			"fence": of(m.fence), "stopped": of(m.stopped), "tick": of(m.tick),
			"mail": m.mailAction, "more mail": m.mailAction,
			"time": func(*rapid.T) { m.now = m.now.Add(time.Second) },
		})
		m.settle()
	})
}
