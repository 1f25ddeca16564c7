// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
)

// Clients, each with one reminder, that set and cancel it again and again: a change is asked for until
// it is acknowledged, then the next begins after a pause. And what must hold of that reminder: at each
// delivery, and in the end.

const (
	askTimeout = 6 * time.Second
	maxPause   = 12 * time.Second
	centuries  = 150 * 365 * 24 * time.Hour // Twice of it does not fit into a time.Duration.
)

// client has one reminder.
type client struct {
	w      *World
	key    buckets.Key
	bucket int
	page   int
	specs  []*spec // All that were ever asked for; the number of one is its revision.
	acked  *spec   // The last one that was acknowledged; nil for none.
	asked  *spec   // The one that is asked for; nil for none.
	listed []buckets.Status
	marks  [2]mark // When all was to be settled, and a window later.
}

// spec is what the reminder should be.
type spec struct {
	revision int
	canceled bool
	due      int64
	every    int64
	acked    time.Duration // When it was acknowledged.
	begun    int
	handled  int
	first    time.Duration // When it was first handled.
	last     time.Duration // When it was last begun.
}

// mark says how often the reminder was begun and handled until then.
type mark struct{ begun, handled int }

func newClient(w *World, entity, name int) *client {
	c := &client{w: w, bucket: entity % len(w.homes), page: entity % pages}
	c.key = buckets.Key{Kind: "simulated", ID: fmt.Sprintf("e%d", entity), Name: fmt.Sprintf("n%d", name)}
	c.pause()
	return c
}

func (w *World) clientOf(k buckets.Key) *client {
	for _, c := range w.clients {
		if c.key == k {
			return c
		}
	}
	return nil
}

// pause begins the next change after a time.
func (c *client) pause() {
	c.w.After(c.w.upTo(maxPause), func() {
		if c.w.Now() < c.w.opt.Duration {
			c.change()
		}
	})
}

// change draws what the reminder should be, and asks for it.
func (c *client) change() {
	w := c.w
	s := &spec{revision: len(c.specs), due: w.Wall().Add(w.upTo(35*time.Second) - 5*time.Second).UnixMilli()}
	switch w.rand.IntN(8) {
	case 0, 1:
		s.canceled = true
	case 2:
		s.every = (time.Second + w.upTo(9*time.Second)).Milliseconds()
	case 3:
		s.due = w.Wall().Add(centuries).Add(centuries).UnixMilli()
	}
	c.specs, c.asked = append(c.specs, s), s
	c.ask()
}

// ask asks for the change until it is acknowledged.
func (c *client) ask() {
	s := c.asked
	a := buckets.Ask{Page: c.page, Op: buckets.Set, Reminder: buckets.Reminder{
		Key: c.key, Due: s.due, Every: s.every, Payload: strconv.AppendInt(nil, int64(s.revision), 10),
	}}
	if s.canceled {
		a.Op, a.Reminder = buckets.Cancel, buckets.Reminder{Key: c.key}
	}
	again := func() {
		if c.asked == s {
			c.w.Counts.Repeated++
			c.ask()
		}
	}
	c.w.ask(c.bucket, a, func(answer buckets.Answer) {
		switch {
		case c.asked != s:
		case answer.Code != buckets.OK:
			c.w.Counts.Refused++
			c.w.After(time.Second, again)
		default:
			c.acknowledged(s)
		}
	}, again)
}

func (c *client) acknowledged(s *spec) {
	c.acked, c.asked = s, nil
	s.acked = c.w.Now()
	if s.canceled {
		c.w.Counts.Canceled++
	} else {
		c.w.Counts.Set++
	}
	c.w.Log("%s of %s has revision %d", c.key.Name, c.key.ID, s.revision)
	c.pause()
}

// ask takes a question to the home of a bucket, and an answer back; lost is called if none comes.
func (w *World) ask(b int, a buckets.Ask, answered func(buckets.Answer), lost func()) {
	w.asked++
	a.ID = w.asked
	deadline := w.Now() + askTimeout
	over := false
	w.calls[a.ID] = func(answer buckets.Answer) {
		if w.chance(0.05) {
			return
		}
		w.After(time.Millisecond+w.upTo(5*time.Millisecond), func() {
			if !over {
				over = true
				answered(answer)
			}
		})
	}
	w.After(askTimeout, func() {
		delete(w.calls, a.ID)
		if !over {
			over = true
			lost()
		}
	})
	way := time.Millisecond + w.upTo(5*time.Millisecond)
	if w.chance(0.05) {
		way = w.upTo(2 * askTimeout)
	}
	to := w.nodes[w.homes[b].node]
	w.After(way, func() {
		to.do(func(n *node) {
			if of := n.buckets[b]; of != nil && w.Now() < deadline {
				of.step(a)
			}
		})
	})
}

