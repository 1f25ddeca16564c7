// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package statetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/internal/simulation"
	"github.com/quorate/quorate/sharding/state/store"
)

// Test and its parts: first the rules of one record, then calls with many, then what a restart keeps,
// and in the end owners that compete under faults.

// Server is what keeps the records, as the test of a store has set it up.
type Server struct {
	// Store is over no records of the suite's kinds, which begin with "statetest".
	Store store.Store

	// Restart ends the store, and returns one over the same records, as the next process would make
	// it. Nil: the store is in memory.
	Restart func(t testing.TB) store.Store
}

// Place is where the suite runs.
type Place struct {
	// New starts a server, which ends with the test.
	New func(t testing.TB) Server

	// Run runs one part; nil: as a subtest. A store whose time may be virtual has each part run in a
	// bubble of testing/synctest.
	Run func(t *testing.T, name string, part func(t *testing.T))

	// Changes is how many changes the owners that compete ask for; zero: 2,000.
	Changes int
}

// Test checks a store against the contract of [store.Store].
func Test(t *testing.T, p Place) {
	t.Helper()
	run := p.Run
	if run == nil {
		run = func(t *testing.T, name string, part func(t *testing.T)) {
			t.Helper()
			t.Run(name, part)
		}
	}
	for _, part := range []struct {
		name string
		test func(*suite)
	}{
		{"a record is empty at first", emptyAtFirst},
		{"what was saved is loaded", saved},
		{"a later owner locks earlier ones out", lockedOut},
		{"owners are ordered by epoch and instance", ordered},
		{"a write is done once", once},
		{"a write at another version does nothing", otherVersion},
		{"a record that nobody has claimed is not written", unclaimed},
		{"one call has many records", many},
		{"names and bytes of all kinds", strange},
		{"a context that has ended", endedContext},
		{"a restart keeps all", restarted},
		{"owners compete under faults", compete},
	} {
		run(t, part.name, func(t *testing.T) {
			t.Helper()
			server := p.New(t)
			part.test(&suite{t, p, server, server.Store})
		})
	}
}

// suite is one part of the suite, on its server.
type suite struct {
	*testing.T

	place  Place
	server Server
	store  store.Store
}

// ctx returns a context that bounds a call.
func (s *suite) ctx() context.Context { return patience.Context(s.T) }

func (s *suite) load(claims ...store.Claim) []store.Record {
	s.Helper()
	records, err := s.store.Load(s.ctx(), claims)
	require.NoError(s, err)
	require.Len(s, records, len(claims))
	return records
}

func (s *suite) save(writes ...store.Write) []store.Head {
	s.Helper()
	heads, err := s.store.Save(s.ctx(), writes)
	require.NoError(s, err)
	require.Len(s, heads, len(writes))
	return heads
}

// has requires that an owner, which has claimed the record, finds so much in it.
func (s *suite) has(k store.Key, owner store.Owner, version uint64, snapshot string, events ...string) {
	s.Helper()
	r := s.load(store.Claim{Key: k, Owner: owner})[0]
	require.Equal(s, store.Head{Owner: owner, Version: version}, r.Head)
	require.Equal(s, snapshot, string(r.Snapshot.Bytes))
	require.Equal(s, snapshot != "", r.Snapshot.Form > 0)
	var found []string
	for _, e := range r.Events {
		require.Equal(s, uint32(7), e.Form)
		found = append(found, string(e.Bytes))
	}
	require.Equal(s, events, found)
}

func named(id string) store.Key { return store.Key{Kind: "statetest", ID: id} }

func owner(n, instance uint64) store.Owner {
	return store.Owner{Epoch: epoch.Epoch{Born: 1764000000000, Term: singleton.Term{UpNumber: 1, UID: 1, Start: 1}, N: n}, Instance: instance}
}

func value(form uint32, text string) store.Value { return store.Value{Form: form, Bytes: []byte(text)} }

// snapshot is a write of a whole state.
func snapshot(k store.Key, o store.Owner, expected uint64, text string) store.Write {
	return store.Write{Key: k, Owner: o, Expected: expected, Version: expected + 1, Snapshot: value(3, text)}
}

// happened is a write of events.
func happened(k store.Key, o store.Owner, expected uint64, texts ...string) store.Write {
	w := store.Write{Key: k, Owner: o, Expected: expected, Version: expected + uint64(len(texts))}
	for _, text := range texts {
		w.Events = append(w.Events, value(7, text))
	}
	return w
}

func emptyAtFirst(s *suite) {
	s.has(named("a"), owner(1, 1), 0, "")
	s.has(named("a"), owner(1, 1), 0, "")
}

