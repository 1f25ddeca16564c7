// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/ddata/store"
)

// The checks of a store: parts lists them, with a sentence for each. A check opens its own
// disk and reads what is there with content; the random changes are in random.go.

// Open opens the store on one disk for a cluster.
type Open func(cluster string) (store.Store, error)

// cluster is the name for which the suite opens disks.
const cluster = "storetest"

// TestStore runs the suite. Each call of newDisk makes another, empty disk.
func TestStore(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	for _, part := range parts() {
		t.Run(part.name, func(t *testing.T) { part.check(t, newDisk) })
	}
}

type part struct {
	name  string
	check func(*testing.T, func(testing.TB) Open)
}

func parts() []part {
	return []part{
		{"a disk has a name and counts its starts", checkNames},
		{"a new name replaces the old one and nothing else", checkNewID},
		{"what was applied is there after each start", checkKept},
		{"batches count in their order and their fields in theirs", checkOrder},
		{"groups are apart, and listed", checkGroups},
		{"any text is a key, any bytes are a value", checkContents},
		{"the bytes that were given belong to the caller", checkOwnership},
		{"a group can be wiped, and keeps its meta", checkWipe},
		{"what was put aside is listed, and nothing else", checkAsides},
		{"errors of functions and of contexts end the call", checkErrors},
		{"many may apply and load at the same time", checkConcurrency},
		{"a closed store says so", checkClosed},
		{"a disk is for one process and one cluster", checkExclusive},
		{"random changes with restarts are those of a map", checkRandom},
	}
}

// open opens the store on a disk for the time of the test.
func open(t testing.TB, disk Open) store.Store {
	t.Helper()
	s, err := disk(cluster)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() }) // Most tests have closed it.
	return s
}

// reopen closes a store and opens it again.
func reopen(t testing.TB, disk Open, s store.Store) store.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return open(t, disk)
}

func apply(t testing.TB, s store.Store, batches ...store.Batch) {
	t.Helper()
	if err := s.Apply(t.Context(), batches); err != nil {
		t.Fatalf("apply: %v", err)
	}
}

// contents is what a group holds; meta is "none" when there is none.
type contents struct {
	meta    string
	records map[string]string
}

const none = "none"

// content loads a group, and checks that its keys come in order and the meta first.
func content(t testing.TB, s store.Store, group string) contents {
	t.Helper()
	got := contents{meta: none, records: map[string]string{}}
	last, metas := "", 0
	err := s.Load(t.Context(), group, func(meta []byte) error {
		if metas++; metas > 1 || len(got.records) > 0 {
			t.Errorf("the meta of %q comes twice, or after a record", group)
		}
		got.meta = string(meta)
		return nil
	}, func(r store.Record) error {
		if len(got.records) > 0 && r.Key <= last {
			t.Errorf("the key %q comes after %q", r.Key, last)
		}
		last = r.Key
		got.records[r.Key] = string(r.Value)
		return nil
	})
	if err != nil {
		t.Fatalf("load %q: %v", group, err)
	}
	return got
}

func expect(t testing.TB, s store.Store, group, meta string, records map[string]string) {
	t.Helper()
	got := content(t, s, group)
	if got.meta != meta {
		t.Errorf("the meta of %q is %q, want %q", group, got.meta, meta)
	}
	if !maps.Equal(got.records, records) {
		t.Errorf("%q has %d records %.300q, want %d: %.300q", group, len(got.records), fmt.Sprint(got.records), len(records), fmt.Sprint(records))
	}
}

func put(group, key, value string) store.Batch {
	return store.Batch{Group: group, Put: []store.Record{{Key: key, Value: []byte(value)}}}
}

func checkNames(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	disk := newDisk(t)
	s := open(t, disk)
	id := s.ID()
	if id == 0 {
		t.Errorf("the ID is zero")
	}
	for start := range uint64(3) {
		if got := s.Starts(); got != start+1 {
			t.Errorf("starts are %d, want %d", got, start+1)
		}
		if got := s.ID(); got != id {
			t.Errorf("the ID was %016x and is %016x after start %d", id, got, start+1)
		}
		if got := s.Groups(); len(got) > 0 {
			t.Errorf("a new disk has groups: %q", got)
		}
		s = reopen(t, disk, s)
	}
	if other := open(t, newDisk(t)); other.ID() == id {
		t.Errorf("two disks have the ID %016x", id)
	}
}

