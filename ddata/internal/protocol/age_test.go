// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine"
)

// Older stores: the machine is node 1 and starts with a store, the others are puppets. First
// the words of the tests; then what a replica does until others have compared; then how it
// judges the stores of others; last what it does when its own is older.

// batches is the number of the last batch in the store of node 1.
const batches = 5

// restarted starts node 1 of three with a store in which all three count.
func restarted(t *testing.T, more ...func(*protocol.Meta)) (*fleet, *protocol.Register) {
	t.Helper()
	reg := stable(3, 1, 2, 3)
	f := newFleet(t, 3, puppets(1), onDisk, func(r *replica) {
		if r.i == 1 {
			r.meta = protocol.Meta{Register: reg, Caught: true, Written: batches}
			for _, do := range more {
				do(&r.meta)
			}
		}
	})
	f.know(members(t, []int{1, 2, 3}), 1)
	return f, reg
}

// shows sends a message of a puppet that says something of stores.
func (r *replica) shows(reg *protocol.Register, body any, edit func(*protocol.Envelope)) {
	e := protocol.Envelope{From: protocol.ReplicaID(r.i), Lineage: reg.Lineage, Gen: reg.Gen, Register: reg, Caught: true, Body: body}
	edit(&e)
	r.speak(1, e)
	r.f.at(1).settled()
}

func agrees(e *protocol.Envelope) { e.Agrees = true }

// settled answers what the store was asked, but for another id.
func (r *replica) settled() {
	var ids []machine.Call
	for len(r.calls) > 0 {
		if _, id := r.calls[0].Request.(protocol.RenewID); id {
			ids, r.calls = append(ids, r.calls[0]), r.calls[1:]
			continue
		}
		call := r.calls[0]
		r.calls = r.calls[1:]
		r.step(machine.Called{ID: call.ID})
	}
	r.calls = ids
	r.f.deliver()
}

// answersTo reports whether node 1 answers a read of a puppet, and with which envelope.
func (r *replica) answersTo(reg *protocol.Register) (protocol.Envelope, bool) {
	r.heard = nil
	r.shows(reg, protocol.Ask{Op: 9, Key: "k"}, func(*protocol.Envelope) {})
	for _, l := range r.heard {
		if _, ok := l.message.Body.(protocol.Answer); ok {
			return l.message, true
		}
	}
	return protocol.Envelope{}, false
}

// told returns the last word to a puppet that its store is older.
func (r *replica) told() protocol.OlderStore {
	b, _ := heardLast[protocol.OlderStore](r)
	return b
}

// A replica that starts with a store counts for nothing until all that are there have compared
// what they remember. Then it shows a number that the store did not have before.
func TestAReplicaIsApartUntilAllHaveCompared(t *testing.T) {
	f, reg := restarted(t)
	require.Contains(t, f.at(1).Survey().Apart, "compared")
	demands := []any{
		protocol.Prepare{Slot: 4, Ballot: protocol.Ballot{Round: 9, By: 2}},
		protocol.Accept{Slot: 4, Ballot: protocol.Ballot{Round: 9, By: 2}, Value: stable(4, 2)},
		protocol.Compare{Pass: 1},
		protocol.Sweep{Gen: 3, UpTo: 2},
		protocol.Put{Op: 1, Stamp: 3},
		protocol.Deltas{Seq: 1, Stamp: 3},
		protocol.EntryRequest{Op: 1, Key: "k"},
	}
	for _, body := range demands {
		f.at(2).shows(reg, body, agrees)
		for _, l := range f.at(2).heard {
			require.IsType(t, protocol.Hello{}, l.message.Body, "%T", body)
			require.True(t, l.message.Apart)
			require.False(t, l.message.Caught)
			require.EqualValues(t, batches, l.message.Loaded)
			require.EqualValues(t, batches, l.message.Written)
		}
	}
	_, answered := f.at(2).answersTo(reg)
	require.False(t, answered, "one has not compared")
	f.at(3).shows(reg, protocol.Hello{}, agrees)
	e, answered := f.at(2).answersTo(reg)
	require.True(t, answered)
	require.False(t, e.Apart)
	require.EqualValues(t, batches, e.Loaded)
	require.EqualValues(t, batches+1, e.Written, "others depend on what was written until now")
	require.Empty(t, f.at(1).Survey().Apart)
}

