// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
)

// From top to bottom: the vocabulary (phases, inputs, questions, results); Step, which takes
// each input to its own method; what an answer means while the lease is waited for and while
// it is held; the end of a holding. A Core has one question under way at most.

// Phase is what a keeper is doing.
type Phase uint8

// The phases. The zero value is Idle.
const (
	// Idle: the lease is neither held nor wanted.
	Idle Phase = iota
	// Waiting: the lease is wanted, and the store has given no answer that decides.
	Waiting
	// Held: the lease is held until [Core.Until].
	Held
	// Releasing: the lease is no longer held, and the store is being told.
	Releasing
)

// Question is what the store is asked.
type Question uint8

// The questions. The zero value is None.
const (
	// None: nothing is asked.
	None Question = iota
	// Take asks for the lease, or for more time if it is held.
	Take
	// Give gives the lease back.
	Give
)

// Ask is one call to the store.
type Ask struct {
	Question Question
	Owner    string // in whose name
}

// Kind is the kind of an [Input].
type Kind uint8

// The kinds of inputs. The zero value is Tick.
const (
	// Tick: time has passed.
	Tick Kind = iota
	// Want: somebody waits for the lease.
	Want
	// Drop: nobody wants the lease any more.
	Drop
	// Answered: the call that was under way has returned.
	Answered
	// Confirm: whoever holds the lease is to ask for it once more, at once.
	Confirm
	// Rest: what is held is not renewed any more, until somebody waits for it again.
	Rest
)

// Result is how a call to the store has ended.
type Result struct {
	// Granted says that the lease belongs to Owner by this very call; else it was refused,
	// for the lease belongs to Owner.
	Granted bool
	// Owner is the owner that the store names.
	Owner string
	// Token is the fencing token of the holding.
	Token uint64
	// TTL is how long the store keeps the lease from the moment of the call on.
	TTL time.Duration
	// Fault, if it is not nil, says that the call has no result: what the store did is unknown.
	Fault error
}

// Input is what happened.
type Input struct {
	Kind   Kind
	Result Result // of an Answered
}

// Config is what a core is made with.
type Config struct {
	// Owner begins the names under which the lease is asked for. No other core has it.
	Owner string
	// TTL is how long the store is to keep the lease after each call that it grants.
	TTL time.Duration
	// Renew is the time from one call that was granted to the next one.
	Renew time.Duration
	// Retry is the pause after a call whose result is unknown.
	Retry time.Duration
	// Limit is how long one call may take.
	Limit time.Duration
}

// Usable returns how much of the life of a lease its holder uses: 19 of 20 parts. The rest
// is for clocks that do not run at the same rate.
func Usable(ttl time.Duration) time.Duration { return ttl - ttl/20 }

// Core keeps one lease. Use [New]. It is not safe for concurrent use. All times are readings
// of the clock of this process, which never goes back.
type Core struct {
	config  Config
	attempt int // how often the lease was given back; a part of the owner's name

	phase  Phase
	since  time.Duration // when the phase began
	reason string        // why the phase began, or what keeps it from ending
	holder string        // who had the lease, by the last refusal; empty: nobody was named

	token uint64        // of the holding, while it lasts
	until time.Duration // the end of the holding
	floor uint64        // the highest token that a store has shown
	maybe bool          // the store may believe that this core holds the lease

	granted   time.Duration // when the last call that was granted began
	confirmed time.Duration // when the holding was last to be confirmed
	resting   bool          // the holding is not renewed

	asked   Question      // the call under way
	sent    time.Duration // when that call began
	overdue bool          // the limit of that call is over, and its result will not count
	next    time.Duration // the earliest moment of the next call
}

// New returns a core that is idle.
func New(config Config) *Core { return &Core{config: config} }

// Phase returns what the core is doing, as of the last Step.
func (c *Core) Phase() Phase { return c.phase }

// Since returns when the phase began.
func (c *Core) Since() time.Duration { return c.since }

// Reason says in words why the phase began, or what keeps it from ending.
func (c *Core) Reason() string { return c.reason }

// Holder returns who had the lease when it was last refused; empty if it was not, or if it was
// given back.
func (c *Core) Holder() string { return c.holder }

// Token returns the fencing token of the holding, and whether the lease is held at a moment.
// It needs no Step before: a process that was frozen gets the right answer at once.
func (c *Core) Token(now time.Duration) (uint64, bool) {
	if c.phase != Held || now >= c.until {
		return 0, false
	}
	return c.token, true
}

// Until returns the end of the holding.
func (c *Core) Until() time.Duration { return c.until }

// Granted returns when the last call that was granted began: from that moment on the store gives
// the lease to nobody else for its TTL.
func (c *Core) Granted() time.Duration { return c.granted }

// Untold reports whether the store may believe that this core holds the lease.
func (c *Core) Untold() bool { return c.maybe }

// Wake returns when the next Tick is due, and false if none is.
func (c *Core) Wake() (time.Duration, bool) {
	var at time.Duration
	found := false
	earliest := func(t time.Duration) {
		if !found || t < at {
			at, found = t, true
		}
	}
	if c.phase == Held {
		earliest(c.until)
	}
	switch {
	case c.asked != None && !c.overdue:
		earliest(c.sent + c.config.Limit)
	case c.asked == None && c.phase != Idle && !c.rests():
		earliest(c.next)
	}
	return at, found
}

// Step takes one input and returns what to ask the store. The call must be answered by an
// Answered, however late.
func (c *Core) Step(in Input, now time.Duration) Ask {
	if c.asked != None && !c.overdue && now >= c.sent+c.config.Limit {
		c.overdue = true
		c.unknown(now, fmt.Sprintf("no answer within %v", c.config.Limit))
	}
	if c.phase == Held && now >= c.until {
		c.lose(now, "no answer before the end of the lease: "+c.reason)
	}
	switch in.Kind {
	case Want:
		c.want(now)
	case Drop:
		c.drop(now)
	case Confirm:
		c.confirm(now)
	case Rest:
		c.resting = c.phase == Held
	case Answered:
		c.answered(in.Result, now)
	case Tick:
	}
	return c.ask(now)
}

