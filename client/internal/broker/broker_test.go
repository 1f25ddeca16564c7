// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/client/internal/broker"
)

// world is a machine with the nodes and the programs around it, and what the laws are held against.
type world struct {
	t        *rapid.T
	d        *broker.Broker
	cfg      broker.Config
	now      broker.Instant
	out      broker.Output
	nodes    []simulated
	live     map[*broker.Request]bool          // Accepted, and not ended.
	refused  []*broker.Request                 // Found no room; offered again when there is some.
	handled  map[*broker.Request]int           // How many nodes have handled it.
	written  map[*broker.Request]int           // How often it was handed to a writer.
	results  map[*broker.Request]broker.Result // How it has ended.
	deadline map[*broker.Request]bool
	back     map[*broker.Request]int // How many nodes have sent it back.
}

// simulated is a node: what it was sent and has not answered.
type simulated struct {
	up, going bool
	window    int
	has       []*broker.Request
	ids       []uint64
}

func newWorld(t *rapid.T) *world {
	cfg := broker.Config{
		Nodes: rapid.IntRange(1, 4).Draw(t, "nodes"), Queued: rapid.IntRange(1, 6).Draw(t, "queued"),
		Bytes: rapid.IntRange(1, 40).Draw(t, "bytes"), Shards: 8, Kinds: 2,
	}
	return &world{
		t: t, d: broker.New(cfg), cfg: cfg, nodes: make([]simulated, cfg.Nodes), live: map[*broker.Request]bool{},
		handled: map[*broker.Request]int{}, written: map[*broker.Request]int{}, results: map[*broker.Request]broker.Result{}, deadline: map[*broker.Request]bool{}, back: map[*broker.Request]int{},
	}
}

// settle takes what a step says, and holds it against the laws.
func (w *world) settle() {
	for _, e := range w.out.Ended {
		require.True(w.t, w.live[e.Request], "L1: a request ends once: %v", e.Result)
		delete(w.live, e.Request)
		w.results[e.Request] = e.Result
		switch e.Code {
		case broker.OK, broker.EntityFailed:
			require.Positive(w.t, w.handled[e.Request], "L2: an answer comes from a node")
		case broker.UnknownOutcome:
			require.Positive(w.t, w.written[e.Request], "L3: nothing is unknown of what no node has had")
		default:
			require.Zero(w.t, w.handled[e.Request], "L4: what was handled is not called undelivered")
		}
	}
	if w.out.Room {
		again := w.refused
		w.refused = nil
		for _, r := range again {
			if w.deadline[r] && r.Deadline <= w.now {
				continue // Its program has given it up.
			}
			w.submit(r)
		}
	}
	require.Equal(w.t, len(w.live), w.d.Count())
}

func (w *world) submit(r *broker.Request) {
	w.live[r] = true
	if !w.d.Submit(r, &w.out) {
		delete(w.live, r)
		w.refused = append(w.refused, r)
		return
	}
	w.settle()
}

func (w *world) Submit(*rapid.T) {
	r := &broker.Request{
		Kind: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.t, "kind"), Entity: fmt.Sprint(rapid.IntRange(0, 20).Draw(w.t, "entity")),
		Payload: make([]byte, rapid.IntRange(0, 30).Draw(w.t, "size")), Tell: rapid.Bool().Draw(w.t, "tell"),
	}
	if rapid.Bool().Draw(w.t, "limited") {
		r.Deadline, w.deadline[r] = w.now+broker.Instant(rapid.IntRange(1, 50).Draw(w.t, "time")), true
	}
	w.submit(r)
}

// Take has the writer of a node take what there is.
func (w *world) Take(*rapid.T) { w.take(w.node()) }

func (w *world) take(at int) {
	n := &w.nodes[at]
	for _, r := range w.d.Take(w.now, at, 40, nil, &w.out) {
		require.True(w.t, n.up && !n.going, "L5: nothing is sent to a node that takes nothing")
		require.True(w.t, w.live[r])
		w.written[r]++
		require.LessOrEqual(w.t, w.written[r], 1+w.back[r], "L6: once, and again only after it was sent back")
		n.has, n.ids = append(n.has, r), append(n.ids, r.ID)
	}
	require.LessOrEqual(w.t, len(n.has), max(n.window, 1), "L7: a node has no more than its window")
	w.settle()
}