func saved(s *suite) {
	k, o := named("a"), owner(1, 1)
	s.has(k, o, 0, "")
	bytes := []byte("one")
	first := snapshot(k, o, 0, "")
	first.Snapshot.Bytes = bytes
	require.Equal(s, []store.Head{first.After()}, s.save(first))
	copy(bytes, "xxx") // The store keeps none of the bytes that it was given.
	s.has(k, o, 1, "one")
	s.save(happened(k, o, 1, "b", "c"))
	s.save(happened(k, o, 3, "d"))
	s.has(k, o, 4, "one", "b", "c", "d")
	r := s.load(store.Claim{Key: k, Owner: o})[0]
	require.Equal(s, uint32(3), r.Snapshot.Form)
	copy(r.Events[0].Bytes, "x") // What was returned belongs to the caller.
	s.has(k, o, 4, "one", "b", "c", "d")

	jump := snapshot(k, o, 4, "two")
	jump.Version = 9 // A snapshot that stands for five events.
	require.Equal(s, []store.Head{jump.After()}, s.save(jump))
	s.has(k, o, 9, "two")
	s.save(happened(k, o, 9, "e"))
	erased := snapshot(k, o, 10, "")
	erased.Snapshot = store.Value{}
	s.save(erased)
	s.has(k, o, 11, "")
	s.save(happened(k, o, 11, "f"))
	s.has(k, o, 12, "", "f")
}

func lockedOut(s *suite) {
	k, earlier, later := named("a"), owner(1, 5), owner(2, 1)
	s.load(store.Claim{Key: k, Owner: earlier})
	s.save(snapshot(k, earlier, 0, "one"))
	s.has(k, later, 1, "one")
	require.Equal(s, []store.Head{{Owner: later, Version: 1}}, s.save(snapshot(k, earlier, 1, "late")))
	require.Equal(s, []store.Head{{Owner: later, Version: 1}}, s.save(happened(k, earlier, 1, "late")))
	require.Equal(s, store.Head{Owner: later, Version: 1}, s.load(store.Claim{Key: k, Owner: earlier})[0].Head)
	s.has(k, later, 1, "one")
	s.save(happened(k, later, 1, "two"))
	s.has(k, later, 2, "one", "two")
}

// ordered claims one record for owners that differ in one field each, each above all before.
func ordered(s *suite) {
	k := named("a")
	e := func(born int64, up gossip.UpNumber, uid gossip.UID, start, n uint64) epoch.Epoch {
		return epoch.Epoch{Born: born, Term: singleton.Term{UpNumber: up, UID: uid, Start: start}, N: n}
	}
	rising := []store.Owner{
		{Epoch: e(1, 1, 5, 1, 9), Instance: 3},
		{Epoch: e(1, 1, 5, 1, 9), Instance: 20},
		{Epoch: e(1, 1, 5, 1, 10), Instance: 1},
		{Epoch: e(1, 1, 5, 2, 1), Instance: 1},
		{Epoch: e(1, 1, 6, 1, 1), Instance: 1},
		{Epoch: e(1, 1, math.MaxUint64, 1, 1), Instance: 1},
		{Epoch: e(1, 2, 5, 1, 1), Instance: 1},
		{Epoch: e(256, 1, 5, 1, 1), Instance: math.MaxInt64},
		{Epoch: e(math.MaxInt64, 1, 5, 1, 1), Instance: 1},
	}
	for i, o := range rising {
		s.has(k, o, uint64(i), lastOf(i))
		if i > 0 {
			before := rising[i-1]
			require.Equal(s, o, s.load(store.Claim{Key: k, Owner: before})[0].Owner, "%v is above %v", o, before)
			require.Equal(s, store.Head{Owner: o, Version: uint64(i)}, s.save(snapshot(k, before, uint64(i), "late"))[0])
		}
		s.save(snapshot(k, o, uint64(i), lastOf(i+1)))
	}
}

func lastOf(i int) string {
	if i == 0 {
		return ""
	}
	return fmt.Sprint("state ", i)
}

func once(s *suite) {
	k, o := named("a"), owner(1, 1)
	s.load(store.Claim{Key: k, Owner: o})
	for range 2 { // The second is told that the write is there.
		require.Equal(s, store.Head{Owner: o, Version: 2}, s.save(happened(k, o, 0, "a", "b"))[0])
	}
	for range 2 {
		require.Equal(s, store.Head{Owner: o, Version: 3}, s.save(snapshot(k, o, 2, "ab"))[0])
	}
	s.save(happened(k, o, 3, "c"))
	require.Equal(s, store.Head{Owner: o, Version: 4}, s.save(snapshot(k, o, 2, "ab"))[0], "that comes late")
	s.has(k, o, 4, "ab", "c")
}

