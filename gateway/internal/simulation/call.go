// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"io"
	"time"

	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
	"github.com/quorate/quorate/gateway/internal/exchange"
)

// A call at a node: it does what the goroutines of production do with their machine, in the same order. Reading is
// arrived, writing is write, and settle is what takes a request out of the counts of the node.

// frameBytes is how many bytes of replies go into one message.
const frameBytes = 4 << 10

// errEnding ends the calls of clients when the node does.
var errEnding = errors.New("the node ends")

// outcome is what became of a request, until it is written.
type outcome struct {
	id      uint64
	entity  int
	placed  bool // The place of the entity goes along.
	code    clientv1.Code
	payload []byte
	bytes   int // Of the message, which were counted.
}

// call is a call at a node.
type call struct {
	s       *session
	n       *node
	life    int
	machine *exchange.Call[outcome]
	began   time.Duration
	due     bool
	full    bool          // The connection has no room.
	waits   bool          // There is something to be written, and no room,
	since   time.Duration // since then.
	taken   []outcome     // What is still to be written.
	going   bool          // With the next message.
	over    bool          // Ctx has ended.
}

// newCall begins a call.
func newCall(s *session) *call {
	cfg := exchange.Config{Window: window, UnreadBytes: unreadBytes, WriteTimeout: writeTimeout}
	c := &call{s: s, n: s.n, life: s.n.life, machine: exchange.New[outcome](cfg), began: s.w.Now()}
	s.call = c
	s.n.calls = append(s.n.calls, c)
	s.down.send(&clientv1.Outcomes{Welcome: &clientv1.Welcome{Node: s.n.name, Window: window}}, 40)
	c.look()
	return c
}

// now is the time of the machine.
func (c *call) now() exchange.Instant { return exchange.Instant(c.s.w.Now()-c.began) + 1 }

// arrived takes what the client has sent.
func (c *call) arrived(m any) {
	if c.over {
		return
	}
	in, more := m.(*clientv1.Requests)
	if !more {
		c.machine.Half()
		c.signal()
		return
	}
	for _, r := range in.GetRequests() {
		if err := c.machine.Enter(); err != nil {
			c.s.w.Fail(fmt.Errorf("C5: %s sends %s more than its window: %w", c.s.p.name, c.n.name, err))
			return
		}
		c.n.begin(c, r)
	}
}

// put takes an outcome.
func (c *call) put(o outcome) {
	if !c.machine.Put(o, len(o.payload)) {
		c.n.settle(o)
		return
	}
	if _, bytes := c.machine.Open(); bytes > unreadBytes && c.machine.Over() == nil { // One reply alone is smaller.
		c.s.w.Fail(fmt.Errorf("C5: %d bytes of replies wait at %s for %s", bytes, c.n.name, c.s.p.name))
	}
	c.ended()
	c.signal()
}

// signal has the writer come.
func (c *call) signal() {
	if c.due || c.over {
		return
	}
	c.due = true
	c.n.later(c.s.w.upTo(200*time.Microsecond), func() {
		c.due = false
		c.write()
	})
}

// write writes outcomes, until the connection has no room.
func (c *call) write() {
	for !c.over {
		if len(c.taken) == 0 && !c.going {
			c.taken, c.going = c.machine.Take(nil, c.n.going)
		}
		switch {
		case len(c.taken) == 0 && !c.going:
			if c.machine.Finished() {
				c.finish(io.EOF)
			}
			return
		case c.full:
			if !c.waits {
				c.waits, c.since = true, c.s.w.Now()
				c.machine.Sending(c.now())
			}
			return
		}
		c.send()
	}
}

// send writes one message.
func (c *call) send() {
	out := &clientv1.Outcomes{Going: c.going}
	c.going = false
	bytes, n := 40, 0
	for ; n < len(c.taken) && bytes < frameBytes; n++ {
		bytes += 20 + len(c.taken[n].payload)
		out.Outcomes = append(out.GetOutcomes(), c.n.fill(c.taken[n]))
	}
	written := c.taken[:n]
	c.taken = c.taken[n:]
	c.machine.Sending(c.now())
	c.full = !c.s.down.send(out, bytes)
	c.sent(written)
}

func (c *call) sent(written []outcome) {
	c.machine.Sent(len(written))
	for _, o := range written {
		c.n.settle(o)
	}
}

// writable says that the connection has room again.
func (c *call) writable() {
	if c.over {
		return
	}
	c.machine.Sent(0)
	c.full, c.waits = false, false
	c.signal()
}

// look ends the call of a client that does not read.
func (c *call) look() {
	c.n.later(writeTimeout/4, func() {
		if c.over {
			return
		}
		c.machine.Look(c.now())
		c.ended()
		c.look()
	})
}

// stalls reports whether the call goes on though its client has not read for longer than it may, and until the node
// looks (docs/clients.md, "replies that a client does not read").
func (c *call) stalls() bool {
	w := c.s.w
	return !c.over && c.waits && c.n.up && c.n.life == c.life && c.n.frozen == 0 && w.Now()-c.since > writeTimeout*5/4
}

// ended ends the call if the machine has ended it.
func (c *call) ended() {
	if err := c.machine.Over(); err != nil && !c.over {
		c.s.w.Counts.Cut++
		c.finish(err)
	}
}

// finish ends the call for the client, after what it has been sent.
func (c *call) finish(err error) {
	c.machine.End(err)
	if errors.Is(err, exchange.ErrUnread) || errors.Is(err, exchange.ErrStalled) {
		c.s.down.end() // gRPC resets it: nothing of what waits is read.
		c.s.dead = true
		c.s.reset()
	} else {
		c.s.down.send(ended{err}, 1)
	}
	c.leave(err)
}

// leave ends the call at the node: the writer ends a moment later.
func (c *call) leave(err error) {
	if c.over {
		return
	}
	c.over = true
	c.machine.End(err)
	c.n.later(c.s.w.upTo(200*time.Microsecond), func() {
		for _, o := range c.taken {
			c.n.settle(o)
		}
		for _, o := range c.machine.Abandon() {
			c.n.settle(o)
		}
		c.taken = nil
	})
}
