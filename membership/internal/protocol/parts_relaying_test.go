// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// many is a number of voters among whom proofs are lent.
const many = 12

// newTestFences returns the fences of a bench in which all is known up to now.
func newTestFences(b *bench) *fences {
	f := newFences(b.core, b.strategies, confirmed(false))
	f.noteState(b.settled, b.state)
	b.settled = b.state
	return f
}

// becomes goes on to a state at a later moment, as the machine does with each new state.
func (b *bench) becomes(f *fences, at time.Duration, change func()) {
	prev := b.state
	b.at(at)
	change()
	f.removed(missing(prev.Members(), b.state.Members()))
	f.removedUnseen(prev, b.state)
	f.noteState(prev, b.state)
	b.survey()
	f.noteSeen()
	b.settled = b.state
}

func (b *bench) seenBy(nodes ...int) {
	for _, i := range nodes {
		b.state = b.state.See(nodeAt(i))
	}
}

// fencedAt returns when the fence of a node ends, zero if it does not run.
func (b *bench) fencedAt(i int) machine.Instant {
	for _, e := range b.out.Effects() {
		if arm, ok := e.(machine.Arm); ok && arm.Timer == (fenceTimer{nodeAt(i)}) {
			return arm.At
		}
	}
	return 0
}

// remove removes nodes as a leader does, with their votes.
func (b *bench) remove(nodes ...int) {
	b.edit(func(e *gossip.Edit) {
		var voters []gossip.NodeID
		for _, i := range nodes {
			e.Remove(nodeAt(i), b.now.Wall)
		}
		for _, member := range b.state.Members() {
			if e.Member(member.Node) != nil && votes(member) {
				voters = append(voters, member.Node)
			}
		}
		e.SetConfig(voters)
	})
}

// fence is how long a node on a clock that is a percent slow may host after its last
// proof, by a clock that is a percent fast.
const fence = 3060 * time.Millisecond

// A relay asks all, and notes who gives it standing; a member asks back; the relay lends
// what it has proved itself by the answers of the round, as old as that is.
func TestARelayLendsWhatItHasProved(t *testing.T) {
	b := newBench(t, many)
	r := b.footing.relay
	r.round()
	require.Len(t, sentTo[AskStanding](b), many-1)
	asked := b.now.Mono
	b.at(time.Minute + 250*time.Millisecond)
	give := func(question uint64, nodes ...int) {
		for _, i := range nodes {
			r.receiveGiven(nodeAt(i), GiveStanding{Sequence: 1, Known: true, Standing: true, Question: question})
		}
	}
	give(7, 2, 3, 4, 5)
	require.Empty(t, sentTo[LendStanding](b), "five with itself are no majority of twelve")
	give(7, 6)
	lent := sentTo[LendStanding](b)
	require.Len(t, lent, 5, "six are half of twelve, and itself the lowest: those that answered first get no older proof")
	for _, l := range lent {
		require.Equal(t, LendStanding{Question: 7, Standing: true, Proof: 250 * time.Millisecond, All: NoProof}, l)
	}
	b.at(time.Minute + 300*time.Millisecond)
	give(8, 7)
	require.Equal(t, LendStanding{Question: 8, Standing: true, Proof: 300 * time.Millisecond, All: NoProof}, sentTo[LendStanding](b)[7])
	b.footing.update()
	require.Equal(t, asked.Add(b.cfg.Fence), b.hosting.until)
	b.at(time.Minute + 3001*time.Millisecond)
	give(9, 2)
	require.Empty(t, sentTo[LendStanding](b), "it is older than a fence")
}

