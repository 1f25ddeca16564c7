// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// Who is given and who takes what of a bucket: its homes, and nobody else.

// threeOfSix returns a machine among puppets, of six replicas that hold three copies of each
// key, with a key of which the first of two nodes is a home and the second is none.
func threeOfSix(t *testing.T, home, other int) (*fleet, *protocol.Register, string) {
	t.Helper()
	reg := stable(1, 1, 2, 3, 4, 5, 6)
	f := alone(t, 6, 2, reg, func(r *replica) { r.copies = 3 })
	for i := range 1000 {
		key := string(rune('a'+i%26)) + string(rune('a'+i/26))
		homes := map[int]bool{}
		for _, node := range f.at(2).Route(0).Homes(table.BucketOf(key)) {
			homes[int(node.UID)] = true
		}
		if homes[home] && !homes[other] && (home == 2 || other == 2 || homes[2]) {
			return f, reg, key
		}
	}
	require.Fail(t, "there is no such key")
	return nil, nil, ""
}

// A replica that is no home of a key gets none of it by naming it as one of which it lacks
// something.
func TestOnlyHomesAreGivenWhatTheyLack(t *testing.T) {
	f, reg, key := threeOfSix(t, 4, 5)
	_, err := f.at(2).table.Update(key, elements, func(_ crdt.Origin, v any) (any, error) { return v.(crdt.GSet[uint64]).Add(1), nil })
	require.NoError(t, err)
	f.at(5).say(2, reg, protocol.DeltasTaken{Seq: 99, Gaps: []string{key}})
	_, given := heardLast[protocol.Put](f.at(5))
	require.False(t, given, "it is no home")
	f.at(4).say(2, reg, protocol.DeltasTaken{Seq: 99, Gaps: []string{key}})
	require.Len(t, mustHear[protocol.Put](f.at(4)).Entries, 1)
}

// A replica takes in nothing of a key of which it is no home, whoever sends it and how, and
// does not say that it has.
func TestOnlyHomesTakeIn(t *testing.T) {
	f, reg, key := threeOfSix(t, 4, 2)
	entry := table.Entry{Key: key, State: table.Live, Type: elements, Value: crdt.GSet[uint64]{}.Add(7).Settled(), Versions: table.Versions{{Origin: protocol.OriginOf(4), Count: 1}}}
	refused := f.at(2).Counts().Foreign
	f.at(4).say(2, reg, protocol.Put{Op: 1, Stamp: 1, Entries: []table.Entry{entry}})
	require.True(t, mustHear[protocol.PutTaken](f.at(4)).Stale)
	delta := table.Change{Key: key, Type: elements, Origin: protocol.OriginOf(4), To: 1, Delta: crdt.GSet[uint64]{}.Add(7)}
	f.at(4).say(2, reg, protocol.Deltas{Seq: 1, Stamp: 1, Changes: []table.Change{delta}})
	require.True(t, mustHear[protocol.DeltasTaken](f.at(4)).Stale)
	f.run(5 * time.Second) // A comparison is under way.
	compare, asked := heardLast[protocol.Compare](f.at(4))
	require.True(t, asked)
	f.at(4).say(2, reg, protocol.Groups{Pass: compare.Pass, Sums: make([]uint64, 64)})
	f.at(4).say(2, reg, protocol.PullReply{Pass: compare.Pass, Stamp: 1, Entries: []table.Entry{entry}})
	require.Zero(t, f.at(2).table.Len())
	require.Greater(t, f.at(2).Counts().Foreign, refused+1)
}

