// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
)

// What becomes of a write whose replica drops what was written: it goes on, with the same change, and is never made
// again; when it cannot go on it ends as unconfirmed.

// changing returns a machine whose write of one element has been sent to two puppets, and the change.
func changing(t *testing.T) (*fleet, table.Change) {
	t.Helper()
	f := alone(t, 3, 2, stable(1, 1, 2, 3))
	change := f.at(2).add(1)
	f.at(2).command(protocol.Write{Op: 1, Change: change, Stamp: 1, Turn: 1, Level: majority, Limit: 10 * time.Second})
	mustHear[protocol.Deltas](f.at(1))
	mustHear[protocol.Deltas](f.at(3))
	return f, change
}

// A replica that is none any more goes on with its write at those that are: they are sent the change that the others
// may have, under its number.
func TestAWriteGoesOnWithTheHomesOfThen(t *testing.T) {
	f, change := changing(t)
	now := stable(3, 1, 3)
	f.at(1).say(2, now, protocol.Hello{})
	require.Zero(t, f.at(2).table.Len())
	require.Empty(t, f.at(2).done)
	for _, i := range []int{1, 3} {
		again := mustHear[protocol.Deltas](f.at(i))
		require.Equal(t, []table.Change{change}, again.Changes)
		require.EqualValues(t, 1, again.Stamp, "the generation in which it was made")
		f.at(i).say(2, now, protocol.DeltasTaken{Seq: again.Seq})
	}
	require.Len(t, f.at(2).done, 1)
	require.Equal(t, protocol.Confirmed, f.at(2).done[0].Verdict)
}

// A write that the machine hears of when the change is dropped already goes on as well.
func TestAWriteIsKeptAsideThoughTheMachineComesLater(t *testing.T) {
	f := alone(t, 3, 2, stable(1, 1, 2, 3))
	change := f.at(2).add(1)
	now := stable(3, 1, 3)
	f.at(1).say(2, now, protocol.Hello{})
	require.Zero(t, f.at(2).table.Len())
	f.at(2).command(protocol.Write{Op: 1, Change: change, Stamp: 1, Turn: 1, Level: majority, Limit: 10 * time.Second})
	require.Empty(t, f.at(2).done)
	for _, i := range []int{1, 3} {
		f.at(i).say(2, now, protocol.DeltasTaken{Seq: mustHear[protocol.Deltas](f.at(i)).Seq})
	}
	require.Len(t, f.at(2).done, 1)
	require.Equal(t, protocol.Confirmed, f.at(2).done[0].Verdict)
}

// What was kept aside is in the table again as soon as the replica has caught up.
func TestWhatIsKeptAsideIsMergedAfterCatchingUp(t *testing.T) {
	f, change := changing(t)
	f.at(1).say(2, stable(3, 1, 3), protocol.Hello{})
	require.Zero(t, f.at(2).table.Len())
	back := joint(stable(3, 1, 3), 1, 2, 3)
	f.at(1).sayCaught(2, back, protocol.Hello{})
	f.run(time.Second)
	require.Zero(t, f.at(2).table.Len(), "it has not caught up")
	f.at(1).sayCaught(2, back, protocol.Groups{Pass: mustHear[protocol.Compare](f.at(1)).Pass, Same: true})
	require.True(t, f.at(2).Caught(0))
	e, _ := f.at(2).table.Get("k")
	require.Equal(t, change.To, e.Versions.Of(change.Origin))
	require.Empty(t, f.at(2).done)
}

// After a sweep that the replica has missed, or in another lineage, what was kept aside may be part of what fell: it is
// sent to nobody, and the write ends with its time, as unconfirmed.
func TestWhatIsKeptAsideComesBackOverNoSweep(t *testing.T) {
	swept, other := stable(4, 1, 3), stable(1, 1, 3)
	swept.Swept = 4
	other.Lineage = protocol.Lineage{Turn: 2, ID: 9}
	for name, now := range map[string]*protocol.Register{"sweep": swept, "lineage": other} {
		t.Run(name, func(t *testing.T) {
			f, _ := changing(t)
			f.at(1).say(2, now, protocol.Hello{})
			f.run(5 * time.Second)
			for _, i := range []int{1, 3} {
				for _, l := range f.at(i).heard {
					switch l.message.Body.(type) {
					case protocol.Deltas, protocol.Put:
						require.False(t, l.message.Gen == now.Gen && l.message.Lineage == now.Lineage, "%T", l.message.Body)
					}
				}
			}
			require.Empty(t, f.at(2).done)
			f.run(6 * time.Second)
			require.Equal(t, protocol.Unconfirmed, f.at(2).done[0].Verdict)
		})
	}
}