// The age that a proof had when it was lent is taken off what the member counts from, and
// two percent more. So the fence bounds the whole chain by any clock.
func TestTheAgeOfAProofIsTakenOffByAnyClock(t *testing.T) {
	b := newBench(t, many)
	r := b.footing.relay
	r.receiveAsk(nodeAt(2), AskStanding{Sequence: 5})
	given := sentTo[GiveStanding](b)[2]
	require.Equal(t, GiveStanding{Sequence: 5, Known: true, Standing: true, Question: 1}, given)
	asked := b.now.Mono
	b.at(time.Minute + time.Second)
	r.receiveLent(nodeAt(3), LendStanding{Question: 1, Standing: true, Proof: 0, All: NoProof})
	b.footing.update()
	require.Zero(t, b.hosting.until, "another was asked")
	r.receiveLent(nodeAt(2), LendStanding{Question: 1, Standing: true, Proof: 2 * time.Second, All: NoProof})
	b.footing.update()
	require.Equal(t, asked.Add(b.cfg.Fence-2040*time.Millisecond), b.hosting.until)
	r.receiveLent(nodeAt(2), LendStanding{Question: 1, Proof: 0, All: NoProof})
	b.footing.update()
	require.Equal(t, asked.Add(b.cfg.Fence-2040*time.Millisecond), b.hosting.until, "it only shows contact")
	require.True(t, b.footing.connected())
}

// A proof that was lent is not lent again: its age would begin anew with each hop.
func TestAProofIsNotLentTwice(t *testing.T) {
	b := newBench(t, many)
	r := b.footing.relay
	r.receiveAsk(nodeAt(2), AskStanding{Sequence: 5})
	r.receiveLent(nodeAt(2), LendStanding{Question: 1, Standing: true, Proof: 0, All: NoProof})
	r.round()
	b.at(time.Minute + 10*time.Millisecond)
	r.receiveGiven(nodeAt(3), GiveStanding{Sequence: 1, Known: true, Standing: true, Question: 4})
	require.Empty(t, sentTo[LendStanding](b))
	r.round()
	require.Empty(t, sentTo[LendStanding](b), "what is owed is due with the next round")
}

// Until all are known to have seen a change of the voters, a relay proves a majority of
// the voters before as well, lends nothing to who is no voter in both, and nothing at all
// by a set so small that all would prove it for themselves.
func TestARelayProvesAMajorityOfTheVotersBefore(t *testing.T) {
	b := newBench(t, many)
	r := b.footing.relay
	b.edit(func(e *gossip.Edit) {
		voters := []gossip.NodeID{nodeAt(1)}
		for i := 2; i <= 40; i++ {
			if i > many {
				e.Join(memberAt(i))
				e.SetStatus(nodeAt(i), gossip.Up, gossip.UpNumber(i))
			}
			voters = append(voters, nodeAt(i))
		}
		slices.SortFunc(voters, gossip.NodeID.Compare)
		e.SetConfig(voters)
	})
	b.kept = b.kept.recordOf(b.state, true)
	b.survey()
	require.Len(t, b.surveyed.base, 2)
	r.observe()
	for i := many + 1; i <= 40; i++ {
		b.answers.answered(nodeAt(i), b.now.Mono)
		b.answers.isKnownTo(nodeAt(i), b.now.Mono)
	}
	r.prove()
	require.Zero(t, r.own.majority, "29 of 40, and one of twelve")
	b.at(time.Minute + time.Second)
	for i := 2; i <= 7; i++ {
		b.answers.answered(nodeAt(i), machine.Instant(time.Minute))
		b.answers.isKnownTo(nodeAt(i), machine.Instant(time.Minute))
	}
	r.lend(nodeAt(40), 1)
	r.lend(nodeAt(2), 1)
	lent := sentTo[LendStanding](b)
	require.Equal(t, LendStanding{Question: 1, Standing: true, Proof: time.Second, All: NoProof}, lent[2], "36 of 40, and seven of twelve")
	require.Equal(t, LendStanding{Question: 1, Proof: time.Second, All: NoProof}, lent[40], "others may not know that it votes")
	require.False(t, given(b, 40).Standing, "and a relay that others may not know to vote proves nothing by this node")
	require.True(t, given(b, 2).Standing)
}