func otherVersion(s *suite) {
	k, o := named("a"), owner(1, 1)
	s.load(store.Claim{Key: k, Owner: o})
	s.save(snapshot(k, o, 0, "one"))
	for _, expected := range []uint64{0, 2, math.MaxInt64 - 10} {
		require.Equal(s, store.Head{Owner: o, Version: 1}, s.save(happened(k, o, expected, "x"))[0])
	}
	s.has(k, o, 1, "one")
}

func unclaimed(s *suite) {
	k := named("a")
	require.Equal(s, []store.Head{{}}, s.save(snapshot(k, owner(1, 1), 0, "x")))
	s.has(k, owner(1, 1), 0, "")
	require.Equal(s, store.Head{Owner: owner(1, 1)}, s.save(snapshot(k, owner(2, 1), 0, "x"))[0], "by an owner that has claimed nothing")
	s.has(k, owner(1, 1), 0, "")
}

// many has calls with records of which some refuse.
func many(s *suite) {
	const n = 100
	var claims []store.Claim
	var writes []store.Write
	for i := range n {
		k, o := named(fmt.Sprint(n-i)), owner(5, uint64(i+1))
		if i%3 == 0 {
			s.load(store.Claim{Key: k, Owner: owner(6, 1)})
		}
		claims = append(claims, store.Claim{Key: k, Owner: o})
		if i%2 == 0 {
			writes = append(writes, snapshot(k, o, 0, fmt.Sprint("state ", i)))
		} else {
			writes = append(writes, happened(k, o, 0, fmt.Sprint("event ", i), "more"))
		}
	}
	for i, r := range s.load(claims...) {
		want := claims[i].Owner
		if i%3 == 0 {
			want = owner(6, 1)
		}
		require.Equal(s, store.Head{Owner: want}, r.Head, "record %d", i)
	}
	for i, head := range s.save(writes...) {
		want := writes[i].After()
		if i%3 == 0 {
			want = store.Head{Owner: owner(6, 1)}
		}
		require.Equal(s, want, head, "record %d", i)
	}
	for i, c := range claims {
		switch {
		case i%3 == 0:
			s.has(c.Key, owner(6, 1), 0, "")
		case i%2 == 0:
			s.has(c.Key, c.Owner, 1, fmt.Sprint("state ", i))
		default:
			s.has(c.Key, c.Owner, 2, "", fmt.Sprint("event ", i), "more")
		}
	}
	require.Empty(s, s.load())
	require.Empty(s, s.save())
}

func strange(s *suite) {
	long := strings.Repeat("z", 1024)
	keys := []store.Key{
		named("'; DROP TABLE x; --"), named(`"\%_`), named("\x00"), named("a\x00b"), named("a/b"), named("ä\u202e😀"), named(long), named("a"),
		{Kind: "statetest/x", ID: "y"},
		{Kind: "statetest", ID: "x/y"},
		{Kind: "statetest\x00", ID: "a"},
		{Kind: "statetest" + strings.Repeat("k", 119), ID: long},
	}
	for i, k := range keys {
		o := owner(uint64(i+1), 1)
		s.has(k, o, 0, "")
		s.save(snapshot(k, o, 0, fmt.Sprint(i)))
	}
	for i, k := range keys {
		s.has(k, owner(uint64(i+1), 1), 1, fmt.Sprint(i))
	}
	k, o := keys[0], owner(1, 1)
	empty := snapshot(k, o, 1, "")
	s.save(empty) // A state without bytes is not the same as no state.
	require.Equal(s, uint32(3), s.load(store.Claim{Key: k, Owner: o})[0].Snapshot.Form)
	large := strings.Repeat("\x00\xff", 100<<10)
	s.save(snapshot(k, o, 2, large))
	s.save(happened(k, o, 3, large, ""))
	s.has(k, o, 5, large, large, "")
	forms := snapshot(k, o, 5, "x")
	forms.Snapshot.Form = math.MaxInt32
	s.save(forms)
	require.Equal(s, uint32(math.MaxInt32), s.load(store.Claim{Key: k, Owner: o})[0].Snapshot.Form)
}

// endedContext: a call may be done or not, but it ends, and the store goes on.
func endedContext(s *suite) {
	ctx, cancel := context.WithCancel(s.ctx())
	cancel()
	_, _ = s.store.Load(ctx, []store.Claim{{Key: named("a"), Owner: owner(1, 1)}})
	_, _ = s.store.Save(ctx, []store.Write{snapshot(named("a"), owner(1, 1), 0, "x")})
	require.Equal(s, owner(1, 1), s.load(store.Claim{Key: named("a"), Owner: owner(1, 1)})[0].Owner)
}

