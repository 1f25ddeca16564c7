// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/quorate/quorate/client/internal/broker"
	"github.com/quorate/quorate/rpc"
)

// A request, from Ask to its end: do checks it and hands it to the machine (submit), which gives it
// to a node; the link of that node writes it (link.go), and hands back what the node says. Every step of
// the machine is taken with the lock, and deliver carries out what follows: it tells those whose requests have ended,
// wakes writers, and lets those go on who wait for room.

const (
	// lifetime bounds a request whose context has no deadline.
	lifetime = time.Minute
	// sweep is how often requests are looked at whose deadlines may have passed.
	sweep = 250 * time.Millisecond
	// patience is what must be left of a request's time for it to be tried again.
	patience = 100 * time.Millisecond

	maxKindBytes    = 128
	maxEntityBytes  = 512
	maxPayloadBytes = 3 << 20 // The largest that a node can be told to take.
	maxTraceBytes   = 512
	maxKinds        = 1024
	maxShards       = 1 << 16
)

// Client asks and tells the entities of a cluster.
type Client struct {
	cfg     Config
	log     *slog.Logger
	trace   func(context.Context) string
	dial    func(ctx context.Context, address string) (net.Conn, error) // Nil for sockets.
	began   time.Time
	links   []*link
	cancel  context.CancelFunc
	running sync.WaitGroup
	closing sync.Once

	mu     sync.Mutex // Guards what follows. Held for steps of the machine, and never while anything is sent.
	broker *broker.Broker
	out    broker.Output
	room   chan struct{} // Closed, and replaced, when there is room for requests that found none.
	ready  chan struct{} // Closed when the first node is connected.
	isUp   bool
	why    error // Why a node could not be connected lately.
}

// Option is a collaborator that only code can give.
type Option func(*Client)

// WithLogger sets where the client logs: connections and their ends. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(c *Client) { c.log = l } }

// WithTrace sets a function that returns the traceparent of W3C of a context, empty for none, so that the spans of
// entities belong to the traces of this program. It is called for each request.
func WithTrace(f func(context.Context) string) Option { return func(c *Client) { c.trace = f } }

// WithDial sets what connects to the address of a gateway, in place of a socket: for a proxy, or for a test in virtual
// time.
func WithDial(f func(ctx context.Context, address string) (net.Conn, error)) Option {
	return func(c *Client) { c.dial = f }
}

// Open checks the configuration and begins to connect; it does not wait for that, see
// [Client.AwaitReady].
func Open(cfg Config, opts ...Option) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	c := &Client{
		cfg: cfg, log: slog.Default(), began: time.Now(), room: make(chan struct{}), ready: make(chan struct{}),
		broker: broker.New(broker.Config{
			Nodes: len(cfg.Addresses), Queued: cfg.Queued, Bytes: cfg.QueuedBytes, Shards: maxShards, Kinds: maxKinds, Patience: broker.Instant(patience),
		}),
	}
	for _, opt := range opts {
		opt(c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	for i, address := range cfg.Addresses {
		l, err := newLink(c, i, address)
		if err != nil {
			cancel()
			c.closeLinks()
			return nil, err
		}
		c.links = append(c.links, l)
	}
	for _, l := range c.links {
		// Owned by the client: ends with ctx, and Close waits for it.
		c.running.Go(func() { l.run(ctx) })
	}
	// Like the links.
	c.running.Go(func() { c.watch(ctx) })
	return c, nil
}

// Close ends all requests, those that no node has had with [ErrNotDelivered], and waits for every
// goroutine.
func (c *Client) Close() error {
	c.closing.Do(func() {
		c.step(func(broker.Instant) { c.broker.Close(&c.out) })
		c.cancel()
		c.closeLinks()
	})
	c.running.Wait()
	return nil
}

func (c *Client) closeLinks() {
	for _, l := range c.links {
		_ = l.conn.Close() // It returns an error for a second close only.
	}
}

// AwaitReady waits until a node is connected. The error of a context that ends before has the reason
// why none is.
func (c *Client) AwaitReady(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.why != nil {
			return fmt.Errorf("client: no node is connected: %w: %w", context.Cause(ctx), c.why)
		}
		return fmt.Errorf("client: no node is connected: %w", context.Cause(ctx))
	}
}

// Ask sends a message to an entity and returns its reply. The message is encoded as the kind demands,
// and is not changed after the call. The error is a [*MessageError].
func (c *Client) Ask(ctx context.Context, kind, id string, message []byte) (reply []byte, err error) {
	return c.do(ctx, &request{Request: broker.Request{Kind: kind, Entity: id, Payload: message}})
}

// Tell sends a message to an entity and returns when it is accepted: it is handled once, unless the
// host of the entity dies. The message is not changed after the call. The deadline of ctx bounds the waiting only.
// The error is a [*MessageError].
func (c *Client) Tell(ctx context.Context, kind, id string, message []byte) error {
	_, err := c.do(ctx, &request{Request: broker.Request{Kind: kind, Entity: id, Payload: message, Tell: true}})
	return err
}

// Caller leads typed clients to the entities of a kind.
func (c *Client) Caller(kind string) rpc.Caller { return caller{c, kind} }

type caller struct {
	c    *Client
	kind string
}

