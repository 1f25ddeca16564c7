// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/remember"
)

// Test and its parts: first what one owner sees, then several owners, then names and numbers, and last a
// long run of owners that follow each other while calls are lost, come late, or are done without an answer.

// Server is what keeps the ids, as the test of a store has set it up.
type Server struct {
	// Store has no ids of the suite's kinds, whose names begin with "remembertest".
	Store remember.Store

	// Other is a store over the same ids, as another node has it. Nil: Store itself.
	Other remember.Store

	// Restart ends the store, and returns one over the same ids, as the next process would make it. Nil:
	// the store is in memory.
	Restart func(t testing.TB) remember.Store
}

// Place is where the suite runs.
type Place struct {
	// New starts a server, which ends with the test.
	New func(t testing.TB) Server

	// Run runs one part; nil: as a subtest. A store whose time may be virtual has each part run in a
	// bubble of testing/synctest.
	Run func(t *testing.T, name string, part func(t *testing.T))

	// Owners is how many owners follow each other in the long run; zero: 60.
	Owners int
}

// Test checks a store against the contract of [remember.Store].
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
		{"a set is empty at first", emptyAtFirst},
		{"what was remembered is there, and what was forgotten is not", changed},
		{"a change may be repeated", repeated},
		{"a later owner locks earlier ones out", lockedOut},
		{"owners are ordered by epoch", ordered},
		{"a change meets the next owner", met},
		{"sets are apart", apart},
		{"ids of all kinds", strange},
		{"many ids", many},
		{"a context that has ended", endedContext},
		{"a restart keeps all", restarted},
		{"owners follow each other under faults", followed},
	} {
		run(t, part.name, func(t *testing.T) {
			t.Helper()
			server := p.New(t)
			if server.Other == nil {
				server.Other = server.Store
			}
			part.test(&suite{t, p, server})
		})
	}
}

// suite is one part of the suite, on its server.
type suite struct {
	*testing.T

	place  Place
	server Server
}

// shard returns a shard of the suite.
func shard(n int) remember.Shard { return remember.Shard{Kind: "remembertest", Number: n, Of: 100} }

// under returns the n-th epoch.
func under(n int) epoch.Epoch {
	return epoch.Epoch{Born: 1, Term: singleton.Term{UpNumber: 1}, N: uint64(n)}
}

// ctx returns a context that bounds a call.
func (s *suite) ctx() context.Context { return patience.Context(s.T) }

// open opens a set, and returns the ids in order.
func (s *suite) open(st remember.Store, of remember.Shard, n int) (remember.Set, []string) {
	s.Helper()
	set, ids, err := st.Open(s.ctx(), of, under(n))
	require.NoError(s, err)
	require.NotNil(s, set)
	slices.Sort(ids)
	require.Equal(s, slices.Compact(slices.Clone(ids)), ids, "each id is there once")
	return set, ids
}

// has expects the ids of a set, and owns it from then on.
func (s *suite) has(st remember.Store, of remember.Shard, n int, ids ...string) remember.Set {
	s.Helper()
	set, there := s.open(st, of, n)
	require.ElementsMatch(s, ids, there)
	return set
}

func (s *suite) change(set remember.Set, add, remove []string) {
	s.Helper()
	require.NoError(s, set.Change(s.ctx(), add, remove))
}

func emptyAtFirst(s *suite) {
	s.has(s.server.Store, shard(1), 1)
	s.has(s.server.Other, shard(1), 2)
}

func changed(s *suite) {
	set := s.has(s.server.Store, shard(1), 1)
	s.change(set, []string{"a", "b", "c"}, nil)
	s.change(set, []string{"d"}, []string{"b"})
	set = s.has(s.server.Store, shard(1), 1, "a", "c", "d")
	s.change(set, []string{"b"}, []string{"a", "c", "d"})
	set = s.has(s.server.Other, shard(1), 2, "b")
	s.change(set, nil, []string{"b"})
	s.has(s.server.Store, shard(1), 3)
}

func repeated(s *suite) {
	set := s.has(s.server.Store, shard(1), 1)
	for range 3 {
		s.change(set, []string{"a", "b"}, []string{"never there"})
	}
	s.change(set, nil, []string{"a"})
	s.change(set, []string{"a"}, nil)
	s.change(set, nil, nil)
	s.has(s.server.Other, shard(1), 2, "a", "b")
}