// Owner returns the name in which the lease is asked for. It is another one after each Give,
// which may reach the store late and would end the next holding otherwise.
func (c *Core) Owner() string { return fmt.Sprintf("%s/%d", c.config.Owner, c.attempt) }

// ask begins the next call if one is due.
func (c *Core) ask(now time.Duration) Ask {
	if c.asked != None || c.phase == Idle || c.rests() || now < c.next {
		return Ask{}
	}
	a := Ask{Question: Take, Owner: c.Owner()}
	if c.phase == Releasing {
		a.Question = Give
		c.attempt++
	} else {
		c.maybe = true
	}
	c.asked, c.sent, c.overdue = a.Question, now, false
	return a
}

func (c *Core) enter(p Phase, now time.Duration, reason string) {
	c.phase, c.since, c.reason = p, now, reason
}

// rests reports whether a holding is left to end by itself.
func (c *Core) rests() bool { return c.phase == Held && c.resting }

// confirm has the next call begin at once, or after the call under way.
func (c *Core) confirm(now time.Duration) {
	c.resting = false
	if c.phase == Held {
		c.confirmed, c.next = now, now
	}
}

func (c *Core) want(now time.Duration) {
	c.resting = false
	if c.phase == Idle || c.phase == Releasing {
		c.holder, c.next = "", now
		reason := "the store was asked for the first time"
		if c.overdue {
			reason = fmt.Sprintf("no answer within %v, and the call has not returned", c.config.Limit)
		}
		c.enter(Waiting, now, reason)
	}
}

// drop ends the holding here before the store hears of it.
func (c *Core) drop(now time.Duration) {
	if c.phase == Idle || c.phase == Releasing {
		return
	}
	c.token, c.next = 0, now
	c.enter(Releasing, now, "given back")
	if !c.maybe {
		c.enter(Idle, now, "no longer wanted")
	}
}

// answered takes the result of the call under way. A result beyond the limit does not count.
func (c *Core) answered(r Result, now time.Duration) {
	asked := c.asked
	c.asked = None
	switch {
	case c.overdue:
	case asked == Give:
		c.given(r, now)
	case c.phase == Releasing: // The call began before the lease was dropped.
		c.next = now
	case r.Fault != nil:
		c.unknown(now, r.Fault.Error())
	default:
		c.judge(r, now)
	}
	c.overdue = false
}

// given ends the release. If the store was not reached, the lease ends there by itself.
func (c *Core) given(r Result, now time.Duration) {
	c.maybe = r.Fault != nil
	if c.phase != Releasing {
		return
	}
	reason := "given back"
	if r.Fault != nil {
		reason = "given back here, and the store could not be told: " + r.Fault.Error()
	}
	c.enter(Idle, now, reason)
}

// unknown keeps what is so, and asks again later: a holding lasts until its end, which no
// answer has moved.
func (c *Core) unknown(now time.Duration, reason string) {
	if c.phase == Idle {
		return // It matters to nobody any more.
	}
	c.reason, c.next = reason, now+c.config.Retry
	if c.phase == Releasing {
		c.enter(Idle, now, "given back here, and the store could not be told: "+reason)
	}
}

// judge takes a result that came in time while the lease is wanted or held.
func (c *Core) judge(r Result, now time.Duration) {
	until := c.sent + Usable(min(r.TTL, c.config.TTL))
	switch {
	case r.Owner != c.Owner() && r.Granted:
		c.refused(r.Owner, now, fmt.Sprintf("the store granted the lease to another owner, %q", field.Clip(r.Owner)))
	case strings.HasPrefix(r.Owner, c.config.Owner+"/") && !r.Granted:
		c.doubt(now, "the store has not heard yet that this keeper gave the lease back")
	case !r.Granted:
		c.maybe = false
		c.refused(r.Owner, now, fmt.Sprintf("held by %q", field.Clip(r.Owner)))
	case r.Token == 0 || r.Token < c.floor:
		c.doubt(now, fmt.Sprintf("the store gave the token %d, after %d", r.Token, c.floor))
	case c.phase == Held && r.Token != c.token:
		c.floor = r.Token
		c.doubt(now, fmt.Sprintf("the store gave the token %d for a lease held with %d, so it was lost meanwhile", r.Token, c.token))
	case until <= now:
		c.doubt(now, "the answer came when the lease had ended")
	default:
		c.grant(r.Token, until, now)
	}
}

func (c *Core) grant(token uint64, until, now time.Duration) {
	if c.phase != Held {
		c.enter(Held, now, "granted")
	}
	c.reason = "granted"
	c.token, c.floor, c.holder = token, token, ""
	c.until, c.granted = until, c.sent
	c.next = c.sent + c.config.Renew
	if c.granted < c.confirmed {
		c.next = now
	}
}

// doubt takes an answer that makes no sense: no holding outlives it, and none begins.
func (c *Core) doubt(now time.Duration, reason string) {
	if c.phase == Held {
		c.lose(now, reason)
		return
	}
	c.unknown(now, reason)
}

func (c *Core) refused(holder string, now time.Duration, reason string) {
	if c.phase == Held {
		c.lose(now, reason)
	} else {
		c.enter(Idle, now, reason)
	}
	c.holder = holder
}

// lose ends the holding against the will of its holder.
func (c *Core) lose(now time.Duration, reason string) {
	c.token, c.holder = 0, ""
	c.enter(Idle, now, "lost: "+reason)
}