// Who is not reachable or not there does not keep a replica from taking part.
func TestTheAbsentNeedNotCompare(t *testing.T) {
	f, reg := restarted(t)
	f.at(2).shows(reg, protocol.Hello{}, agrees)
	f.know(members(t, []int{1, 2}, 3), 1)
	f.run(time.Second)
	f.at(1).settled()
	_, answered := f.at(2).answersTo(reg)
	require.True(t, answered)
}

// A store that is opened for the first time has nothing to compare.
func TestANewStoreIsNotCompared(t *testing.T) {
	f, reg := restarted(t, func(m *protocol.Meta) { *m = protocol.Meta{} })
	_, answered := f.at(2).answersTo(reg)
	require.True(t, answered)
}

// A replica that does not count reads and writes like any node without data.
func TestOperationsOfOneWhoIsApart(t *testing.T) {
	f, reg := restarted(t)
	n := f.at(1)
	majority := protocol.Level{Name: protocol.Majority}
	f.at(2).shows(reg, protocol.Hello{}, agrees)
	n.command(protocol.Read{Op: 1, Key: "k", Level: majority, Limit: time.Minute})
	f.at(2).shows(reg, protocol.Answer{Op: 1, Same: true}, agrees)
	require.Empty(t, n.done, "of the three only one has answered")
	change := n.add(7)
	n.command(protocol.Write{Op: 2, Change: change, Level: protocol.Level{Name: protocol.Local}, Limit: time.Minute})
	n.settled()
	require.Len(t, n.done, 1, "it holds what it was given")
	f.at(3).shows(reg, protocol.Hello{}, agrees)
	require.Len(t, n.done, 1, "the read asks anew")
	f.at(2).shows(reg, protocol.Answer{Op: 1}, agrees)
	f.at(2).shows(reg, protocol.PutTaken{Op: 1}, agrees)
	n.settled()
	require.Len(t, n.done, 2)
}

// The store of a replica is older if its node has found less in it than nodes before it have
// shown, in messages or in what this node remembers, also when it has started again meanwhile.
func TestOlderStoresAreRecognised(t *testing.T) {
	memory := []protocol.StoreVersion{{ID: 2, UID: 77, Written: 9, Before: 4}}
	for name, test := range map[string]struct {
		known           []protocol.StoreVersion
		loaded, written uint64
		before          func(f *fleet, reg *protocol.Register)
		want            uint64
	}{
		"nothing is known":           {nil, 3, 4, nil, 0},
		"it is newer":                {memory, 12, 12, nil, 0},
		"it is the same":             {memory, 9, 9, nil, 0},
		"it is older":                {memory, 8, 8, nil, 9},
		"it was emptied":             {memory, 0, 0, nil, 9},
		"it has grown since":         {memory, 8, 200, nil, 9},
		"the node is the one before": {[]protocol.StoreVersion{{ID: 2, UID: 2, Written: 9, Before: 4}}, 5, 7, nil, 0},
		"and was older then":         {[]protocol.StoreVersion{{ID: 2, UID: 2, Written: 9, Before: 6}}, 5, 7, nil, 6},
		"a message of the node before, of what was in the store": {nil, 8, 8, func(f *fleet, reg *protocol.Register) {
			f.at(3).shows(reg, protocol.Hello{}, func(e *protocol.Envelope) { e.From, e.Loaded, e.Written = 2, 1, 8 })
		}, 0},
		"a message of the node before, of what was not": {nil, 8, 8, func(f *fleet, reg *protocol.Register) {
			f.at(3).shows(reg, protocol.Hello{}, func(e *protocol.Envelope) { e.From, e.Loaded, e.Written = 2, 1, 11 })
		}, 11},
		"a node with a copy of the disk is heard first": {nil, 0, 9, func(f *fleet, reg *protocol.Register) {
			f.at(3).shows(reg, protocol.Hello{}, func(e *protocol.Envelope) { e.From, e.Loaded, e.Written, e.Apart = 2, 8, 8, true })
		}, 0},
		"the node before counted once": {nil, 8, 8, func(f *fleet, reg *protocol.Register) {
			f.at(3).shows(reg, protocol.Hello{}, func(e *protocol.Envelope) { e.From, e.Loaded, e.Written, e.Apart = 2, 1, 11, true })
		}, 11},
	} {
		t.Run(name, func(t *testing.T) {
			f, reg := restarted(t, func(m *protocol.Meta) { m.Shown = test.known })
			say := func() {
				f.at(2).shows(reg, protocol.Hello{Ask: true}, func(e *protocol.Envelope) { e.Loaded, e.Written = test.loaded, test.written })
			}
			if test.before != nil {
				test.before(f, reg)
			}
			say()
			last := f.at(2).heard[len(f.at(2).heard)-1].message
			require.Equal(t, test.want == 0, last.Agrees)
			want := protocol.OlderStore{}
			if test.want != 0 {
				want = protocol.OlderStore{Of: 2, Written: test.want}
			}
			require.Equal(t, want, f.at(2).told())
		})
	}
}

