// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clientsim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/client/internal/broker"
	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
)

// A request goes from Do to the machine (submit), which gives it to a link (link.go), and hands back how it has
// ended (deliver). The numbers are those of package client.

const (
	// Lifetime bounds a request that has no deadline.
	Lifetime = time.Minute
	// Sweep is how often requests are looked at whose deadlines may have passed: no request ends later than
	// so long after its deadline.
	Sweep = 250 * time.Millisecond

	patience = 100 * time.Millisecond
	maxShards,
	maxKinds = 1 << 16, 1024
)

// World is what a client needs of a world in virtual time.
type World interface {
	// Now returns the time since the beginning of the world.
	Now() time.Duration

	// After calls f when d has passed.
	After(d time.Duration, f func())
}

// Request is a request of a program.
type Request struct {
	Kind, Entity string
	Payload      []byte
	Tell         bool

	// Deadline is when the program does not wait any more, as a time of the world; zero: it waits
	// for as long as a request lasts, see [Lifetime].
	Deadline time.Duration

	// Done is told how the request has ended, once.
	Done func(Result)

	machine broker.Request
	ends    time.Duration // When it ends at the latest, but for the sweep.
	refused bool          // It waits for room.
	over    bool
}

// Ends returns when the request ends at the latest, but for [Sweep]. It is set by [Client.Do].
func (r *Request) Ends() time.Duration { return r.ends }

// Result is how a request has ended.
type Result struct {
	// Code is that of the outcome.
	Code clientv1.Code

	// Payload is the reply, with CODE_OK.
	Payload []byte

	// Detail says more, for people.
	Detail string
}

// Client is a client in virtual time.
type Client struct {
	w      World
	source *rand.Rand
	cfg    client.Config
	began  time.Duration
	broker *broker.Broker
	out    broker.Output
	links  []*link
	room   []*Request // Have found no room.
	closed bool
}

// Open returns a client that begins to connect to all nodes. Of the configuration the bounds and times count.
func Open(w World, source *rand.Rand, cfg client.Config, nodes []Node) *Client {
	c := &Client{w: w, source: source, cfg: cfg, began: w.Now(), broker: broker.New(broker.Config{
		Nodes: len(nodes), Queued: cfg.Queued, Bytes: cfg.QueuedBytes, Shards: maxShards, Kinds: maxKinds, Patience: broker.Instant(patience),
	})}
	for at, n := range nodes {
		l := &link{c: c, at: at, node: n, pause: retryFirst}
		c.links = append(c.links, l)
		w.After(c.soon(), l.dial)
	}
	w.After(Sweep, c.watch)
	return c
}

// soon is the time until a goroutine gets to do something.
func (c *Client) soon() time.Duration {
	return time.Duration(c.source.Int64N(int64(200 * time.Microsecond)))
}

// now is the time of the machine.
func (c *Client) now() broker.Instant { return broker.Instant(c.w.Now()-c.began) + 1 }

// Do begins a request.
func (c *Client) Do(r *Request) {
	left := Lifetime
	if r.Deadline != 0 {
		left = min(left, r.Deadline-c.w.Now())
	}
	r.ends = c.w.Now() + max(left, 1)
	r.machine = broker.Request{Kind: r.Kind, Entity: r.Entity, Payload: r.Payload, Tell: r.Tell, Deadline: c.now() + broker.Instant(max(left, 1)), Owner: r}
	if r.Deadline != 0 {
		c.w.After(max(left, 1), func() { c.Cancel(r) })
	}
	c.submit(r)
}

// submit hands a request to the machine, which waits for room if there is none.
func (c *Client) submit(r *Request) {
	r.refused = !c.broker.Submit(&r.machine, &c.out)
	if r.refused {
		c.room = append(c.room, r)
		c.w.After(max(r.ends-c.w.Now(), 0), func() { c.tired(r) })
	}
	c.deliver()
}

// tired ends a request that waits for room in vain.
func (c *Client) tired(r *Request) {
	if !r.refused || r.over {
		return
	}
	c.room = slices.DeleteFunc(c.room, func(w *Request) bool { return w == r })
	r.refused = false
	c.done(r, Result{Code: clientv1.Code_CODE_OVERLOADED, Detail: "too many requests wait in this client"})
}

// Cancel has the program not wait any longer.
func (c *Client) Cancel(r *Request) {
	switch {
	case r.over:
	case r.refused:
		c.tired(r)
	default:
		c.step(func(broker.Instant) { c.broker.Cancel(&r.machine, &c.out) })
	}
}

// Close ends all requests.
func (c *Client) Close() {
	c.closed = true
	c.step(func(broker.Instant) { c.broker.Close(&c.out) })
	for _, l := range c.links {
		l.end()
	}
}

// Count returns how many requests have not ended, and do not wait for room.
func (c *Client) Count() int { return c.broker.Count() }

// Waiting returns how many requests wait for a node, and the bytes of their messages.
func (c *Client) Waiting() (requests, bytes int) { return c.broker.Waiting() }

// Refused returns how many requests wait for room in the client.
func (c *Client) Refused() int { return len(c.room) }

// step takes a step of the machine, and carries out what follows.
func (c *Client) step(f func(now broker.Instant)) {
	f(c.now())
	c.deliver()
}

// deliver carries out what follows from a step. What a program begins then is a step of its own.
func (c *Client) deliver() {
	ended, room := slices.Clone(c.out.Ended), c.out.Room
	for _, at := range c.out.Wake {
		c.links[at].wake()
	}
	if room {
		again := c.room
		c.room = nil
		// They are goroutines: any of them may be the first.
		c.source.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		for _, r := range again {
			c.w.After(c.soon(), func() {
				if r.refused && !r.over {
					c.submit(r)
				}
			})
		}
	}
	for _, e := range ended {
		c.done(e.Request.Owner.(*Request), Result{clientv1.Code(e.Code), e.Payload, e.Detail})
	}
}

func (c *Client) done(r *Request, result Result) {
	r.over = true
	r.Done(result)
}

// watch ends the requests whose deadlines have passed.
func (c *Client) watch() {
	if c.closed {
		return
	}
	c.step(func(now broker.Instant) { c.broker.Overdue(now, &c.out) })
	c.w.After(Sweep, c.watch)
}