func lockedOut(s *suite) {
	early := s.has(s.server.Store, shard(1), 1)
	s.change(early, []string{"a"}, nil)
	late := s.has(s.server.Other, shard(1), 2, "a")
	require.ErrorIs(s, early.Change(s.ctx(), []string{"x"}, []string{"a"}), remember.ErrFenced)
	s.change(late, []string{"b"}, nil)
	require.ErrorIs(s, early.Change(s.ctx(), nil, []string{"b"}), remember.ErrFenced)
	latest := s.has(s.server.Other, shard(1), 2, "a", "b")
	require.Error(s, late.Change(s.ctx(), []string{"y"}, nil), "of two owners under one epoch the later one is the owner")
	s.change(latest, []string{"c"}, nil)
	s.has(s.server.Store, shard(1), 3, "a", "b", "c")
}

// met has an owner change the set while the next one opens it. What was confirmed is what the next one finds, also
// where the two overlap, and what that does not find is not there later.
func met(s *suite) {
	of, there := shard(1), false
	for n := range meetings {
		early, ids := s.open(s.server.Store, of, 2*n+1)
		require.Equal(s, there, slices.Contains(ids, "x"))
		add, remove := []string{"x"}, []string(nil)
		if there {
			add, remove = nil, add
		}
		changed := make(chan error, 1)
		// The goroutine ends with its call, for which this function waits.
		go func() { changed <- early.Change(s.ctx(), add, remove) }()
		_, ids = s.open(s.server.Other, of, 2*n+2)
		now := slices.Contains(ids, "x")
		if err := <-changed; err == nil {
			require.NotEqual(s, there, now, "round %d: the change was confirmed", n)
		}
		there = now
	}
}

// meetings is how often an owner changes a set while the next one opens it.
const meetings = 200

func ordered(s *suite) {
	set := s.has(s.server.Store, shard(1), 5)
	s.change(set, []string{"a"}, nil)
	for _, st := range []remember.Store{s.server.Store, s.server.Other} {
		_, _, err := st.Open(s.ctx(), shard(1), under(4))
		require.ErrorIs(s, err, remember.ErrFenced)
	}
	s.change(set, []string{"b"}, nil)
	s.has(s.server.Other, shard(1), 6, "a", "b")
	later := under(1)
	later.Term.UpNumber = 2
	_, ids, err := s.server.Store.Open(s.ctx(), shard(1), later)
	require.NoError(s, err)
	require.ElementsMatch(s, []string{"a", "b"}, ids)
	_, _, err = s.server.Other.Open(s.ctx(), shard(1), under(1000))
	require.ErrorIs(s, err, remember.ErrFenced)
}

func apart(s *suite) {
	all := []remember.Shard{
		shard(1), shard(2), shard(12),
		{Kind: "remembertest", Number: 1, Of: 200},
		{Kind: "remembertest"},
		{Kind: "remembertest", Of: 1},
		{Kind: "remembertest/100", Number: 1, Of: 100},
		{Kind: "remembertest/100/1", Number: 2, Of: 1},
		{Kind: "remembertest 1", Number: 1, Of: 100},
	}
	for i, of := range all {
		s.change(s.has(s.server.Store, of, 1), []string{fmt.Sprint("id-", i)}, nil)
	}
	for i, of := range all {
		s.has(s.server.Other, of, 2, fmt.Sprint("id-", i))
	}
}

func strange(s *suite) {
	ids := []string{
		" ", "a", "A", "a ", "\x00", "a\x00b", "../..", "a/b/0/1", "%", "'; drop table", "\n", "ß", "日本", "\U0010ffff", "\u202e",
		strings.Repeat("x", 512), strings.Repeat("x", 511) + "y", "null", "0",
	}
	of := remember.Shard{Kind: "remembertest " + strings.Repeat("k", 128-len("remembertest ")), Number: 65_535, Of: 65_536}
	set := s.has(s.server.Store, of, 1)
	s.change(set, ids, nil)
	set = s.has(s.server.Other, of, 2, ids...)
	s.change(set, nil, ids[:5])
	s.has(s.server.Store, of, 3, ids[5:]...)
}