// A number is only compared, however large it is, and one that no store shows is not heard.
func TestNumbersOfStoresThatLie(t *testing.T) {
	f, reg := restarted(t)
	f.at(2).shows(reg, protocol.Hello{}, func(e *protocol.Envelope) { e.Loaded, e.Written = 2, 1 })
	require.EqualValues(t, 1, f.at(1).Counts().Malformed)
	require.Zero(t, f.at(1).Remembers(0, 2))
	for _, i := range []int{2, 3} {
		f.at(i).shows(reg, protocol.Hello{}, func(e *protocol.Envelope) { e.Agrees, e.Written = true, math.MaxUint64 })
	}
	e, answered := f.at(2).answersTo(reg)
	require.True(t, answered)
	require.EqualValues(t, batches+1, e.Written)
	require.Equal(t, uint64(math.MaxUint64), f.at(1).Remembers(0, 2))
}

// What others have shown is written now and then, in batches on which nobody depends: their
// number is that of the one before, so that two who are at rest write nothing.
func TestWhatWasShownIsWritten(t *testing.T) {
	f, reg := restarted(t)
	for _, i := range []int{2, 3} {
		f.at(i).shows(reg, protocol.Hello{}, func(e *protocol.Envelope) { e.Agrees, e.Loaded, e.Written = true, 7, 8 })
	}
	f.run(3 * time.Second)
	f.at(1).settled()
	f.at(2).shows(reg, protocol.Hello{}, func(e *protocol.Envelope) { e.Loaded, e.Written = 7, 9 })
	var wrote []protocol.Meta
	for range 30 {
		f.run(100 * time.Millisecond)
		for _, c := range f.at(1).calls {
			wrote = append(wrote, c.Request.(protocol.WriteBatch).Meta)
		}
		f.at(1).settled()
	}
	require.Len(t, wrote, 1)
	require.EqualValues(t, batches+1, wrote[0].Written)
	require.Equal(t, []protocol.StoreVersion{{ID: 2, UID: 2, Written: 9}, {ID: 3, UID: 3, Written: 8}}, wrote[0].Shown)
	e, _ := f.at(2).answersTo(reg)
	require.EqualValues(t, batches+1, e.Written)
}

// older has the machine told that its store is older.
func older(t *testing.T, f *fleet, reg *protocol.Register, edit func(*protocol.Envelope)) {
	t.Helper()
	f.at(2).shows(reg, protocol.OlderStore{Of: 1, Written: batches + 1}, edit)
	f.at(3).shows(reg, protocol.Hello{}, edit)
	require.Contains(t, f.at(1).Survey().Apart, "older state")
	require.EqualValues(t, 1, f.at(1).Counts().Aged)
}

// Who is older puts its copy aside and begins anew under another id, as soon as the others
// have shown that they go on without it.
func TestWhoIsOlderBeginsAnew(t *testing.T) {
	f, reg := restarted(t)
	n := f.at(1)
	n.add(7)
	older(t, f, reg, agrees)
	f.run(200 * time.Millisecond)
	put := n.calls[len(n.calls)-1].Request.(protocol.WriteBatch)
	require.True(t, put.Wipe && put.Aside)
	require.EqualValues(t, 1, put.Meta.Older)
	require.EqualValues(t, batches, put.Meta.Written, "nobody depends on it")
	f.run(200 * time.Millisecond)
	require.IsType(t, protocol.WriteBatch{}, n.calls[len(n.calls)-1].Request, "the store keeps its id until the copy is aside")
	n.settled()
	f.run(200 * time.Millisecond)
	require.Len(t, n.calls, 1)
	renew := n.calls[0]
	require.Equal(t, protocol.RenewID{Of: 1}, renew.Request)
	f.at(2).heard, n.calls = nil, nil
	n.step(machine.Called{ID: renew.ID, Result: protocol.ReplicaID(11)})
	n.settled()
	require.EqualValues(t, 11, f.at(2).heard[len(f.at(2).heard)-1].message.From)
	require.Zero(t, n.table.Len())
	f.at(2).shows(reg, protocol.OlderStore{Of: 1, Written: batches + 1}, agrees)
	require.EqualValues(t, 1, n.Counts().Aged, "what is said of the former replica is past")
}