// Answer has a node say what has become of a request, of any that it has.
func (w *world) Answer(*rapid.T) { w.answer(w.node(), false) }

func (w *world) answer(at int, good bool) {
	n := &w.nodes[at]
	if !n.up || len(n.has) == 0 {
		return
	}
	i := rapid.IntRange(0, len(n.has)-1).Draw(w.t, "which")
	r, id := n.has[i], n.ids[i]
	n.has, n.ids = slices.Delete(n.has, i, i+1), slices.Delete(n.ids, i, i+1)
	code := broker.OK
	if !good {
		code = rapid.SampledFrom([]broker.Code{broker.OK, broker.OK, broker.NotDelivered, broker.NoStanding, broker.UnknownKind, broker.Expired, broker.EntityFailed, broker.UnknownOutcome}).Draw(w.t, "code")
	}
	o := broker.Outcome{ID: id, Result: broker.Result{Code: code}}
	switch {
	case code == broker.OK, code == broker.EntityFailed:
		w.handled[r]++
		require.Equal(w.t, 1, w.handled[r], "L8: nothing is handled twice")
	case sentBack(code):
		w.back[r]++
	}
	if rapid.Bool().Draw(w.t, "place") {
		o.Shard, o.Shards, o.Node = rapid.IntRange(-1, 9).Draw(w.t, "shard"), rapid.IntRange(0, 9).Draw(w.t, "shards"), fmt.Sprint("n", rapid.IntRange(0, 5).Draw(w.t, "home"))
	}
	waited := w.live[r]
	w.d.Heard(w.now, at, []broker.Outcome{o, {ID: 1 << 60, Result: broker.Result{Code: broker.OK}}}, &w.out)
	w.settle()
	if waited && !sentBack(code) {
		require.False(w.t, w.live[r], "L11: an outcome that says more than that nobody has handled it is the end: %v", code)
	}
}

// sentBack reports whether an outcome says that nobody has handled the request, and another node might.
func sentBack(c broker.Code) bool {
	return c == broker.NotDelivered || c == broker.NoStanding || c == broker.UnknownKind
}

// Crash has the connection to a node end; some of what was sent may have been handled.
func (w *world) Crash(*rapid.T) { w.down(w.node(), rapid.Bool().Draw(w.t, "refused")) }

func (w *world) down(at int, refused bool) {
	n := &w.nodes[at]
	for _, r := range n.has {
		if rapid.Bool().Draw(w.t, "handled") {
			w.handled[r]++
			require.Equal(w.t, 1, w.handled[r], "L8: nothing is handled twice")
		}
	}
	*n = simulated{}
	w.d.Down(at, "gone", refused, &w.out)
	w.settle()
}

func (w *world) Connect(*rapid.T) {
	if at := w.node(); !w.nodes[at].up {
		w.up(at)
	}
}

func (w *world) up(at int) {
	w.nodes[at] = simulated{up: true, window: rapid.IntRange(0, 5).Draw(w.t, "window")}
	w.d.Up(w.now, at, fmt.Sprint("n", at), w.nodes[at].window, &w.out)
	w.settle()
}

func (w *world) Going(*rapid.T) {
	if at := w.node(); w.nodes[at].up {
		w.nodes[at].going = true
		w.d.Going(at, &w.out)
		w.settle()
	}
}

// Cancel has a program not wait any longer.
func (w *world) Cancel(*rapid.T) {
	var all []*broker.Request
	for r := range w.live {
		all = append(all, r)
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b *broker.Request) int { return int(a.ID) - int(b.ID) })
	r := all[rapid.IntRange(0, len(all)-1).Draw(w.t, "which")]
	require.True(w.t, w.d.Cancel(r, &w.out))
	w.settle()
	require.False(w.t, w.live[r])
	require.False(w.t, w.d.Cancel(r, &w.out), "it has ended")
	w.settle()
}

func (w *world) Tick(*rapid.T) {
	w.now += broker.Instant(rapid.IntRange(1, 30).Draw(w.t, "time"))
	w.d.Overdue(w.now, &w.out)
	w.settle()
	for r := range w.live {
		require.False(w.t, w.deadline[r] && r.Deadline <= w.now, "L9: nothing outlives its deadline")
	}
}

