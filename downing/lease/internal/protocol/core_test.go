// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/downing/lease/internal/protocol"
)

const second = time.Second

func granted(c *protocol.Core, token uint64) protocol.Input {
	return protocol.Input{Kind: protocol.Answered, Result: protocol.Result{Granted: true, Owner: c.Owner(), Token: token, TTL: ttl}}
}

func failed(text string) protocol.Input {
	return protocol.Input{Kind: protocol.Answered, Result: protocol.Result{Fault: errors.New(text)}}
}

// holding returns a core that holds the lease with token 5 since the call at 0.
func holding(t *testing.T) *protocol.Core {
	t.Helper()
	c := protocol.New(config("a"))
	require.Equal(t, protocol.Ask{Question: protocol.Take, Owner: "a/0"}, c.Step(protocol.Input{Kind: protocol.Want}, 0))
	require.Zero(t, c.Step(granted(c, 5), second))
	token, ok := c.Token(second)
	require.True(t, ok)
	require.EqualValues(t, 5, token)
	return c
}

func TestAHoldingEndsBeforeTheLeaseCountedFromTheCall(t *testing.T) {
	c := holding(t)
	require.Equal(t, 9500*time.Millisecond, c.Until())
	_, ok := c.Token(c.Until() - 1)
	require.True(t, ok)
	_, ok = c.Token(c.Until())
	require.False(t, ok, "without a step in between")
	c.Step(protocol.Input{}, c.Until())
	require.Equal(t, protocol.Idle, c.Phase())
	require.Contains(t, c.Reason(), "lost: no answer before the end of the lease")
}

func TestARenewalCountsFromItsCall(t *testing.T) {
	c := holding(t)
	require.Equal(t, protocol.Take, c.Step(protocol.Input{}, 2*second).Question)
	c.Step(granted(c, 5), 3*second)
	require.Equal(t, 11500*time.Millisecond, c.Until())
}

func TestAHoldingOutlivesFailuresUntilItsEnd(t *testing.T) {
	c := holding(t)
	c.Step(protocol.Input{}, 2*second)
	c.Step(failed("refused connection"), 3*second)
	_, ok := c.Token(3 * second)
	require.True(t, ok)
	at, due := c.Wake()
	require.True(t, due)
	require.Equal(t, 3500*time.Millisecond, at)
	require.Equal(t, protocol.Take, c.Step(protocol.Input{}, at).Question)
	c.Step(failed("refused connection again"), 4*second)
	require.Equal(t, protocol.Take, c.Step(protocol.Input{}, c.Until()-1).Question)
	require.Equal(t, protocol.Held, c.Phase())
	c.Step(protocol.Input{}, c.Until())
	require.Contains(t, c.Reason(), "refused connection again")
}

func TestWhatEndsAHolding(t *testing.T) {
	for name, tc := range map[string]struct {
		result protocol.Result
		reason string
		held   bool
	}{
		"another owner granted": {protocol.Result{Granted: true, Owner: "b", Token: 6, TTL: ttl}, `another owner, "b"`, false},
		"refused":               {protocol.Result{Owner: "b"}, `held by "b"`, false},
		"a token that shrank":   {protocol.Result{Granted: true, Owner: "a/0", Token: 4, TTL: ttl}, "the token 4, after 5", false},
		"no token":              {protocol.Result{Granted: true, Owner: "a/0", TTL: ttl}, "the token 0, after 5", false},
		"another token":         {protocol.Result{Granted: true, Owner: "a/0", Token: 7, TTL: ttl}, "so it was lost meanwhile", false},
		"over already":          {protocol.Result{Granted: true, Owner: "a/0", Token: 5, TTL: second / 2}, "when the lease had ended", false},
		"a negative time":       {protocol.Result{Granted: true, Owner: "a/0", Token: 5, TTL: -ttl}, "when the lease had ended", false},
		"a fault":               {protocol.Result{Fault: errors.New("down")}, "down", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := holding(t)
			c.Step(protocol.Input{}, 2*second)
			c.Step(protocol.Input{Kind: protocol.Answered, Result: tc.result}, 3*second)
			_, ok := c.Token(3 * second)
			require.Equal(t, tc.held, ok)
			require.Contains(t, c.Reason(), tc.reason)

			// The same answers begin no holding either, but for the token above the last.
			d := protocol.New(config("a"))
			d.Step(protocol.Input{Kind: protocol.Want}, 0)
			d.Step(protocol.Input{Kind: protocol.Answered, Result: tc.result}, second)
			_, ok = d.Token(second)
			require.Equal(t, tc.result.Owner == "a/0" && tc.result.Token > 0 && tc.result.TTL == ttl, ok)
		})
	}
}

func TestAnAnswerBeyondTheLimitDoesNotCount(t *testing.T) {
	c := protocol.New(config("a"))
	c.Step(protocol.Input{Kind: protocol.Want}, 0)
	require.Zero(t, c.Step(granted(c, 5), 1500*time.Millisecond))
	require.Equal(t, protocol.Waiting, c.Phase())
	require.Equal(t, "no answer within 1.5s", c.Reason())
	require.Zero(t, c.Since())
	require.Equal(t, protocol.Take, c.Step(protocol.Input{}, 2*second).Question)
	require.Zero(t, c.Step(protocol.Input{}, time.Hour), "a call that does not return is the last")
}

