// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package majority_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/majority"
	"github.com/quorate/quorate/gossip"
)

// Views first, then one machine that is fed by hand: what it asks the store, when, and what
// follows from the answers. Times are readings of its clock.

const second = time.Second

// nodeAt is the identity of the i-th node.
func nodeAt(i int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: fmt.Sprintf("n%d", i), Port: 7946}, UID: gossip.UID(i + 1)}
}

// viewOf is the view of one node of a cluster of n members, of which the given ones are lost.
func viewOf(self, n int, lost ...int) downing.View {
	v := downing.View{Self: nodeAt(self)}
	gone := map[int]bool{}
	for _, i := range lost {
		gone[i] = true
		v.Unreachable = append(v.Unreachable, gossip.Record{Observer: nodeAt(self), Subject: nodeAt(i), Status: gossip.Unreachable})
	}
	var voters []gossip.NodeID
	for i := range n {
		v.Members = append(v.Members, &gossip.Member{Node: nodeAt(i), Status: gossip.Up, UpNumber: gossip.UpNumber(i + 1)})
		voters = append(voters, nodeAt(i))
		if !gone[i] {
			v.Seen = append(v.Seen, nodeAt(i))
		}
	}
	v.Base = gossip.Base{voters}
	return v
}

func settings(node int) majority.Settings {
	s := majority.Default()
	s.Store, s.Lease, s.Owner = "etcd", "bank", nodeAt(node).Address.String()
	return s
}

// fed is a machine and the time.
type fed struct {
	*testing.T
	m   *majority.Machine
	now time.Duration
}

func newFed(t *testing.T) *fed {
	t.Helper()
	return &fed{T: t, m: majority.NewMachine(settings(0), "U")}
}

func (f *fed) at(now time.Duration, in majority.Input) majority.Output {
	f.now = now
	return f.m.Step(in, now)
}

func asked(v downing.View) majority.Input { return majority.Input{Kind: majority.Asked, View: v} }

func granted(token uint64) majority.Input {
	return majority.Input{Kind: majority.Answered, Answer: lease.Answer{Granted: true, Owner: "n0:7946/U/0", Token: token, TTL: 40 * second}}
}

func refused(by string) majority.Input {
	return majority.Input{Kind: majority.Answered, Answer: lease.Answer{Owner: by}}
}

// takes expects a call that takes the lease.
func (f *fed) takes(out majority.Output) {
	f.Helper()
	require.NotNil(f, out.Call)
	require.False(f, out.Call.Give)
	require.Equal(f, lease.Claim{Name: "bank", Owner: "n0:7946/U/0", TTL: 40 * second}, out.Call.Claim)
}

// kept has the side {0, 1} of three nodes kept at 10 s, with the token 7.
func kept(t *testing.T) *fed {
	f := newFed(t)
	f.takes(f.at(10*second, asked(viewOf(0, 3, 2))))
	out := f.at(10*second+5, granted(7))
	require.NotNil(t, out.Reply)
	require.NoError(t, out.Reply.Err)
	require.Equal(t, downing.KeepSide, out.Reply.Decision.Verdict)
	require.Equal(t, []gossip.NodeID{nodeAt(2)}, out.Reply.Decision.Down)
	require.Contains(t, out.Reply.Decision.Reason, `the lease "bank" at etcd, token 7`)
	return f
}

func TestTheMajorityAsksAtOnceAndNamesTheToken(t *testing.T) { kept(t) }

func TestTheMinorityAsksAfterItsDelay(t *testing.T) {
	f := newFed(t)
	out := f.at(10*second, asked(viewOf(0, 3, 1, 2)))
	require.Equal(t, majority.Output{}, out)
	at, due := f.m.Wake()
	require.True(t, due)
	require.Equal(t, 12*second, at)
	require.Equal(t, majority.Output{}, f.at(12*second-1, majority.Input{}))
	f.takes(f.at(12*second, majority.Input{}))
	require.Equal(t, downing.KeepSide, f.at(12*second+1, granted(1)).Reply.Decision.Verdict)
}

func TestNobodyIsMissingAndTheStoreIsNotAsked(t *testing.T) {
	f := newFed(t)
	out := f.at(second, asked(viewOf(0, 3)))
	require.Nil(t, out.Call)
	require.Equal(t, downing.None, out.Reply.Decision.Verdict)
}

// A holding of an earlier decision decides nothing by itself: the store may have ended it, or
// ends it too soon for the decision.
func TestAHoldingIsConfirmedBeforeItDecidesAgain(t *testing.T) {
	f := kept(t)
	f.takes(f.at(12*second, asked(viewOf(0, 3, 1, 2))))
	out := f.at(12*second+1, refused("n1:7946/V/0"))
	require.ErrorContains(t, out.Reply.Err, "held by n1:7946")
	require.True(t, out.Reply.Waits)
	_, held := f.m.Token(f.now)
	require.False(t, held)

	f = kept(t)
	f.takes(f.at(12*second, asked(viewOf(0, 3, 1, 2))))
	require.Equal(t, downing.KeepSide, f.at(12*second+1, granted(7)).Reply.Decision.Verdict)

	f = kept(t)
	f.takes(f.at(12*second, asked(viewOf(0, 3, 1, 2))))
	require.Nil(t, f.at(12*second+1, granted(8)).Reply, "another held it in between")
}