func (w *world) node() int { return rapid.IntRange(0, w.cfg.Nodes-1).Draw(w.t, "node") }

func TestLawsOfTheBroker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"submit": w.Submit, "submit again": w.Submit, "take": w.Take, "take again": w.Take, "answer": w.Answer, "answer again": w.Answer,
			"crash": w.Crash, "connect": w.Connect, "connect again": w.Connect, "going": w.Going, "cancel": w.Cancel, "tick": w.Tick,
		})
		w.heal()
	})
}

// heal has all nodes come back and answer: then nothing waits any more.
func (w *world) heal() {
	for at := range w.nodes {
		w.down(at, false)
		w.up(at)
	}
	for range 1000 {
		w.d.Overdue(w.now, &w.out)
		w.settle()
		for at := range w.nodes {
			w.take(at)
			for len(w.nodes[at].has) > 0 {
				w.answer(at, true)
			}
		}
	}
	require.Empty(w.t, w.live, "L10: in the end everything has ended")
	require.Empty(w.t, w.refused, "L10: in the end there was room for everything")
	requests, bytes := w.d.Waiting()
	require.Zero(w.t, requests)
	require.Zero(w.t, bytes)
	w.d.Close(&w.out)
	w.settle()
	r := new(broker.Request)
	w.live[r] = true
	require.True(w.t, w.d.Submit(r, &w.out))
	w.settle()
	require.Equal(w.t, broker.NotDelivered, w.results[r].Code)
}

// Of all that a node can say of a request, three outcomes have it go on to another node, which are those by which
// nobody has handled it; each other one is its end, on whatever node.
func TestOnlyWhatNobodyHasHandledGoesToAnotherNode(t *testing.T) {
	for code := broker.OK; code <= broker.UnknownKind; code++ {
		d, out := broker.New(broker.Config{Nodes: 2, Queued: 10, Bytes: 1000, Shards: 10, Kinds: 2}), broker.Output{}
		for at := range 2 {
			d.Up(1, at, fmt.Sprint("n", at), 10, &out)
		}
		r := &broker.Request{Kind: "k", Entity: "x"}
		require.True(t, d.Submit(r, &out))
		at := out.Wake[0]
		require.Len(t, d.Take(1, at, 10, nil, &out), 1)
		d.Heard(2, at, []broker.Outcome{{ID: r.ID, Result: broker.Result{Code: code}}}, &out)
		if sentBack(code) {
			require.Empty(t, out.Ended, "code %v", code)
			require.Equal(t, []int{1 - at}, out.Wake, "code %v", code)
			require.Equal(t, []*broker.Request{r}, d.Take(2, 1-at, 10, nil, &out))
			continue
		}
		require.Equal(t, []broker.Ended{{Request: r, Result: broker.Result{Code: code}}}, out.Ended)
		require.Empty(t, d.Take(2, 1-at, 10, nil, &out), "code %v", code)
	}
}

// What was canceled after it was written keeps its place in the window of its node, which has it as before, until
// the node says what became of it; then the place is free for the next one.
func TestWhatWasCanceledKeepsItsPlaceInTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.IntRange(1, 6).Draw(t, "window")
		d, out := broker.New(broker.Config{Nodes: 1, Queued: 20, Bytes: 1000, Shards: 10, Kinds: 2}), broker.Output{}
		d.Up(1, 0, "n0", window, &out)
		submit := func() *broker.Request {
			r := &broker.Request{Kind: "k", Entity: "x"}
			require.True(t, d.Submit(r, &out))
			return r
		}
		var has []*broker.Request
		for range window {
			has = append(has, submit())
		}
		require.Equal(t, has, d.Take(1, 0, 1000, nil, &out))
		waits := submit()
		given := has[rapid.IntRange(0, window-1).Draw(t, "which")]
		require.True(t, d.Cancel(given, &out))
		require.Empty(t, out.Wake, "the node still has as many as it takes")
		require.Empty(t, d.Take(2, 0, 1000, nil, &out))
		d.Heard(3, 0, []broker.Outcome{{ID: given.ID, Result: broker.Result{Code: broker.OK}}}, &out)
		require.Empty(t, out.Ended, "it has ended before")
		require.Equal(t, []*broker.Request{waits}, d.Take(3, 0, 1000, nil, &out))
	})
}