// What a call comes to after the holding was lost does not hide why it was lost.
func TestTheReasonOfALossStays(t *testing.T) {
	c := holding(t)
	require.Equal(t, protocol.Take, c.Step(protocol.Input{}, c.Until()-second).Question)
	c.Step(protocol.Input{}, c.Until())
	require.Equal(t, "lost: no answer before the end of the lease: granted", c.Reason())
	c.Step(protocol.Input{}, c.Until()+second)
	c.Step(failed("no answer"), c.Until()+2*second)
	require.Equal(t, "lost: no answer before the end of the lease: granted", c.Reason())
}

func TestATokenThatShrinksIsNeverHeld(t *testing.T) {
	c := holding(t)
	c.Step(protocol.Input{}, c.Until())
	require.Equal(t, protocol.Take, c.Step(protocol.Input{Kind: protocol.Want}, 20*second).Question)
	c.Step(granted(c, 4), 20*second)
	require.Equal(t, protocol.Waiting, c.Phase())
	require.Equal(t, "the store gave the token 4, after 5", c.Reason())
}

// After a Give, which may reach the store late, the lease is asked for in another name; the
// store that has not heard of it refuses, and is asked again.
func TestALateGiveCannotEndTheNextHolding(t *testing.T) {
	c := holding(t)
	require.Equal(t, protocol.Ask{Question: protocol.Give, Owner: "a/0"}, c.Step(protocol.Input{Kind: protocol.Drop}, second))
	_, ok := c.Token(second)
	require.False(t, ok)
	c.Step(failed("no answer"), 2*second)
	require.True(t, c.Untold())
	require.Equal(t, protocol.Ask{Question: protocol.Take, Owner: "a/1"}, c.Step(protocol.Input{Kind: protocol.Want}, 2*second))
	c.Step(protocol.Input{Kind: protocol.Answered, Result: protocol.Result{Owner: "a/0"}}, 3*second)
	require.Equal(t, protocol.Waiting, c.Phase())
	require.Contains(t, c.Reason(), "has not heard yet")
}

func TestADropWhileACallIsUnderWayGivesBackAfterIt(t *testing.T) {
	c := protocol.New(config("a"))
	c.Step(protocol.Input{Kind: protocol.Want}, 0)
	require.Zero(t, c.Step(protocol.Input{Kind: protocol.Drop}, 1))
	require.Equal(t, protocol.Give, c.Step(granted(c, 1), 2).Question)
	c.Step(protocol.Input{Kind: protocol.Answered}, 3)
	require.Equal(t, protocol.Idle, c.Phase())
	require.False(t, c.Untold())
}

// Whoever needs the lease to last asks to have it confirmed: by a call that begins later. A
// holding that rests is not renewed, and ends.
func TestAHoldingIsConfirmedAndThenRests(t *testing.T) {
	c := holding(t)
	before := c.Granted()
	require.Equal(t, protocol.Take, c.Step(protocol.Input{Kind: protocol.Confirm}, second).Question)
	require.Equal(t, before, c.Granted())
	require.Zero(t, c.Step(protocol.Input{Kind: protocol.Confirm}, second+1), "a call is under way that began before")
	require.Equal(t, protocol.Take, c.Step(granted(c, 5), second+2).Question)
	require.Equal(t, second, c.Granted())
	c.Step(granted(c, 5), second+3)
	require.Equal(t, second+2, c.Granted())
	require.Zero(t, c.Step(protocol.Input{Kind: protocol.Rest}, 2*second))
	at, due := c.Wake()
	require.True(t, due)
	require.Equal(t, c.Until(), at)
	require.Zero(t, c.Step(protocol.Input{}, at))
	require.Equal(t, protocol.Idle, c.Phase())
	require.Zero(t, c.Step(protocol.Input{Kind: protocol.Rest}, at))
	require.Zero(t, c.Step(protocol.Input{Kind: protocol.Confirm}, at), "there is nothing to confirm")
}

// Whatever comes in whatever order: a holding has an end that no input but a grant of the same
// token moves, and one call is under way at most.
func TestLawsOfTheCore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := protocol.New(config("a"))
		var now time.Duration
		calling := false
		var floor uint64
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += time.Duration(rapid.Int64Range(0, int64(3*second)).Draw(rt, "passes"))
			in := protocol.Input{Kind: rapid.SampledFrom([]protocol.Kind{
				protocol.Tick, protocol.Want, protocol.Drop, protocol.Answered, protocol.Confirm, protocol.Rest,
			}).Draw(rt, "kind")}
			if in.Kind == protocol.Answered {
				if !calling {
					continue
				}
				calling = false
				in.Result = protocol.Result{
					Granted: rapid.Bool().Draw(rt, "granted"), Owner: rapid.SampledFrom([]string{c.Owner(), "a/0", "b", ""}).Draw(rt, "owner"),
					Token: rapid.Uint64Range(0, 9).Draw(rt, "token"), TTL: rapid.SampledFrom([]time.Duration{0, second, ttl, time.Hour}).Draw(rt, "ttl"),
				}
			}
			before, had := c.Token(now)
			until := c.Until()
			ask := c.Step(in, now)
			if ask.Question != protocol.None {
				require.False(rt, calling)
				calling = true
			}
			token, has := c.Token(now)
			switch {
			case !has:
				continue
			case had:
				require.Equal(rt, before, token)
				require.True(rt, c.Until() == until || in.Kind == protocol.Answered && in.Result.Granted)
			default:
				require.Equal(rt, protocol.Answered, in.Kind)
			}
			require.GreaterOrEqual(rt, token, floor)
			require.LessOrEqual(rt, c.Until(), now+protocol.Usable(ttl))
			floor = token
		}
	})
}