func many(s *suite) {
	const n = 5000
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("entity-%029d", i))
	}
	set := s.has(s.server.Store, shard(1), 1)
	for part := range slices.Chunk(ids, 1000) {
		s.change(set, part, nil)
	}
	for i := 0; i < n/2; i += 500 { // As they come and go in the life of a program.
		s.change(set, ids[:i], ids[i:i+500])
	}
	set, there := s.open(s.server.Other, shard(1), 2)
	want := slices.Clone(ids)
	want = slices.Delete(want, n/2-500, n/2)
	require.Equal(s, want, there)
	s.change(set, nil, ids)
	s.has(s.server.Store, shard(1), 3)
}

func endedContext(s *suite) {
	set := s.has(s.server.Store, shard(1), 1)
	ended, cancel := context.WithCancel(s.Context())
	cancel()
	watch := patience.Start(s.T)
	_ = set.Change(ended, []string{"a"}, nil) // It may have taken effect.
	_, _, _ = s.server.Store.Open(ended, shard(1), under(1))
	require.Less(s, watch.Elapsed(), patience.Limit)
	set, _ = s.open(s.server.Store, shard(1), 1)
	s.change(set, []string{"a", "b"}, nil)
	s.has(s.server.Other, shard(1), 2, "a", "b")
}

func restarted(s *suite) {
	if s.server.Restart == nil {
		return // The store is in memory.
	}
	set := s.has(s.server.Store, shard(1), 4)
	s.change(set, []string{"a", "b", "c"}, nil)
	s.change(set, nil, []string{"b"})
	next := s.server.Restart(s)
	_, _, err := next.Open(s.ctx(), shard(1), under(3))
	require.ErrorIs(s, err, remember.ErrFenced)
	s.has(next, shard(1), 5, "a", "c")
}

// followed has owners follow each other, each of which changes the set as often as it likes, and goes on after
// the next one has begun. What was confirmed must be there, and what the next owner has not seen must
// not come later.
func followed(s *suite) {
	owners := s.place.Owners
	if owners == 0 {
		owners = 60
	}
	r := rand.New(rand.NewPCG(1, 7))
	flaky := newFlaky(s.server.Store, s.server.Other, 1)
	surely := map[string]bool{} // What is known of an id; those of which nothing is known are not in it.
	var former []remember.Set
	for n := range owners {
		set, ids := s.takeOver(flaky, n+1)
		there := map[string]bool{}
		for _, id := range ids {
			there[id] = true
		}
		for id, is := range surely { //quorate:unordered Each is looked at.
			require.Equal(s, is, there[id], "owner %d finds %q: %t", n, id, there[id])
		}
		surely = map[string]bool{}
		for i := range universe {
			surely[name(i)] = there[name(i)]
		}
		whole := true
		for range r.IntN(6) {
			add, remove := draw(r)
			for _, id := range append(slices.Clone(add), remove...) {
				delete(surely, id)
			}
			if len(former) > 0 && r.IntN(2) == 0 { // An earlier owner does not know yet.
				x, y := draw(r)
				require.Error(s, former[r.IntN(len(former))].Change(s.ctx(), x, y))
			}
			if whole = flaky.change(s.ctx(), set, add, remove) == nil; !whole {
				break
			}
			for _, id := range add {
				surely[id] = true
			}
			for _, id := range remove {
				surely[id] = false
			}
		}
		if whole { // Else a call may still be under way.
			former = append(former, set)
		}
	}
	flaky.wait()
}

// universe is how many ids there are in the long run.
const universe = 12

func name(i int) string { return fmt.Sprint("id-", i) }

// draw draws a change.
func draw(r *rand.Rand) (add, remove []string) {
	for i := range universe {
		switch r.IntN(4) {
		case 0:
			add = append(add, name(i))
		case 1:
			remove = append(remove, name(i))
		}
	}
	return add, remove
}

// takeOver opens the set for the n-th owner, until the store answers.
func (s *suite) takeOver(f *flaky, n int) (remember.Set, []string) {
	for {
		set, ids, err := f.open(s.ctx(), shard(1), under(n))
		if err == nil {
			return set, ids
		}
		require.ErrorIs(s, err, errLost)
	}
}