// Nothing is put aside while the others cannot go on without it, whoever says whatever.
func TestNothingIsPutAsideWithoutTheOthers(t *testing.T) {
	f, reg := restarted(t)
	for _, b := range []protocol.OlderStore{{Of: 1, Written: batches}, {Of: 2, Written: 99}, {}} {
		f.at(2).shows(reg, b, func(*protocol.Envelope) {})
		require.Zero(t, f.at(1).Counts().Aged)
	}
	older(t, f, reg, func(e *protocol.Envelope) { e.Agrees, e.Apart = true, e.From == 3 })
	f.run(20 * time.Second)
	for _, c := range f.at(1).calls {
		require.False(t, c.Request.(protocol.WriteBatch).Wipe)
	}
	f.at(1).settled()
	require.False(t, f.at(1).Survey().Quorum)
	_, answered := f.at(2).answersTo(reg)
	require.False(t, answered)

	f.at(1).command(protocol.AcceptLoss{})
	f.at(1).settled()
	require.Empty(t, f.at(1).Survey().Apart, "an operator has said that its copy counts")
	require.EqualValues(t, 2, f.at(1).Register(0).Lineage.Turn)
}

// Who was found to be older knows that after another start, whoever is there then.
func TestOlderIsWritten(t *testing.T) {
	f, reg := restarted(t, func(m *protocol.Meta) { m.Older = 1 })
	f.know(members(t, []int{1}, 2, 3), 1)
	f.run(time.Second)
	require.Contains(t, f.at(1).Survey().Apart, "older state")
	_, answered := f.at(2).answersTo(reg)
	require.False(t, answered)
}

// The replica of a node with an older store has another id from then on. A message that it had
// sent before, and that comes late, does not bring the former one back.
func TestALateMessageBringsNoFormerReplicaBack(t *testing.T) {
	f, reg := restarted(t)
	for _, said := range []struct {
		from    protocol.ReplicaID
		written uint64
	}{{2, 5}, {20, 6}, {2, 5}, {20, 6}, {2, 4}} {
		f.at(2).shows(reg, protocol.Hello{}, func(e *protocol.Envelope) { e.From, e.Written = said.from, said.written })
	}
	node, ok := f.at(1).Route(0).Node(20)
	require.True(t, ok)
	require.Equal(t, 2, int(node.UID))
	_, ok = f.at(1).Route(0).Node(2)
	require.False(t, ok)
}

// A replica in no set goes on telling the leader which one it is: one word may be lost, or be
// followed by an older one that was late.
func TestWhoIsInNoSetTellsTheLeaderAgain(t *testing.T) {
	reg := stable(1, 1, 3)
	f := alone(t, 3, 2, reg)
	for range 3 {
		f.run(time.Second)
		_, told := heardLast[protocol.Hello](f.at(1))
		require.True(t, told)
	}
	f.at(1).say(2, joint(reg, 1, 2, 3), protocol.Hello{})
	f.at(1).say(2, ended(joint(reg, 1, 2, 3)), protocol.Hello{})
	f.at(1).speak(2, protocol.Envelope{From: 1, Lineage: reg.Lineage, Gen: 3, Sealed: true, Body: protocol.Hello{}})
	f.at(1).heard = nil
	f.run(time.Second)
	_, told := heardLast[protocol.Hello](f.at(1))
	require.False(t, told, "it is in a set, and nothing changes")
}

// Two replicas that know of each other that the store is older say so once for each message,
// and not in answer to that word; each believes it.
func TestTwoOlderStoresDoNotAnswerEachOther(t *testing.T) {
	f, reg := restarted(t, func(m *protocol.Meta) { m.Shown = []protocol.StoreVersion{{ID: 2, UID: 77, Written: 9}} })
	lost := func(e *protocol.Envelope) { e.Loaded, e.Written = 3, 3 }
	f.at(2).shows(reg, protocol.Hello{}, lost)
	require.Equal(t, protocol.OlderStore{Of: 2, Written: 9}, f.at(2).told())
	f.at(2).shows(reg, protocol.OlderStore{Of: 1, Written: batches + 1}, lost)
	require.Equal(t, protocol.OlderStore{}, f.at(2).told())
	require.EqualValues(t, 1, f.at(1).Counts().Aged)
}