func (w *World) answer(a buckets.Answer) {
	if f := w.calls[a.ID]; f != nil {
		delete(w.calls, a.ID)
		f(a)
	}
}

// spec returns the revision that a delivery is of.
func (c *client) spec(f buckets.Deliver) *spec {
	revision, err := strconv.Atoi(string(f.Reminder.Payload))
	if err != nil || revision >= len(c.specs) {
		c.w.Fail(fmt.Errorf("M1: %q was never asked for", f.Reminder.Payload))
		return &spec{}
	}
	return c.specs[revision]
}

// begun looks at a delivery that begins.
func (c *client) begun(b *bucket, f buckets.Deliver) {
	w, s := c.w, c.spec(f)
	w.Counts.Fired++
	w.Counts.Missed += int(f.Missed)
	s.begun++
	s.last = w.Now()
	fail := func(rule, text string) {
		w.Fail(fmt.Errorf("%s: %s of %s, revision %d, due %v: %s", rule, c.key.Name, c.key.ID, s.revision,
			time.UnixMilli(f.Reminder.Due).UTC(), text))
	}
	after := f.Reminder.Due - s.due
	switch wall := b.of.now().Wall.UnixMilli(); {
	case wall < f.Reminder.Due:
		fail("M1", "it fires before its time")
	case s.every == 0 && after != 0, s.every > 0 && (after < 0 || after%s.every != 0):
		fail("M1", "it was never to fire at that time")
	case !b.rightful(): // (docs/reminders.md, "An owner that was replaced, and whose clock is wrong by more than 1 %, may deliver")
		w.Counts.Stale++
	case b.closing:
		fail("M2", "the bucket closes, and fires all the same")
	case c.acked != nil && s.revision < c.acked.revision:
		fail("M2", fmt.Sprintf("revision %d was acknowledged before it fires", c.acked.revision))
	}
}

// handled looks at a delivery that has come to its entity.
func (c *client) handled(f buckets.Deliver) {
	s := c.spec(f)
	c.w.Counts.Handled++
	if s.handled++; s.handled == 1 {
		s.first = c.w.Now()
	} else if s.every == 0 {
		c.w.Counts.Doubled++
	}
}

// mark notes what has happened until then.
func (c *client) mark(n int) {
	if c.acked != nil {
		c.marks[n] = mark{c.acked.begun, c.acked.handled}
	}
}

// list asks for what the owner has.
func (c *client) list() {
	c.w.ask(c.bucket, buckets.Ask{Page: c.page, Op: buckets.List, Reminder: buckets.Reminder{Key: c.key.Entity()}}, func(a buckets.Answer) {
		for _, s := range a.List {
			if s.Key == c.key {
				c.listed = append(c.listed, s)
			}
		}
	}, func() {})
}

// lives reports whether the reminder is to fire after the end.
func (c *client) lives() bool {
	return c.acked != nil && !c.acked.canceled && (c.acked.every > 0 || c.acked.due > c.w.Wall().UnixMilli())
}

// check looks at the reminder in the end.
func (c *client) check() error {
	w, s := c.w, c.acked
	if c.asked != nil {
		return fmt.Errorf("M7: revision %d is not acknowledged", c.asked.revision)
	}
	if s == nil {
		return nil
	}
	switch lives := c.lives(); {
	case lives && len(c.listed) != 1, !lives && len(c.listed) != 0:
		return fmt.Errorf("M3: revision %d, to fire %v, and the owner lists %d", s.revision, lives, len(c.listed))
	case lives && string(c.listed[0].Payload) != strconv.Itoa(s.revision):
		return fmt.Errorf("M3: revision %d, and the owner has %q", s.revision, c.listed[0].Payload)
	case s.canceled || s.due > w.Wall().UnixMilli():
		return nil
	case s.handled == 0:
		return fmt.Errorf("M4: revision %d was never handled", s.revision)
	}
	since := max(time.Duration(s.due-w.Wall().UnixMilli())*time.Millisecond+w.Now(), w.opt.Duration, s.acked)
	if s.first > since+Bound {
		return fmt.Errorf("M4: revision %d was handled at %v, it was due at %v", s.revision, s.first, since)
	}
	handled, begun := c.marks[1].handled-c.marks[0].handled, c.marks[1].begun-c.marks[0].begun
	if s.every == 0 && s.begun > c.marks[1].begun {
		return fmt.Errorf("M5: revision %d was acknowledged, and fires again when the bucket is read", s.revision)
	}
	most, least := 0, 0
	if s.every > 0 {
		times := int(window.Milliseconds() / s.every)
		most, least = times+1, times-1
	}
	if handled < least || handled > most || begun > most {
		return fmt.Errorf("M5: revision %d, every %d ms, was begun %d and handled %d times in %v", s.revision, s.every, begun, handled, window)
	}
	return nil
}