// given is the answer to a relay.
func given(b *bench, i int) GiveStanding {
	b.at(time.Duration(b.now.Mono) + time.Millisecond)
	b.footing.relay.receiveAsk(nodeAt(i), AskStanding{Sequence: 1})
	return sentTo[GiveStanding](b)[i]
}

// While a set of voters is so small that each proves a majority of it for itself, who
// votes in every set asks all, and a proof that is lent gives no standing: the others may
// not know that proofs are lent.
func TestAmongFewVotersAndManyMembersNoStandingIsLent(t *testing.T) {
	b := newBench(t, 10)
	r := b.footing.relay
	b.edit(func(e *gossip.Edit) {
		for i := 11; i <= 40; i++ {
			e.Join(memberAt(i))
		}
	})
	b.survey()
	r.round()
	require.Len(t, sentTo[AskStanding](b), 39)
	for i := 2; i <= 10; i++ {
		b.answers.answered(nodeAt(i), b.now.Mono)
		b.answers.isKnownTo(nodeAt(i), b.now.Mono)
	}
	r.lend(nodeAt(2), 1)
	require.Equal(t, LendStanding{Question: 1, All: NoProof}, sentTo[LendStanding](b)[2])
}

// Who is accused by so many that all deny it is given nothing and lent nothing; one less
// takes nothing from it.
func TestWhoManyAccuseIsDenied(t *testing.T) {
	b := newBench(t, many)
	b.accuse([]int{2, 3, 4, 5}, []int{9})
	require.True(t, given(b, 9).Standing)
	b.accuse([]int{6}, []int{9})
	require.Equal(t, GiveStanding{Sequence: 1, Known: true, Question: 2}, given(b, 9))
	b.answeredBy(time.Minute, 2, 3, 4, 5, 6, 7, 8)
	b.footing.relay.lend(nodeAt(9), 1)
	require.False(t, sentTo[LendStanding](b)[9].Standing)
}

// Who has confirmed that it hosts nothing any more lends nothing: nobody waits until it
// has heard who was removed.
func TestWhoHasConfirmedItsStopLendsNothing(t *testing.T) {
	b := newBench(t, many)
	b.answeredBy(time.Minute, 2, 3, 4, 5, 6, 7, 8)
	b.footing.relay.lend(nodeAt(3), 1)
	require.NotEmpty(t, sentTo[LendStanding](b))
	b.dropStanding()
	b.at(time.Minute + time.Millisecond)
	b.footing.relay.lend(nodeAt(3), 1)
	require.Empty(t, sentTo[LendStanding](b))
}

// Who relays: the oldest, one a zone in turn, and those that are accused or leave only
// when no others are left.
func TestTheOldestOfEachZoneRelay(t *testing.T) {
	b := newBench(t, many)
	numbers := func() (all []int) {
		for _, m := range b.relaysOf(b.state) {
			all = append(all, int(m.Node.UID))
		}
		return all
	}
	require.Equal(t, []int{1, 2, 3, 4, 5}, numbers())
	b.accuse([]int{6}, []int{2})
	b.by(6, func(e *gossip.Edit) { e.SetStatus(nodeAt(4), gossip.Leaving, 4) })
	b.survey()
	require.Equal(t, []int{1, 3, 5, 6, 7}, numbers())
	b.accuse([]int{6}, []int{1, 3, 5, 7, 8, 9, 10, 11})
	require.Equal(t, []int{6, 12, 1, 2, 3}, numbers())
}

