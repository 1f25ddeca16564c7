// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package courier

import (
	"container/heap"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/sharding/delivery/internal/retry"
)

// A courier holds what is not confirmed, by entity. The driver reserves room and puts letters; asks Next
// for frames to send until there is none, and again at Wake; and tells of each frame how it ended:
// Answered, after it has carried out what Confirms has said, or Unanswered. What belongs to
// one entity is in destination.go.

// Config bounds a courier.
type Config struct {
	Letters, Bytes     int           // Held in all.
	PerEntity          int           // Letters held for one entity.
	Frame, FrameBytes  int           // Of one frame; one letter may have more bytes.
	Calls              int           // Frames under way.
	RetryMin, RetryMax time.Duration // Between two attempts, doubling from the one to the other.
}

// Session names a numbering of letters. Two producers never have the same one.
type Session [16]byte

// Letter is one message.
type Letter[V any] struct {
	Session Session
	Number  uint64 // From 1, rising with each letter of the session, to whatever entity.
	Value   V
	Bytes   int
}

// Frame is what goes to an entity at one time: letters of one session. Without letters it asks for the
// demand of the entity.
type Frame[V any] struct {
	To      string
	Session Session
	Letters []Letter[V]
}

// Answer is what an entity says to a frame.
type Answer struct {
	Session   Session
	Confirmed uint64 // The last letter of the frame that was handled, by this frame or an earlier one; 0: none.
	Demand    int    // How many letters the next frame may have; 0: none at present.
}

// ErrNonsense says that an answer confirms what its frame has not.
var ErrNonsense = errors.New("the answer confirms what was not sent")

// Courier is the machine of a producer. Time is that since its beginning.
type Courier[V any] struct {
	cfg     Config
	session Session
	rand    *rand.Rand
	number  uint64 // The last one given.

	destinations   map[string]*destination[V] // Those with letters, or with room reserved.
	ready          []*destination[V]          // In the order in which they are served.
	paused         schedule[V]
	underWay       int // Destinations with a frame under way.
	letters, bytes int // Held or reserved.
}

// New returns a courier that holds nothing. The source spreads the pauses.
func New[V any](cfg Config, session Session, source *rand.Rand) *Courier[V] {
	return &Courier[V]{cfg: cfg, session: session, rand: source, destinations: map[string]*destination[V]{}}
}

// Session returns the session of the letters that are put.
func (c *Courier[V]) Session() Session { return c.session }

// Held returns how many letters are not confirmed, with those for which there is room only.
func (c *Courier[V]) Held() int { return c.letters }

// Paused returns how many entities wait for their next attempt.
func (c *Courier[V]) Paused() int { return len(c.paused) }

// Restore puts letters of an earlier courier, which that may have sent. The bounds are not
// applied: what was accepted once is not refused.
func (c *Courier[V]) Restore(to string, l Letter[V]) {
	d := c.destination(to)
	c.hold(1, l.Bytes)
	d.letters = append(d.letters, l)
	c.makeReady(d)
}

// Reserve keeps room for a letter of a size, and returns its number; false when there is no room.
// Numbers are put in the order in which they were reserved, or never.
func (c *Courier[V]) Reserve(to string, bytes int) (number uint64, ok bool) {
	d := c.destinations[to]
	switch {
	case c.letters >= c.cfg.Letters,
		c.letters > 0 && c.bytes+bytes > c.cfg.Bytes,
		d != nil && len(d.letters)+d.reserved >= c.cfg.PerEntity:
		return 0, false
	}
	c.destination(to).reserved++
	c.hold(1, bytes)
	c.number++
	return c.number, true
}

// Put takes the letter for which there is room.
func (c *Courier[V]) Put(to string, number uint64, value V, bytes int) {
	d := c.destinations[to]
	d.reserved--
	d.letters = append(d.letters, Letter[V]{c.session, number, value, bytes})
	c.makeReady(d)
}

// Cancel gives room back that was kept for a letter. Its number is not given again.
func (c *Courier[V]) Cancel(to string, bytes int) {
	d := c.destinations[to]
	d.reserved--
	c.hold(-1, -bytes)
	c.forget(d)
}