func checkNewID(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	disk := newDisk(t)
	s := open(t, disk)
	apply(t, s, put("g", "k", "v"))
	before, starts := s.ID(), s.Starts()
	if err := s.NewID(t.Context()); err != nil {
		t.Fatalf("new id: %v", err)
	}
	drawn := s.ID()
	if drawn == before || drawn == 0 {
		t.Errorf("the ID was %016x and is %016x", before, drawn)
	}
	if s.Starts() != starts {
		t.Errorf("starts were %d and are %d", starts, s.Starts())
	}
	s = reopen(t, disk, s)
	if s.ID() != drawn {
		t.Errorf("the new ID was %016x and is %016x after a start", drawn, s.ID())
	}
	expect(t, s, "g", none, map[string]string{"k": "v"})
}

func checkKept(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	disk := newDisk(t)
	s := open(t, disk)
	want := map[string]string{}
	for round := range 4 {
		batch := store.Batch{Group: "g", Meta: fmt.Appendf(nil, "round %d", round)}
		for i := range 100 {
			key, value := fmt.Sprintf("key-%02d", (i*7+round)%100), fmt.Sprintf("%d of %d", i, round)
			batch.Put = append(batch.Put, store.Record{Key: key, Value: []byte(value)})
			want[key] = value
		}
		for i := range 10 {
			key := fmt.Sprintf("key-%02d", round*10+i)
			batch.Drop = append(batch.Drop, key)
			delete(want, key)
		}
		apply(t, s, batch)
		expect(t, s, "g", fmt.Sprintf("round %d", round), want)
		s = reopen(t, disk, s)
		expect(t, s, "g", fmt.Sprintf("round %d", round), want)
	}
}

func checkOrder(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	disk := newDisk(t)
	s := open(t, disk)
	apply(t, s, put("g", "a", "1"), put("g", "b", "1"), put("g", "c", "1"))
	apply(t, s,
		put("g", "a", "2"), put("g", "a", "3"),
		store.Batch{Group: "g", Put: []store.Record{{Key: "b", Value: []byte("2")}}, Drop: []string{"b", "never there"}},
		store.Batch{Group: "g", Put: []store.Record{{Key: "c", Value: []byte("2")}, {Key: "c", Value: []byte("3")}}, Meta: []byte("1")},
		store.Batch{Group: "g", Meta: []byte("2")},
		store.Batch{Group: "g"},
	)
	want := map[string]string{"a": "3", "c": "3"}
	expect(t, s, "g", "2", want)
	s = reopen(t, disk, s)
	expect(t, s, "g", "2", want)
	apply(t, s)
	expect(t, s, "g", "2", want)
}

func checkGroups(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	disk := newDisk(t)
	s := open(t, disk)
	apply(t, s, put("b", "k", "of b"), put("a", "k", "of a"), store.Batch{Group: "c", Meta: []byte{}}, put("", "k", "of nothing"))
	for range 2 {
		if got, want := s.Groups(), []string{"", "a", "b", "c"}; !slices.Equal(got, want) {
			t.Errorf("the groups are %q, want %q", got, want)
		}
		clear(s.Groups())
		expect(t, s, "a", none, map[string]string{"k": "of a"})
		expect(t, s, "b", none, map[string]string{"k": "of b"})
		expect(t, s, "c", "", nil)
		expect(t, s, "", none, map[string]string{"k": "of nothing"})
		expect(t, s, "never there", none, nil)
		s = reopen(t, disk, s)
	}
	apply(t, s, store.Batch{Group: "a", Drop: []string{"k"}})
	s = reopen(t, disk, s)
	expect(t, s, "a", none, nil)
	if got := len(s.Groups()); got != 4 {
		t.Errorf("there are %d groups after one has lost its only record, want 4", got)
	}
}