// A replica that has missed a generation may have missed a change in which everybody had to
// catch up: it does not say that it lacks nothing until it has looked.
func TestWhoHasMissedAGenerationCatchesUp(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 3, 2, reg)
	f.run(2 * time.Second)
	f.at(1).say(2, reg, protocol.Groups{Pass: mustHear[protocol.Compare](f.at(1)).Pass, Same: true})
	require.True(t, f.at(2).Caught(0))
	f.at(1).say(2, ended(joint(reg, 1, 2)), protocol.Hello{})
	require.Equal(t, uint64(3), f.at(2).Register(0).Gen)
	require.False(t, f.at(2).Caught(0))
	f.run(2 * time.Second)
	compare := mustHear[protocol.Compare](f.at(1))
	now := f.at(2).Register(0)
	f.at(1).say(2, now, protocol.Groups{Pass: compare.Pass, Same: true})
	require.True(t, f.at(2).Caught(0))
}

// A replica that hears of a register which it has not caught up with says so from the first message
// on, and no read or write ends by the answers of a generation before it: those of 2 and 3 were no
// winning part of the homes at that time, and are one of the homes after it.
func TestNothingIsSaidOrDoneBetweenTwoGenerations(t *testing.T) {
	before := joint(stable(1, 1, 3), 1, 2, 3)
	f := alone(t, 3, 2, before)
	f.at(1).sayCaught(2, before, protocol.Hello{})
	f.run(2 * time.Second)
	f.at(1).sayCaught(2, before, protocol.Groups{Pass: mustHear[protocol.Compare](f.at(1)).Pass, Same: true})
	require.True(t, f.at(2).Caught(0))
	f.at(2).command(protocol.Read{Op: 1, Key: "k", Level: majority, Limit: time.Minute})
	change := f.at(2).add(1)
	f.at(2).command(protocol.Write{Op: 2, Change: change, Level: majority, Limit: time.Minute})
	f.at(3).say(2, before, protocol.Answer{Op: 1})
	f.at(3).say(2, before, protocol.PutTaken{Op: 2})
	require.Empty(t, f.at(2).done)
	f.at(1).heard, f.at(3).heard = nil, nil

	after := joint(stable(before.Gen+2, 1, 2, 3), 2, 3)
	f.at(1).say(2, after, protocol.Hello{})
	require.False(t, f.at(2).Caught(0), "it has missed a generation")
	require.Empty(t, f.at(2).done)
	for _, l := range slices.Concat(f.at(1).heard, f.at(3).heard) {
		require.Equal(t, after.Gen, l.message.Gen)
		require.False(t, l.message.Caught, "%T", l.message.Body)
	}
}

// A replica on disk is claimed by the node that came first, as long as that is a member; one
// that claims it too, or that of this node, is not heard, counted and shown.
func TestAReplicaIsOfOneNode(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 5, 2, reg, onDisk)
	claims := func(by int, id protocol.ReplicaID, body any) {
		f.at(by).speak(2, protocol.Envelope{From: id, Lineage: reg.Lineage, Gen: reg.Gen, Body: body})
	}
	change := f.at(2).add(1)
	f.at(2).command(protocol.Write{Op: 1, Change: change, Level: majority, Limit: 20 * time.Second})
	f.at(2).written()
	for i, id := range []protocol.ReplicaID{2, 3} {
		claims(4, id, protocol.PutTaken{Op: 1})
		f.at(2).written()
		require.Equal(t, uint64(i+1), f.at(2).Counts().Claims)
	}
	require.Empty(t, f.at(2).done, "the copy of a disk confirms nothing")
	node, ok := f.at(2).Route(0).Node(3)
	require.True(t, ok)
	require.Equal(t, 3, int(node.UID))
	f.at(2).command(protocol.Survey{})
	require.Contains(t, f.at(2).surveyed.Groups[0].Disputed, "n4")
	f.know(members(t, []int{1, 2, 4, 5}, 3), 2)
	claims(4, 3, protocol.PutTaken{Op: 1})
	f.at(2).written()
	require.Len(t, f.at(2).done, 1, "the disk has moved: its first node is no member any more")
}

