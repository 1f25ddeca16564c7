// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"errors"
	"time"

	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
)

// The file begins with what is decided of one request alone ([Limits.Refuse], [Left]); then comes a call, in
// the order of the life of its requests.

// lifetime is the longest that a request may take.
const lifetime = time.Minute

// Instant is a time of the machine, since some beginning.
type Instant time.Duration

// Limits bound the requests of all clients of a node that have no outcome yet, and the bytes of their messages.
type Limits struct{ Requests, Bytes int }

// Reached reports whether a request goes beyond the limits. The counts have it already.
func (l Limits) Reached(requests, bytes int64) bool {
	return requests > int64(l.Requests) || bytes > int64(l.Bytes) && requests > 1
}

// Left is how long a request may take.
func Left(r *clientv1.Request) time.Duration {
	if micros := r.GetTimeoutMicros(); micros > 0 && micros < uint64(lifetime/time.Microsecond) {
		return time.Duration(micros) * time.Microsecond // Below a minute.
	}
	return lifetime
}

// Why the machine ends a call.
var (
	// ErrWindow says that the client has more requests without an outcome than its window.
	ErrWindow = errors.New("exchange: more requests without an outcome than the window")
	// ErrUnread says that more replies wait for the client to read them than may.
	ErrUnread = errors.New("exchange: too many replies wait for the client")
	// ErrStalled says that the client has left outcomes unread for too long.
	ErrStalled = errors.New("exchange: outcomes were left unread for too long")
)

// Config bounds a call.
type Config struct {
	Window       int           // How many requests may be open.
	UnreadBytes  int           // How many bytes of replies may wait to be read, unless they are of one reply.
	WriteTimeout time.Duration // How long a client may leave outcomes unread.
}

// Call is the machine of a call. O is an outcome.
type Call[O any] struct {
	cfg    Config
	outbox []O
	open   int     // Requests without an outcome that was sent.
	unread int     // Bytes of replies in the outbox.
	since  Instant // When the writer began to send; zero while it does not.
	told   bool    // The client was told that the node ends.
	half   bool    // The client sends no more.
	closed bool    // The writer has ended: outcomes are not for anybody any more.
	over   error   // Why the call ends; nil while it goes on.
}

// New returns the machine of a call that begins.
func New[O any](cfg Config) *Call[O] { return &Call[O]{cfg: cfg} }

// Enter takes a request, or ends the call since the client has too many.
func (c *Call[O]) Enter() error {
	if c.open >= c.cfg.Window {
		c.End(ErrWindow)
		return ErrWindow
	}
	c.open++
	return nil
}

// Put takes the outcome of a request, with the bytes of its reply. It reports false if it is for nobody any
// more: the request is done then.
func (c *Call[O]) Put(o O, bytes int) bool {
	if c.closed {
		return false
	}
	c.outbox = append(c.outbox, o)
	c.unread += bytes
	if c.unread > c.cfg.UnreadBytes && len(c.outbox) > 1 {
		c.End(ErrUnread)
	}
	return true
}

// Take hands the outcomes in the outbox to the writer, and takes the memory of what was taken before. Going says
// that the client must be told, with the first of them, that the node ends.
func (c *Call[O]) Take(before []O, ending bool) (taken []O, going bool) {
	clear(before)
	taken = c.outbox
	c.outbox, c.unread = before[:0], 0
	going = ending && !c.told
	c.told = c.told || going
	return taken, going
}

// Sending notes that the writer gives a message to the connection, which may take until the client reads.
func (c *Call[O]) Sending(now Instant) { c.since = now }

// Sent notes that the connection has taken the message, with so many outcomes.
func (c *Call[O]) Sent(outcomes int) {
	c.since = 0
	c.open -= outcomes
}

// Half notes that the client sends no more.
func (c *Call[O]) Half() { c.half = true }

// Finished reports whether the client sends no more, and all requests have their outcomes. A client that was
// told that the node ends sends no more by itself: what it had sent before that is sent back.
func (c *Call[O]) Finished() bool { return c.open == 0 && c.half }

// Look ends the call of a client that does not read.
func (c *Call[O]) Look(now Instant) {
	if c.since != 0 && time.Duration(now-c.since) >= c.cfg.WriteTimeout {
		c.End(ErrStalled)
	}
}

// End ends the call, if it has not ended. It reports whether it had not.
func (c *Call[O]) End(why error) bool {
	if c.over != nil {
		return false
	}
	c.over = why
	return true
}

// Over returns why the call has ended, nil while it goes on.
func (c *Call[O]) Over() error { return c.over }

// Abandon returns the outcomes that nobody gets, when the writer has ended. Those that come later are done at
// once.
func (c *Call[O]) Abandon() []O {
	rest := c.outbox
	c.outbox, c.closed = nil, true
	return rest
}

// Open returns how many requests are open, and how many bytes of replies wait.
func (c *Call[O]) Open() (requests, bytes int) { return c.open, c.unread }