func restarted(s *suite) {
	if s.server.Restart == nil {
		s.Log("left out: the store is in memory")
		return
	}
	k, o := named("a"), owner(2, 1)
	s.load(store.Claim{Key: k, Owner: o})
	s.save(snapshot(k, o, 0, "one"))
	s.save(happened(k, o, 1, "two"))
	s.store = s.server.Restart(s)
	require.Equal(s, store.Head{Owner: o, Version: 2}, s.load(store.Claim{Key: k, Owner: owner(1, 9)})[0].Head, "the owner of before is locked out")
	s.has(k, o, 2, "one", "two")
}

// competitors is how many owners compete, for so many records.
const (
	competitors = 4
	contested   = 3
)

// compete has owners change the same records, most of which were replaced and do not know it.
func compete(s *suite) {
	flaky := NewFlaky(s.store, 1)
	s.Cleanup(flaky.Calm) // Also after a failure: the server ends next.
	game := &game{suite: s, flaky: flaky}
	for range contested {
		game.histories = append(game.histories, simulation.NewHistory())
	}
	changes := s.place.Changes
	if changes == 0 {
		changes = 2000
	}
	var all sync.WaitGroup
	for n := range competitors {
		all.Go(func() { game.play(n, changes/competitors) })
	}
	all.Wait()
	flaky.Calm()
	acknowledged := 0
	for r, h := range game.histories {
		game.n++
		final := s.load(store.Claim{Key: contest(r), Owner: owner(game.n, 1)})[0]
		list, err := simulation.Content(final)
		require.NoError(s, err)
		require.NoError(s, h.Check(list), "record %d", r)
		acknowledged += h.Acknowledged()
	}
	s.Logf("%d changes: %d acknowledged, %+v", changes, acknowledged, game.stats)
	require.Positive(s, acknowledged)
	require.Positive(s, game.stats.Fenced, "nobody was replaced")
}

func contest(r int) store.Key { return named(fmt.Sprint("contested ", r)) }

// game is what the competitors share.
type game struct {
	*suite

	flaky     *Flaky
	histories []*simulation.History

	mu    sync.Mutex
	n     uint64 // The number of the last epoch.
	stats state.Stats
}

// next returns the number of a new epoch, above all others.
func (g *game) next() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
	return g.n
}

// play is one competitor: a node, which mostly writes by what it knows, and now and then is the home
// of a record anew.
func (g *game) play(n, changes int) {
	r := rand.New(rand.NewPCG(uint64(n), 2))
	keeper, err := state.NewKeeper(g.flaky, quick(), state.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		g.Error(err)
		return
	}
	epochs, handles, lists := [contested]uint64{}, [contested]*state.Handle{}, [contested][]string{}
	for c := range changes {
		i := r.IntN(contested)
		if epochs[i] == 0 || r.IntN(10) == 0 {
			epochs[i], handles[i] = g.next(), nil
		}
		ctx := patience.Context(g.T)
		if handles[i] == nil {
			h, record, err := keeper.Open(ctx, contest(i), owner(epochs[i], 1).Epoch)
			if err != nil {
				if errors.Is(err, state.ErrFenced) && r.IntN(2) == 0 {
					epochs[i] = 0 // It hears of that.
				}
				continue
			}
			if lists[i], err = simulation.Content(record); err != nil {
				g.Error(err)
			}
			handles[i] = h
			g.histories[i].Read(lists[i])
		}
		text := fmt.Sprintf("%d of %d", c, n)
		g.histories[i].Ask(text)
		lists[i] = append(lists[i], text)
		if err := save(ctx, handles[i], lists[i], r.IntN(4) == 0); err != nil {
			handles[i] = nil
		} else {
			g.histories[i].Acknowledge(text)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stats.Fenced += keeper.Stats().Fenced
	g.stats.Saves += keeper.Stats().Saves
	g.stats.FailedCalls += keeper.Stats().FailedCalls
	g.stats.Unanswered += keeper.Stats().Unanswered
}

// save saves a list whose last change is new.
func save(ctx context.Context, h *state.Handle, list []string, whole bool) error {
	if !whole {
		return h.SaveEvents(ctx, []store.Value{{Form: 1, Bytes: []byte(list[len(list)-1])}})
	}
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return h.SaveSnapshot(ctx, store.Value{Form: 1, Bytes: b}, 1)
}

// quick is a configuration for a store whose faults last for milliseconds.
func quick() state.Config {
	c := state.Default()
	c.Limit, c.CallTimeout, c.Pause, c.PauseMost = 5*time.Second, 5*time.Second, time.Millisecond, 5*time.Millisecond
	return c
}