func checkContents(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	disk := newDisk(t)
	s := open(t, disk)
	want := map[string]string{
		"": "the empty key", "empty": "", "\x00": "zero", "\xff\xfe": "no text\xff", "é世\n": "some", "large": strings.Repeat("0123456789abcdef", 1<<17),
		strings.Repeat("k", 5000): "a long key",
	}
	batch := store.Batch{Group: "g\x00\xff/..", Meta: []byte(strings.Repeat("m", 100_000))}
	for key, value := range want {
		batch.Put = append(batch.Put, store.Record{Key: key, Value: []byte(value)})
	}
	apply(t, s, batch)
	expect(t, s, batch.Group, string(batch.Meta), want)
	s = reopen(t, disk, s)
	expect(t, s, batch.Group, string(batch.Meta), want)
	apply(t, s, store.Batch{Group: batch.Group, Put: []store.Record{{Key: "nil"}}})
	want["nil"] = ""
	s = reopen(t, disk, s)
	expect(t, s, batch.Group, string(batch.Meta), want)
}

func checkOwnership(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	disk := newDisk(t)
	s := open(t, disk)
	meta, value, drop := []byte("meta"), []byte("value"), []string{"other"}
	records := []store.Record{{Key: "key", Value: value}}
	batches := []store.Batch{put("g", "other", "1"), {Group: "g", Meta: meta, Put: records, Drop: drop}}
	apply(t, s, batches...)
	clear(meta)
	clear(value)
	clear(drop)
	clear(records)
	clear(batches)
	want := map[string]string{"key": "value"}
	expect(t, s, "g", "meta", want)
	expect(t, reopen(t, disk, s), "g", "meta", want)
}

func checkWipe(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	for _, aside := range []bool{false, true} {
		disk := newDisk(t)
		s := open(t, disk)
		apply(t, s, put("g", "a", "1"), put("g", "b", "1"), put("other", "a", "1"), store.Batch{Group: "g", Meta: []byte("m")})
		s = reopen(t, disk, s)
		apply(t, s,
			put("g", "c", "1"),
			store.Batch{Group: "g", Wipe: true, Aside: aside, Put: []store.Record{{Key: "b", Value: []byte("2")}}},
			put("g", "d", "2"),
		)
		want := map[string]string{"b": "2", "d": "2"}
		expect(t, s, "g", "m", want)
		s = reopen(t, disk, s)
		expect(t, s, "g", "m", want)
		expect(t, s, "other", none, map[string]string{"a": "1"})
		apply(t, s, store.Batch{Group: "g", Wipe: true, Aside: aside, Meta: []byte("n")}, store.Batch{Group: "new", Wipe: true, Aside: aside})
		s = reopen(t, disk, s)
		expect(t, s, "g", "n", nil)
		if got, want := s.Groups(), []string{"g", "new", "other"}; !slices.Equal(got, want) {
			t.Errorf("the groups are %q, want %q: nothing that was put aside is one", got, want)
		}
	}
}

func checkAsides(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	disk := newDisk(t)
	s := open(t, disk)
	listed := func(want int) []string {
		t.Helper()
		got := s.Asides()
		if len(got) != want {
			t.Errorf("%q are listed as put aside, want %d", got, want)
		}
		return got
	}
	apply(t, s, put("g", "a", "1"), store.Batch{Group: "g", Wipe: true})
	listed(0)
	apply(t, s, store.Batch{Group: "g", Wipe: true, Aside: true}, store.Batch{Group: "empty", Wipe: true, Aside: true})
	listed(0)
	apply(t, s, put("g", "a", "1"), store.Batch{Group: "g", Wipe: true, Aside: true})
	first := listed(1)
	if err := s.NewID(t.Context()); err != nil {
		t.Fatalf("new id: %v", err)
	}
	apply(t, s, put("g", "a", "2"), store.Batch{Group: "g", Aside: true}, store.Batch{Group: "g", Wipe: true, Aside: true})
	if both := listed(2); len(both) == 2 && len(first) == 1 && (both[0] != first[0] || both[1] == first[0]) {
		t.Errorf("%q is put aside first and %q after another time", first, both)
	}
	clear(s.Asides())
	before := listed(2)
	s = reopen(t, disk, s)
	if got := listed(2); !slices.Equal(got, before) {
		t.Errorf("%q is put aside, and %q after a start", before, got)
	}
	apply(t, s, put("g", "a", "1"))
	expect(t, s, "g", none, map[string]string{"a": "1"})
	listed(2)
}