// Ask implements [rpc.Caller].
func (k caller) Ask(ctx context.Context, id string, call *rpc.Call) (*rpc.Reply, error) {
	message, err := call.Append(nil)
	if err != nil {
		return nil, &MessageError{k.kind, id, err.Error(), []error{ErrInvalid}}
	}
	b, err := k.c.Ask(ctx, k.kind, id, message)
	if err != nil {
		return nil, err
	}
	reply := new(rpc.Reply)
	if err := reply.Decode(b); err != nil {
		return nil, &MessageError{k.kind, id, "the reply: " + err.Error(), []error{ErrInvalid}}
	}
	return reply, nil
}

// Tell implements [rpc.Caller].
func (k caller) Tell(ctx context.Context, id string, call *rpc.Call) error {
	message, err := call.Append(nil)
	if err != nil {
		return &MessageError{k.kind, id, err.Error(), []error{ErrInvalid}}
	}
	return k.c.Tell(ctx, k.kind, id, message)
}

// request is a request, with what its goroutine waits on.
type request struct {
	broker.Request

	done chan broker.Result // Gets one result. Capacity one.
}

// do sends a request and waits for its end.
func (c *Client) do(ctx context.Context, r *request) ([]byte, error) {
	if fault := faultOf(&r.Request); fault != "" {
		return nil, &MessageError{r.Kind, r.Entity, fault, []error{ErrInvalid}}
	}
	if ctx.Err() != nil {
		return nil, &MessageError{r.Kind, r.Entity, "", []error{ErrNotDelivered, context.Cause(ctx)}}
	}
	r.done, r.Owner = make(chan broker.Result, 1), r
	if c.trace != nil {
		r.Trace = c.trace(ctx)
		r.Trace = r.Trace[:min(len(r.Trace), maxTraceBytes)]
	}
	r.Deadline = c.deadline(ctx)
	if err := c.submit(ctx, r); err != nil {
		return nil, err
	}
	var result broker.Result
	select {
	case result = <-r.done:
	case <-ctx.Done():
		c.step(func(broker.Instant) { c.broker.Cancel(&r.Request, &c.out) })
		result = <-r.done
	}
	if result.Code == broker.OK {
		return result.Payload, nil
	}
	errs := errsOf(result.Code)
	if cause := context.Cause(ctx); cause != nil {
		errs = append(errs, cause)
	}
	return nil, &MessageError{r.Kind, r.Entity, result.Detail, errs}
}

// submit hands a request to the machine, and waits for room if there is none.
func (c *Client) submit(ctx context.Context, r *request) error {
	for {
		c.mu.Lock()
		taken := c.broker.Submit(&r.Request, &c.out)
		c.deliver()
		room := c.room
		c.mu.Unlock()
		if taken {
			return nil
		}
		expired := time.NewTimer(time.Duration(r.Deadline - c.now()))
		select {
		case <-room:
			expired.Stop()
		case <-expired.C:
			return &MessageError{r.Kind, r.Entity, "too many requests wait in this client", []error{ErrOverloaded, ErrNotDelivered, context.DeadlineExceeded}}
		case <-ctx.Done():
			expired.Stop()
			return &MessageError{r.Kind, r.Entity, "too many requests wait in this client", []error{ErrOverloaded, ErrNotDelivered, context.Cause(ctx)}}
		}
	}
}

// deadline is when a request ends at the latest.
func (c *Client) deadline(ctx context.Context) broker.Instant {
	left := lifetime
	if at, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(at))
	}
	return c.now() + broker.Instant(max(left, 1))
}

// now is the time of the machine.
func (c *Client) now() broker.Instant { return broker.Instant(time.Since(c.began)) + 1 }

// step takes a step of the machine, and carries out what follows.
func (c *Client) step(f func(now broker.Instant)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.now())
	c.deliver()
}

// deliver carries out what follows from a step. The caller holds mu; nothing here waits.
func (c *Client) deliver() {
	for _, e := range c.out.Ended {
		e.Request.Owner.(*request).done <- e.Result
	}
	clear(c.out.Ended) // For the collector.
	for _, at := range c.out.Wake {
		c.links[at].wakeUp()
	}
	if c.out.Room {
		close(c.room)
		c.room = make(chan struct{})
	}
}

// watch ends the requests whose deadlines have passed, until ctx ends.
func (c *Client) watch(ctx context.Context) {
	tick := time.NewTicker(sweep)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.step(func(now broker.Instant) { c.broker.Overdue(now, &c.out) })
		case <-ctx.Done():
			return
		}
	}
}

// faultOf says what is wrong with a request; empty if nothing is.
func faultOf(r *broker.Request) string {
	switch {
	case r.Kind == "" || len(r.Kind) > maxKindBytes || !utf8.ValidString(r.Kind):
		return fmt.Sprintf("the name of the kind is not valid UTF-8 of 1 to %d bytes", maxKindBytes)
	case r.Entity == "":
		return "the id is empty"
	case len(r.Entity) > maxEntityBytes:
		return fmt.Sprintf("the id has %d bytes, at most %d are possible", len(r.Entity), maxEntityBytes)
	case !utf8.ValidString(r.Entity):
		return "the id is not valid UTF-8"
	case len(r.Payload) > maxPayloadBytes:
		return fmt.Sprintf("the message has %d bytes, at most %d are possible", len(r.Payload), maxPayloadBytes)
	default:
		return ""
	}
}