// Next returns a frame that is to be sent at once; false when there is none, or too many are under way.
func (c *Courier[V]) Next(now time.Duration) (Frame[V], bool) {
	for len(c.paused) > 0 && c.paused[0].due <= now {
		d := heap.Pop(&c.paused).(*destination[V])
		d.stage = idle
		c.makeReady(d)
	}
	if len(c.ready) == 0 || c.underWay >= c.cfg.Calls {
		return Frame[V]{}, false
	}
	d := c.ready[0]
	c.ready[0] = nil
	c.ready = c.ready[1:]
	d.stage = underWay
	c.underWay++
	return d.frame(c.cfg), true
}

// Wake returns when Next is to be asked again if nothing happens before; false for never.
func (c *Courier[V]) Wake() (time.Duration, bool) {
	switch {
	case c.underWay >= c.cfg.Calls:
		return 0, false
	case len(c.ready) > 0:
		return 0, true
	case len(c.paused) > 0:
		return c.paused[0].due, true
	default:
		return 0, false
	}
}

// Confirms returns the letters to an entity that an answer to the frame under way confirms. The error wraps
// [ErrNonsense].
func (c *Courier[V]) Confirms(to string, a Answer) ([]Letter[V], error) {
	d := c.destinations[to]
	n, err := d.covered(a)
	return slices.Clone(d.letters[:n]), err
}

// Answered takes the answer to the frame under way to an entity: what it confirms is gone. It reports
// how many pauses the entity was given in a row, without progress between them; 0 if it has none now.
func (c *Courier[V]) Answered(now time.Duration, to string, a Answer) (pauses int) {
	d := c.destinations[to]
	n, err := d.covered(a)
	if err != nil {
		return c.Unanswered(now, to)
	}
	probe := d.size == 0
	for _, l := range d.letters[:n] {
		c.hold(-1, -l.Bytes)
	}
	d.letters = slices.Delete(d.letters, 0, n)
	d.credit = min(max(a.Demand, 0), c.cfg.Frame)
	if n > 0 {
		d.pauses = 0
	}
	c.land(d)
	switch {
	case len(d.letters) == 0:
		c.forget(d)
	case d.credit == 0, n == 0 && !probe:
		c.pause(now, d)
	default:
		c.makeReady(d)
	}
	return d.pauses
}

// Unanswered says that the frame under way to an entity has had no answer of use: it may have been
// handled, or may be later. It reports what Answered does.
func (c *Courier[V]) Unanswered(now time.Duration, to string) (pauses int) {
	d := c.destinations[to]
	d.credit = min(d.credit, 1)
	c.land(d)
	c.pause(now, d)
	return d.pauses
}

func (c *Courier[V]) land(d *destination[V]) {
	d.stage, d.size = idle, 0
	c.underWay--
}

// pause lets an entity alone for a time, which doubles with each attempt that had no success.
func (c *Courier[V]) pause(now time.Duration, d *destination[V]) {
	d.due = now + retry.Pause(c.rand, c.cfg.RetryMin, c.cfg.RetryMax, d.pauses)
	d.pauses++
	d.stage = paused
	heap.Push(&c.paused, d)
}

// makeReady has an entity served that has letters, and for which nothing is under way.
func (c *Courier[V]) makeReady(d *destination[V]) {
	if d.stage == idle && len(d.letters) > 0 {
		d.stage = ready
		c.ready = append(c.ready, d)
	}
}

func (c *Courier[V]) hold(letters, bytes int) {
	c.letters += letters
	c.bytes += bytes
}

// destination returns what belongs to an entity, which begins with a frame of one letter.
func (c *Courier[V]) destination(to string) *destination[V] {
	d := c.destinations[to]
	if d == nil {
		d = &destination[V]{to: to, credit: 1}
		c.destinations[to] = d
	}
	return d
}

// forget frees what belongs to an entity for which nothing is held. Numbers are those of the session, so
// that nothing must be kept of it.
func (c *Courier[V]) forget(d *destination[V]) {
	if d.stage == idle && len(d.letters) == 0 && d.reserved == 0 {
		delete(c.destinations, d.to)
	}
}