func checkErrors(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	disk := newDisk(t)
	s := open(t, disk)
	apply(t, s, put("g", "a", "1"), put("g", "b", "1"), store.Batch{Group: "g", Meta: []byte("m")})
	stop := errors.New("stop")
	nothing := func([]byte) error { return nil }
	if err := s.Load(t.Context(), "g", func([]byte) error { return stop }, func(store.Record) error { return nil }); !errors.Is(err, stop) {
		t.Errorf("load returned %v for an error of the function for the meta", err)
	}
	calls := 0
	err := s.Load(t.Context(), "g", nothing, func(store.Record) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("load returned %v after %d calls of a function that fails", err, calls)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Load(ended, "g", nothing, func(store.Record) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("load returned %v for a context that has ended", err)
	}
	if err := s.Apply(ended, []store.Batch{put("g", "c", "1")}); !errors.Is(err, context.Canceled) {
		t.Errorf("apply returned %v for a context that has ended", err)
	}
	if err := s.NewID(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a new ID returned %v for a context that has ended", err)
	}
	want := map[string]string{"a": "1", "b": "1"}
	expect(t, s, "g", "m", want)
	expect(t, reopen(t, disk, s), "g", "m", want)
}

// Each Apply of the check writes the same value to two keys of a group, so that a Load that
// sees half of a batch is noticed.
func checkConcurrency(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	const writers, rounds = 8, 20
	disk := newDisk(t)
	s := open(t, disk)
	var all sync.WaitGroup
	for w := range writers {
		group := fmt.Sprint("g", w%2)
		all.Go(func() {
			for round := range rounds {
				value := fmt.Appendf(nil, "%d", round)
				err := s.Apply(t.Context(), []store.Batch{{Group: group, Put: []store.Record{
					{Key: fmt.Sprintf("%d-a", w), Value: value}, {Key: fmt.Sprintf("%d-b", w), Value: value},
				}}})
				if err != nil {
					t.Errorf("apply: %v", err)
				}
			}
		})
		all.Go(func() {
			for range rounds {
				got := map[string]string{}
				err := s.Load(t.Context(), group, func([]byte) error { return nil }, func(r store.Record) error {
					got[r.Key] = string(r.Value)
					return nil
				})
				a, b := got[fmt.Sprintf("%d-a", w)], got[fmt.Sprintf("%d-b", w)]
				if err != nil || a != b {
					t.Errorf("load saw %q and %q of one batch, and returned %v", a, b, err)
				}
				_, _, _ = s.ID(), s.Starts(), s.Groups()
			}
		})
	}
	all.Wait()
	s = reopen(t, disk, s)
	for w := range writers {
		got := content(t, s, fmt.Sprint("g", w%2)).records[fmt.Sprintf("%d-a", w)]
		if got != fmt.Sprint(rounds-1) {
			t.Errorf("writer %d has left %q, want %d", w, got, rounds-1)
		}
	}
}

func checkClosed(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	s := open(t, newDisk(t))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if err := s.Apply(t.Context(), []store.Batch{put("g", "k", "v")}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("apply returned %v, want %v", err, store.ErrClosed)
	}
	err := s.Load(t.Context(), "g", func([]byte) error { return nil }, func(store.Record) error { return nil })
	if !errors.Is(err, store.ErrClosed) {
		t.Errorf("load returned %v, want %v", err, store.ErrClosed)
	}
	if err := s.NewID(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a new ID returned %v, want %v", err, store.ErrClosed)
	}
}

func checkExclusive(t *testing.T, newDisk func(testing.TB) Open) {
	t.Helper()
	disk := newDisk(t)
	s := open(t, disk)
	apply(t, s, put("g", "k", "v"))
	starts := s.Starts()
	if second, err := disk(cluster); !errors.Is(err, store.ErrInUse) {
		t.Errorf("the second store returned %v and %v, want %v", second, err, store.ErrInUse)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if foreign, err := disk("another cluster"); !errors.Is(err, store.ErrCluster) {
		t.Errorf("another cluster got %v and %v, want %v", foreign, err, store.ErrCluster)
	}
	s = open(t, disk)
	expect(t, s, "g", none, map[string]string{"k": "v"})
	if s.Starts() != starts+1 {
		t.Errorf("starts are %d, want %d: what was refused is none", s.Starts(), starts+1)
	}
}
