// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// size is the length that the messages of these tests claim.
const size = 64

// paced returns a sender that sends a message each millisecond of virtual time. In the end
// it claims to have sent some messages more, which are lost.
func paced(found *Tally, senders int, lost uint64) func(context.Context, uint32, *atomic.Bool) (uint64, error) {
	return func(ctx context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
		r := found.Receiver(senders, size)
		for !stop.Load() {
			n++
			r.Take(sender, n, size)
			if err := Pause(ctx, time.Millisecond); err != nil {
				return n, err
			}
		}
		return n + lost, nil
	}
}

// Two senders with a thousand messages a second each are two thousand a second.
func TestFloodMeasuresTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found Tally
		out, err := Flood{Senders: 2, Time: time.Second, Send: paced(&found, 2, 0), Mark: Marks(found.Totals, NoCPU)}.Run(t.Context())
		require.NoError(t, err)
		require.InEpsilon(t, 2000, out.Values["rate"], 0.002)
		require.LessOrEqual(t, out.Values["stall"], 20.0)
		require.True(t, out.Correct())
	})
}

// Sent messages that do not arrive within the limit are lost.
func TestFloodCountsWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found Tally
		out, err := Flood{Senders: 1, Time: time.Second, Send: paced(&found, 1, 7), Mark: Marks(found.Totals, NoCPU)}.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, uint64(7), out.Lost)
	})
}

// A pause in the middle of the measuring time is a stall.
func TestFloodNoticesAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found Tally
		send := paced(&found, 1, 0)
		out, err := Flood{
			Senders: 1, Time: 2 * time.Second, Mark: Marks(found.Totals, NoCPU),
			Send: func(ctx context.Context, sender uint32, _ *atomic.Bool) (uint64, error) {
				var half atomic.Bool
				time.AfterFunc(time.Second, func() { half.Store(true) })
				n, err := send(ctx, sender, &half)
				return n, errors.Join(err, Pause(ctx, 3*time.Second))
			},
		}.Run(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 1500, out.Values["stall"], 50)
		require.True(t, out.Correct())
	})
}

// A sender that fails ends the run with its error.
func TestFloodEndsWithItsSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found Tally
		_, err := Flood{
			Senders: 1, Time: time.Second, Mark: Marks(found.Totals, NoCPU),
			Send: func(context.Context, uint32, *atomic.Bool) (uint64, error) { return 0, errors.New("no way") },
		}.Run(t.Context())
		require.ErrorContains(t, err, "no way")
	})
}

// Nine of ten answers take a millisecond and the tenth takes eleven: a pause of twenty
// milliseconds for ten answers.
func TestAskingMeasuresLatencyAndRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found Tally
		r := found.Receiver(1, size)
		out, err := Asking{
			Askers: 1, Time: 10 * time.Second, Mark: Marks(found.Totals, NoCPU),
			Ask: func(ctx context.Context, asker uint32, seq uint64) error {
				r.Take(asker, seq, size)
				if seq%10 == 0 {
					return Pause(ctx, 11*time.Millisecond)
				}
				return Pause(ctx, time.Millisecond)
			},
		}.Run(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 1000, out.Values["p50"], 1)
		require.InDelta(t, 11000, out.Values["p99"], 1)
		require.InEpsilon(t, 500, out.Values["rate"], 0.01)
		require.True(t, out.Correct())
	})
}

// In turns answers take one millisecond and three.
func TestAskingComparesInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found Tally
		r, turns := found.Receiver(1, size), []bool(nil)
		var takes atomic.Int64 // what an answer takes, a time.Duration
		takes.Store(int64(time.Millisecond))
		out, err := Asking{
			Askers: 1, Time: 10 * time.Second, Mark: Marks(found.Totals, NoCPU),
			Ask: func(ctx context.Context, asker uint32, seq uint64) error {
				r.Take(asker, seq, size)
				return Pause(ctx, time.Duration(takes.Load()))
			},
			Pairs: 3,
			Other: func(on bool) {
				turns = append(turns, on)
				takes.Store(int64(time.Millisecond))
				if on {
					takes.Store(int64(3 * time.Millisecond))
				}
			},
		}.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, []bool{false, true, false, true, false, true}, turns)
		require.InDelta(t, 1000, out.Values["first-p50"], 1)
		require.InDelta(t, 1000, out.Values["first-p99"], 1)
		require.InDelta(t, 3000, out.Values["p50"], 1)
		require.InDelta(t, 3000, out.Values["p99"], 1)
		require.InDelta(t, 3, out.Values["p99-ratio"], 0.01)
		require.True(t, out.Correct())
	})
}

// A wrong answer ends the run and is named.
func TestAskingEndsWithAWrongAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found Tally
		_, err := Asking{
			Askers: 1, Time: time.Second, Mark: Marks(found.Totals, NoCPU),
			Ask: func(context.Context, uint32, uint64) error { return errors.New("of somebody else") },
		}.Run(t.Context())
		require.ErrorContains(t, err, "ask 1 of asker 0: of somebody else")
	})
}

// The first questions, which only wake the entities, are not counted, and the count
// never falls below zero.
func TestWithoutTakesFirstQuestionsOut(t *testing.T) {
	for _, c := range []struct{ received, primed, want uint64 }{{10, 4, 6}, {4, 4, 0}, {3, 4, 0}} {
		at := Without(c.primed, func(context.Context) (Mark, error) {
			return Mark{Totals: Totals{Received: c.received}}, nil
		})
		m, err := at(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.want, m.Totals.Received)
	}
}

func TestDurationsAsNumbers(t *testing.T) {
	require.InDelta(t, 1500, Microseconds(1500*time.Microsecond), 0)
	require.InDelta(t, 1.5, Milliseconds(1500*time.Microsecond), 0)
}