// A sweep that retires an origin folds what was beside a change, and not the change: a write that is under way goes on.
func TestASweepThatRetiresAnOriginEndsNoWrite(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 3, 2, reg)
	f.at(1).sayCaught(2, reg, protocol.Hello{})
	f.run(time.Second)
	f.at(1).sayCaught(2, reg, protocol.Groups{Pass: mustHear[protocol.Compare](f.at(1)).Pass, Same: true})
	gone := protocol.OriginOf(9)
	beside := table.Entry{Key: "k", State: table.Live, Type: elements, Value: crdt.GSet[uint64]{}.Add(7).Settled(), Versions: table.Versions{{Origin: gone, Count: 1}}}
	f.at(1).say(2, reg, protocol.Put{Op: 1, Stamp: 1, Entries: []table.Entry{beside}})
	change := f.at(2).add(1)
	f.at(2).command(protocol.Write{Op: 1, Change: change, Stamp: 1, Turn: 1, Level: majority, Limit: 10 * time.Second})
	f.at(1).sayCaught(2, reg, protocol.Sweep{Gen: 1, Retired: []crdt.Origin{gone}})
	require.False(t, mustHear[protocol.SweepReply](f.at(1)).Veto)
	swept := stable(2, 1, 2, 3)
	swept.Swept, swept.Retired = 2, []crdt.Origin{gone}
	f.at(1).sayCaught(2, swept, protocol.Hello{})
	require.NotZero(t, f.at(2).table.Len(), "it took part in the sweep")
	require.Empty(t, f.at(2).done)
	f.at(1).sayCaught(2, swept, protocol.PutTaken{Op: 1})
	require.Len(t, f.at(2).done, 1)
	require.Equal(t, protocol.Confirmed, f.at(2).done[0].Verdict)
}

// A delete whose replica drops the tombstone goes on with it, as one of the generation in which it began.
func TestADeleteGoesOnWithTheHomesOfThen(t *testing.T) {
	f := alone(t, 3, 2, stable(1, 1, 2, 3))
	f.at(2).command(protocol.Delete{Op: 1, Key: "k", Level: majority, Limit: 10 * time.Second})
	now := stable(3, 1, 3)
	f.at(1).say(2, now, protocol.Hello{})
	require.Empty(t, f.at(2).done)
	for _, i := range []int{1, 3} {
		again := mustHear[protocol.Put](f.at(i))
		require.Equal(t, table.Deleted, again.Entries[0].State)
		require.EqualValues(t, 1, again.Stamp)
		f.at(i).say(2, now, protocol.PutTaken{Op: 1})
	}
	require.Len(t, f.at(2).done, 1)
	require.Equal(t, protocol.Confirmed, f.at(2).done[0].Verdict)
}

// The other replicas may have dropped a tombstone that was marked before a delete began, and taken in values since: by
// the sweep that drops it the delete is not confirmed, but made anew.
func TestADeleteIsNotConfirmedByAnEarlierTombstone(t *testing.T) {
	for name, marked := range map[string]bool{"marked before": true, "marked after": false} {
		t.Run(name, func(t *testing.T) {
			reg := stable(2, 1, 2, 3)
			f := alone(t, 3, 2, reg)
			f.at(1).sayCaught(2, reg, protocol.Hello{})
			f.run(time.Second)
			f.at(1).sayCaught(2, reg, protocol.Groups{Pass: mustHear[protocol.Compare](f.at(1)).Pass, Same: true})
			tombstone := table.Entry{Key: "k", State: table.Deleted, Stamp: 1}
			f.at(1).sayCaught(2, reg, protocol.Put{Op: 1, Stamp: 2, Entries: []table.Entry{tombstone}})
			begin := func() {
				f.at(2).command(protocol.Delete{Op: 1, Key: "k", Level: majority, Limit: 10 * time.Second})
			}
			if !marked {
				begin()
			}
			f.at(1).sayCaught(2, reg, protocol.Sweep{Gen: 2, UpTo: 1})
			tombs := mustHear[protocol.SweepReply](f.at(1)).Tombs
			if marked {
				begin()
			}
			swept := stable(3, 1, 2, 3)
			swept.Swept, swept.Dropped = 3, tombs
			f.at(1).sayCaught(2, swept, protocol.Hello{})
			if marked {
				require.Empty(t, f.at(2).done)
				again := mustHear[protocol.Put](f.at(1))
				require.EqualValues(t, 3, again.Stamp)
				require.Equal(t, table.Deleted, again.Entries[0].State)
				f.at(1).sayCaught(2, swept, protocol.PutTaken{Op: 1})
			}
			require.Len(t, f.at(2).done, 1)
			require.Equal(t, protocol.Confirmed, f.at(2).done[0].Verdict)
		})
	}
}

// A delete that was asked for twice, and that the second home has not made, may have been made by the first one.
func TestADeleteThatTwoHomesWereAskedForMayBeDone(t *testing.T) {
	for name, test := range map[string]struct {
		waits time.Duration
		want  protocol.Verdict
	}{
		"asked once":  {0, protocol.Lost},
		"asked twice": {350 * time.Millisecond, protocol.Unconfirmed},
	} {
		t.Run(name, func(t *testing.T) {
			f, reg, key := threeOfSix(t, 4, 2)
			f.at(2).command(protocol.Delete{Op: 1, Key: key, Level: majority, Limit: 10 * time.Second})
			f.run(test.waits)
			for i := range 6 {
				if _, asked := heardLast[protocol.RemoveKey](f.at(i + 1)); asked {
					f.at(i+1).say(2, reg, protocol.Committed{Op: 1, Verdict: protocol.Lost})
				}
			}
			require.Equal(t, test.want, f.at(2).done[0].Verdict)
		})
	}
}