// A durable replica is that of the node which has started last at its address, also when a
// message of the former node comes late; and when a node goes that was believed to be a replica,
// another that claims to be it is asked again.
func TestAReplicaStaysThatOfItsNode(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	again := gossip.NodeID{Address: node(2).Address, UID: 22}
	f := alone(t, 4, 1, reg, onDisk)
	m, asked := f.at(1), 0
	step := func(in machine.Input) {
		var out machine.Outbox
		m.Step(machine.Now{Mono: f.now}, in, &out)
		for _, e := range out.Effects() {
			switch e := e.(type) {
			case machine.Call:
				m.calls = append(m.calls, e)
			case machine.Send:
				if hello, ok := e.Message.(protocol.Envelope).Body.(protocol.Hello); ok && hello.Ask && e.To == again {
					asked++
				}
			}
		}
	}
	know := func(up ...gossip.NodeID) {
		raw := members(t, []int{1, 3}).Parts()
		for _, n := range up {
			member := *raw.Members[0]
			raw.LastUpNumber++
			member.Node, member.UpNumber = n, raw.LastUpNumber
			raw.Members = append(raw.Members, &member)
		}
		state, err := gossip.FromParts(raw)
		require.NoError(t, err)
		step(component.Changed{State: state, Self: node(1)})
	}
	hello := func(from gossip.NodeID) {
		step(machine.Received{From: from, Message: protocol.Envelope{From: 2, Lineage: reg.Lineage, Gen: reg.Gen, Body: protocol.Hello{}}})
	}
	is := func(want gossip.NodeID) {
		t.Helper()
		got, ok := m.Route(0).Node(2)
		require.True(t, ok)
		require.Equal(t, want, got)
	}

	know(node(2), again)
	hello(again)
	hello(node(2)) // It comes late.
	is(again)
	know(again)
	is(again)

	know(node(4), again)
	hello(node(4)) // It has been up for longer, at another address.
	is(node(4))
	know(again)
	asked = 0
	for range 20 {
		f.now = f.now.Add(100 * time.Millisecond)
		for _, call := range m.calls {
			step(machine.Called{ID: call.ID})
		}
		m.calls = nil
		for timer, at := range m.timers {
			if at <= f.now {
				step(machine.Fired{Timer: timer})
			}
		}
	}
	require.NotZero(t, asked)
	hello(again)
	is(again)
}

// A read that is to have the node's own writes waits for the home that took the last one, as long as that can be
// reached.
func TestAReadOfOwnWritesAsksTheHomeThatTookTheLastOne(t *testing.T) {
	f, reg, key := threeOfSix(t, 5, 2)
	count := protocol.Level{Name: protocol.Count, N: 1}
	f.at(2).command(protocol.Delete{Op: 1, Key: key, Level: count, Limit: 10 * time.Second})
	var home int
	for i := range 6 {
		if _, asked := heardLast[protocol.RemoveKey](f.at(i + 1)); asked {
			home = i + 1
		}
	}
	f.at(home).say(2, reg, protocol.Committed{Op: 1, Verdict: protocol.Confirmed})
	require.Len(t, f.at(2).done, 1)
	read := func(op protocol.OpID) {
		f.at(2).command(protocol.Read{Op: op, Key: key, Level: count, Limit: 10 * time.Second, Own: true})
		for _, of := range f.at(2).Route(0).Homes(table.BucketOf(key)) {
			if i := int(of.UID); i != home {
				f.at(i).say(2, reg, protocol.Answer{Op: op})
			}
		}
	}
	read(2)
	require.Len(t, f.at(2).done, 1, "the home has not answered")
	f.at(home).say(2, reg, protocol.Answer{Op: 2})
	require.Len(t, f.at(2).done, 2)
	var left []int
	for i := 1; i <= 6; i++ {
		if i != home {
			left = append(left, i)
		}
	}
	f.know(members(t, left, home), 2)
	read(3)
	require.Len(t, f.at(2).done, 3, "that home is gone")
}