// Who is refused waits, since the holder may have died, and gives up when no grant could
// count any more; but not where the holder is a member of this very side.
func TestWhoIsRefusedWaitsAndGivesUpInTheEnd(t *testing.T) {
	for _, c := range []struct {
		holder string
		after  time.Duration
		wants  downing.Verdict
	}{
		{"n1:7946/V/0", 20 * second, downing.None},
		{"n1:7946/V/0", 28 * second, downing.DownSide},
		{"n9:7946/V/0", 40 * second, downing.DownSide},
		{"n2:7946/V/0", 40 * second, downing.None},
	} {
		f, view := newFed(t), viewOf(0, 3, 1)
		view.Unstable = c.after
		f.takes(f.at(second, asked(view)))
		out := f.at(second+1, refused(c.holder))
		require.Equal(t, c.wants, out.Reply.Decision.Verdict)
		require.Equal(t, c.wants == downing.None, out.Reply.Waits)
	}
}

// The store is down for an hour. Each question ends in its time, the store is asked on for a
// while after it, and then no more.
func TestAStoreThatIsDownIsAskedAgainAndInTheEndLeftAlone(t *testing.T) {
	f := newFed(t)
	f.takes(f.at(second, asked(viewOf(0, 3, 1))))
	require.Nil(t, f.at(2*second, majority.Input{Kind: majority.Answered, Err: errors.New("down")}).Reply)
	f.takes(f.at(3*second, majority.Input{}))
	require.Nil(t, f.at(5*second+1, majority.Input{}).Reply, "it hangs")
	since, reason, waits := f.m.Waits()
	require.True(t, waits)
	require.Equal(t, second, since)
	require.Equal(t, "no answer within 2s", reason)
	f.at(6*second, majority.Input{Kind: majority.Ended})
	_, _, waits = f.m.Waits()
	require.False(t, waits)

	// The late answer does not count; the next call is granted to the next question.
	late := f.at(7*second, granted(3))
	require.Nil(t, late.Reply)
	f.takes(late)
	f.at(8*second, granted(3))
	f.takes(f.at(9*second, asked(viewOf(0, 3, 1))))
	require.Equal(t, downing.KeepSide, f.at(9*second+1, granted(3)).Reply.Decision.Verdict)

	f = newFed(t)
	f.at(second, asked(viewOf(0, 3, 1)))
	f.at(6*second, majority.Input{Kind: majority.Ended})
	require.Nil(t, f.at(21*second, majority.Input{}).Reply)
	require.True(t, f.m.GivesBack(), "nobody has asked for 15 s")
}

func TestAnAnswerThatMakesNoSenseDecidesNothing(t *testing.T) {
	for name, in := range map[string]majority.Input{
		"another owner":  {Kind: majority.Answered, Answer: lease.Answer{Granted: true, Owner: "n1:7946/V/0", Token: 3, TTL: 40 * second}},
		"no token":       {Kind: majority.Answered, Answer: lease.Answer{Granted: true, Owner: "n0:7946/U/0", TTL: 40 * second}},
		"no time":        {Kind: majority.Answered, Answer: lease.Answer{Granted: true, Owner: "n0:7946/U/0", Token: 3}},
		"lower token":    granted(6),
		"lost meanwhile": granted(9),
	} {
		f := kept(t)
		f.takes(f.at(12*second, asked(viewOf(0, 3, 1, 2))))
		if out := f.at(12*second+1, in); out.Reply != nil {
			require.True(t, out.Reply.Waits, name)
			require.Equal(t, downing.None, out.Reply.Decision.Verdict, name)
		}
	}
}

// The decision is settled: the store is asked once more, and the lease lasts from there. It is
// given back shortly before it ends, and not renewed meanwhile.
func TestALeaseIsGivenBackWhenItHasLasted(t *testing.T) {
	f := kept(t)
	f.takes(f.at(11*second, majority.Input{Kind: majority.Settled}))
	f.at(11*second+1, granted(7))
	at, due := f.m.Wake()
	require.True(t, due)
	require.Equal(t, 11*second+37*second, at)
	require.Nil(t, f.at(at-1, majority.Input{}).Call)
	out := f.at(at, majority.Input{})
	require.True(t, out.Call.Give)
	require.False(t, f.m.Decided())
}

func TestALeaseIsRenewedUntilTheDecisionIsSettled(t *testing.T) {
	f := kept(t)
	for now := 15 * second; now < 10*time.Minute; now += 5 * second {
		f.takes(f.at(now, majority.Input{}))
		f.at(now, granted(7))
	}
	_, held := f.m.Token(f.now)
	require.True(t, held)
}

// A question while the lease rests makes it last again.
func TestAQuestionEndsTheRest(t *testing.T) {
	f := kept(t)
	f.at(11*second, majority.Input{Kind: majority.Settled})
	f.at(11*second+1, granted(7))
	f.takes(f.at(40*second, asked(viewOf(0, 2, 1))))
	f.at(40*second+1, granted(7))
	require.True(t, f.m.Decided())
	f.takes(f.at(45*second, majority.Input{}))
}

// What nobody decided by is given back at once, by a node that ends too. A holding by which a
// side was kept is not.
func TestWhatNobodyDecidedByIsGivenBackAtOnce(t *testing.T) {
	for _, kind := range []majority.Kind{majority.Settled, majority.Closed} {
		f := newFed(t)
		f.at(second, asked(viewOf(0, 3, 1)))
		f.at(6*second, majority.Input{Kind: majority.Ended})
		f.at(6*second, granted(1))
		f.at(7*second, majority.Input{})
		f.at(7*second, granted(1))
		out := f.at(8*second, majority.Input{Kind: kind})
		require.NotNil(t, out.Call)
		require.True(t, out.Call.Give)
	}
	f := kept(t)
	require.Nil(t, f.at(11*second, majority.Input{Kind: majority.Closed}).Call)
	require.False(t, f.m.GivesBack())
}