// What waits for a place of a node goes where its entity lives, once that is known.
func TestRequestsGoWhereTheirEntitiesLive(t *testing.T) {
	d, out := broker.New(broker.Config{Nodes: 3, Queued: 100, Bytes: 1000, Shards: 10, Kinds: 2}), broker.Output{}
	for at := range 3 {
		d.Up(1, at, fmt.Sprint("n", at), 100, &out)
	}
	shard := int(xxhash.Sum64String("x") % 10)
	ask := func() int {
		r := &broker.Request{Kind: "k", Entity: "x"}
		require.True(t, d.Submit(r, &out))
		require.Len(t, out.Wake, 1)
		at := out.Wake[0]
		require.Len(t, d.Take(1, at, 10, nil, &out), 1)
		home := broker.Outcome{ID: r.ID, Result: broker.Result{Code: broker.OK}}
		if at != 1 {
			home.Shard, home.Shards, home.Node = shard, 10, "n1"
		}
		d.Heard(2, at, []broker.Outcome{home}, &out)
		return at
	}
	for ask() == 1 {
		continue // By chance.
	}
	for range 5 {
		require.Equal(t, 1, ask())
	}
	// A silent node comes last, until it is heard.
	r := &broker.Request{Kind: "k", Entity: "x"}
	require.True(t, d.Submit(r, &out))
	d.Take(3, 1, 10, nil, &out)
	require.True(t, d.Cancel(r, &out))
	require.NotEqual(t, 1, ask())
	d.Down(1, "gone", false, &out)
	require.NotEqual(t, 1, ask())
}

// The hash is that of the cluster. The values are those of the specification's reference implementation, for each way
// through the function: no byte, single bytes, four, eight, a stripe and more.
func TestTheShardOfAnEntityIsFoundByThePublishedHashOfItsID(t *testing.T) {
	for id, hash := range map[string]uint64{
		"":    0xef46db3751d8e999,
		"a":   0xd24ec4f1a98c6e5b,
		"abc": 0x44bc2cf5ad770999,
		"Nobody inspects the spammish repetition":                         0xfbcea83c8a378bf1,
		"Call me Ishmael. Some years ago--never mind how long precisely-": 0x02a2e85470d6fd96,
	} {
		const shards, home = 1009, 2
		d, out := broker.New(broker.Config{Nodes: 3, Queued: 100, Bytes: 1000, Shards: shards, Kinds: 2}), broker.Output{}
		for at := range 3 {
			d.Up(1, at, fmt.Sprint("n", at), 100, &out)
		}
		other := &broker.Request{Kind: "k", Entity: "another"}
		require.True(t, d.Submit(other, &out))
		by := out.Wake[0]
		require.Len(t, d.Take(1, by, 10, nil, &out), 1)
		d.Heard(1, by, []broker.Outcome{{
			ID: other.ID, Result: broker.Result{Code: broker.OK}, Shard: int(hash % shards), Shards: shards, Node: fmt.Sprint("n", home),
		}}, &out)
		for range 6 {
			out.Wake = nil
			require.True(t, d.Submit(&broker.Request{Kind: "k", Entity: id}, &out))
			require.Equal(t, []int{home}, out.Wake, "%q", id)
			require.Len(t, d.Take(1, home, 1, nil, &out), 1)
		}
	}
}

func TestClientsThatMayNotAskAreToldAtOnce(t *testing.T) {
	d, out := broker.New(broker.Config{Nodes: 2, Queued: 100, Bytes: 1000, Shards: 10, Kinds: 2}), broker.Output{}
	waits, late := new(broker.Request), new(broker.Request)
	require.True(t, d.Submit(waits, &out))
	d.Down(0, "no", true, &out)
	require.Empty(t, out.Ended, "the other node may be another one's")
	d.Down(1, "no", true, &out)
	require.Equal(t, []broker.Ended{{Request: waits, Result: broker.Result{Code: broker.Refused, Detail: "no"}}}, out.Ended)
	require.True(t, d.Submit(late, &out))
	require.Equal(t, broker.Refused, out.Ended[0].Code)
	d.Up(1, 0, "n0", 1, &out)
	require.True(t, d.Submit(new(broker.Request), &out))
	require.Empty(t, out.Ended)
}