// A removed node may have been lent a proof by any voter that goes on, until that one had
// cut it off, not only by those that relay in the view of who removes it: the last one to
// cut it off counts, and one that is not known to have cut it off until now.
func TestTheLastVoterToCutANodeOffCounts(t *testing.T) {
	for _, c := range []struct {
		last int
		at   time.Duration
	}{{11, 63 * time.Second}, {0, 65 * time.Second}} {
		b := newBench(t, many)
		f := newTestFences(b)
		b.becomes(f, 60*time.Second, func() { b.accuse([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []int{12}) })
		b.seenBy(1) // The others have held less.
		if c.last != 0 {
			b.becomes(f, 63*time.Second, func() { b.accuse([]int{c.last}, []int{12}) })
		}
		f.pastSeenSets = nil // What they had seen is another test.
		b.becomes(f, 65*time.Second, func() { b.remove(12) })
		require.Equal(t, machine.Instant(c.at).Add(fence), b.fencedAt(12))
	}
}

// It is enough that a voter had seen that so many accuse the node that it denies it its
// word, whoever the accusers are, and that these have not changed since.
func TestWhoHasSeenManyAccuseHasCutOff(t *testing.T) {
	for _, c := range []struct {
		between func(b *bench, f *fences)
		at      time.Duration
	}{
		{func(*bench, *fences) {}, 64 * time.Second},
		{func(b *bench, f *fences) { // One takes its record back, and writes it again.
			b.becomes(f, 64500*time.Millisecond, func() { b.by(4, func(e *gossip.Edit) { e.Clear(nodeAt(12)) }) })
			b.becomes(f, 64600*time.Millisecond, func() { b.by(4, func(e *gossip.Edit) { e.Mark(nodeAt(12), gossip.Unreachable) }) })
		}, 66 * time.Second},
		{func(b *bench, f *fences) { // One of five is removed, with its record.
			b.becomes(f, 64500*time.Millisecond, func() { b.remove(4) })
			b.kept = b.kept.recordOf(b.state, true)
			b.becomes(f, 64600*time.Millisecond, b.allSee)
		}, 66 * time.Second},
	} {
		b := newBench(t, many)
		f := newTestFences(b)
		b.becomes(f, 60*time.Second, func() { b.accuse([]int{2, 3, 4, 5}, []int{12}) })
		b.becomes(f, 62*time.Second, func() { b.accuse([]int{6}, []int{12}) })
		b.becomes(f, 63*time.Second, func() { b.seenBy(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) })
		b.becomes(f, 64*time.Second, func() { b.seenBy(11) })
		c.between(b, f)
		b.becomes(f, 66*time.Second, func() { b.kept = b.kept.recordOf(b.state, true); b.remove(12) })
		require.Equal(t, machine.Instant(c.at).Add(fence), b.fencedAt(12))
	}
}

// A node that was removed before, or is removed now, may have lent a proof to another one
// as long as it had proofs itself: the last of all that were removed counts.
func TestTheProofsOfAllRemovedNodesCount(t *testing.T) {
	all := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, together := range []bool{true, false} {
		b := newBench(t, many)
		f := newTestFences(b)
		b.becomes(f, 60*time.Second, func() { b.accuse(all, []int{12}) })
		b.becomes(f, 64*time.Second, func() { b.accuse(all, []int{11}) })
		if !together {
			b.becomes(f, 65*time.Second, func() { b.remove(11) })
			b.kept = b.kept.recordOf(b.state, true)
			b.becomes(f, 66*time.Second, b.allSee)
			b.becomes(f, 67*time.Second, func() { b.remove(12) })
		} else {
			b.becomes(f, 67*time.Second, func() { b.remove(11, 12) })
		}
		require.Equal(t, machine.Instant(64*time.Second).Add(fence), b.fencedAt(12))
	}
}

// A voter that exits may have lent until it confirmed that it hosts nothing, and is in no
// set of those that go on: what it lent counts until it was known to exit, and until now
// if it is still leaving, since nobody waits for who has confirmed.
func TestAVoterThatExitsMayHaveLent(t *testing.T) {
	all := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for status, want := range map[gossip.Status]time.Duration{gossip.Exiting: 65 * time.Second, gossip.Leaving: 68 * time.Second} {
		b := newBench(t, many)
		f := newTestFences(b)
		b.becomes(f, 60*time.Second, func() { b.accuse(append(all, 11), []int{12}) })
		b.becomes(f, 65*time.Second, func() { b.by(1, func(e *gossip.Edit) { e.SetStatus(nodeAt(11), status, 11) }) })
		b.becomes(f, 68*time.Second, func() { b.remove(12) })
		require.Equal(t, machine.Instant(want).Add(fence), b.fencedAt(12), status)
	}
}

// Where a minority may survive, who is removed had a proof of having heard all voters until
// the last voter that goes on had cut it off, and was lent it an interval later.
func TestWhereAMinorityMaySurviveTheLastWordCounts(t *testing.T) {
	b := newBench(t, many)
	minority := keepMajority()
	minority.MajorityOnly = false
	b.strategies = newStrategies(b.core, minority)
	f := newTestFences(b)
	b.becomes(f, 60*time.Second, func() { b.accuse([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []int{12}) })
	b.becomes(f, 63*time.Second, func() { b.accuse([]int{11}, []int{12}) })
	b.becomes(f, 68*time.Second, func() { b.remove(12) })
	require.Equal(t, machine.Instant(63*time.Second).Add(byAnyClock(b.marginOfMany())), b.fencedAt(12))
	require.Greater(t, b.marginOfMany(), b.margin()+b.cfg.FailureDetector.HeartbeatInterval)
}

// Where a minority may survive, a relay lends how long ago it heard all voters as well,
// and takes none for heard that it has not heard.
func TestARelayLendsHowLongAgoItHeardAll(t *testing.T) {
	b := newBench(t, many)
	minority := keepMajority()
	minority.MajorityOnly = false
	b.strategies = newStrategies(b.core, minority)
	b.footing.strategies = b.strategies
	r := newStandingRelay(b.core, b.answers, newReplies(b.core), b.strategies)
	b.answeredBy(55*time.Second, 2)
	b.answeredBy(59*time.Second, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	r.lend(nodeAt(2), 1)
	require.Equal(t, LendStanding{Question: 1, Standing: true, Proof: time.Second, All: NoProof}, sentTo[LendStanding](b)[2])
	b.answeredBy(58*time.Second, 12)
	b.at(time.Minute + time.Second)
	r.lend(nodeAt(2), 1)
	require.Equal(t, LendStanding{Question: 1, Standing: true, Proof: 2 * time.Second, All: 6 * time.Second}, sentTo[LendStanding](b)[2])
}

// Who joins after a removal has not heard of what went before: what was lent counts until
// it heard.
func TestWhoKnowsANodeOnlyAsRemovedCountsFromThen(t *testing.T) {
	b := newBench(t, many)
	f := newTestFences(b)
	prev := b.state
	b.by(2, func(e *gossip.Edit) {
		e.Join(memberAt(13))
		e.Remove(nodeAt(13), b.now.Wall)
	})
	b.at(70 * time.Second)
	f.removedUnseen(prev, b.state)
	require.Equal(t, machine.Instant(70*time.Second).Add(fence), b.fencedAt(13))
	require.Equal(t, machine.Instant(70*time.Second), f.proofs)
}

// Who answers a relay that gets no majority is lent what the relay has with the next round,
// and one that answers again and again is owed no more than a round of questions.
func TestARelayWithoutAMajorityPaysWithTheNextRound(t *testing.T) {
	b := newBench(t, many)
	r := b.footing.relay
	b.answeredBy(time.Minute-2*time.Second, 2, 3, 4, 5, 6, 7)
	r.round()
	for range 3 * many {
		r.receiveGiven(nodeAt(8), GiveStanding{Sequence: 1, Known: true, Question: 4})
		require.LessOrEqual(t, len(r.owed), many-1)
	}
	b.at(time.Minute + 500*time.Millisecond)
	r.round()
	require.Equal(t, LendStanding{Question: 4, Standing: true, Proof: 2500 * time.Millisecond, All: NoProof}, sentTo[LendStanding](b)[8])
	require.Empty(t, r.owed)
}
