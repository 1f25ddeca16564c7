// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shardlog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/remember"
	"github.com/quorate/quorate/sharding/remember/remembertest"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/shardlog"
	"github.com/quorate/quorate/sharding/state/statetest"
	"github.com/quorate/quorate/sharding/state/store"
)

func inBubble(t *testing.T, name string, part func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, part) })
}

// open returns a store of ids over a store of states.
func open(t testing.TB, st store.Store, change ...func(*shardlog.Config)) *shardlog.Store {
	t.Helper()
	cfg := shardlog.Default()
	for _, f := range change {
		f(&cfg)
	}
	s, err := shardlog.New(st, cfg, state.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	return s
}

// The store keeps the contract, over a store of states that keeps its own: on one node, and between two.
// covers F48.
func TestTheStoreKeepsTheContract(t *testing.T) {
	remembertest.Test(t, remembertest.Place{
		Run: inBubble,
		New: func(t testing.TB) remembertest.Server {
			st := memory.New()
			return remembertest.Server{
				Store: open(t, st), Other: open(t, st),
				Restart: func(t testing.TB) remember.Store { return open(t, st) },
			}
		},
	})
}

// It does so as well over a store whose calls are lost, done in part, done without an answer, or done late.
func TestAStoreOfStatesThatFails(t *testing.T) {
	for seed := range uint64(20) {
		inBubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			flaky := statetest.NewFlaky(memory.New(), seed)
			defer flaky.Calm()
			s := open(t, flaky, func(c *shardlog.Config) { c.State.Limit = time.Hour })
			want := map[string]bool{}
			var set remember.Set
			for n := range uint64(40) {
				var ids []string
				var err error
				set, ids, err = s.Open(t.Context(), remember.Shard{Kind: "k", Number: 1, Of: 12}, epoch.Epoch{Born: 1, N: n + 1})
				require.NoError(t, err)
				require.Len(t, ids, len(want))
				for _, id := range ids {
					require.True(t, want[id], id)
				}
				for i := range n % 5 {
					add, remove := fmt.Sprint("id-", (n*7+i)%11), fmt.Sprint("id-", (n*7+i+1)%11)
					require.NoError(t, set.Change(t.Context(), []string{add}, []string{remove}))
					want[add] = true
					delete(want, remove)
				}
			}
		})
	}
}

// first returns the set of one shard under an epoch.
func first(t *testing.T, s *shardlog.Store, n uint64) (remember.Set, []string) {
	t.Helper()
	set, ids, err := s.Open(t.Context(), remember.Shard{Kind: "k", Number: 7, Of: 12}, epoch.Epoch{Born: 1, N: n})
	require.NoError(t, err)
	return set, ids
}

// Events give way to snapshots, so that what is written and read for a set stays in proportion to its ids.
func TestAPageIsCompacted(t *testing.T) {
	st := memory.New()
	s := open(t, st, func(c *shardlog.Config) { c.Pages = 1 })
	set, _ := first(t, s, 1)
	for i := range 1000 {
		require.NoError(t, set.Change(t.Context(), []string{fmt.Sprint("id-", i)}, nil))
		if i >= 10 {
			require.NoError(t, set.Change(t.Context(), nil, []string{fmt.Sprint("id-", i-10)}))
		}
	}
	records, err := st.Load(t.Context(), []store.Claim{{Key: store.Key{Kind: "remembered", ID: "k/12/7/0"}, Owner: store.Owner{Epoch: epoch.Epoch{Born: 2}}}})
	require.NoError(t, err)
	require.LessOrEqual(t, len(records[0].Events), 128)
	_, ids, err := s.Open(t.Context(), remember.Shard{Kind: "k", Number: 7, Of: 12}, epoch.Epoch{Born: 3})
	require.NoError(t, err)
	require.Len(t, ids, 10)
}

// A page that is full takes what it has room for, says what it did not take, and goes on.
func TestAPageThatIsFull(t *testing.T) {
	s := open(t, memory.New(), func(c *shardlog.Config) { c.Pages, c.State.MaxBytes = 1, 128<<10 })
	set, _ := first(t, s, 1)
	var ids []string
	for i := range 300 {
		ids = append(ids, fmt.Sprintf("%03d%s", i, strings.Repeat("x", 497)))
	}
	var full *remember.FullError
	require.ErrorAs(t, set.Change(t.Context(), ids, nil), &full)
	require.ErrorContains(t, full, "shard 7 of 12 of k has no room for 40 entities")
	require.Equal(t, ids[260:], full.IDs)
	require.NoError(t, set.Change(t.Context(), ids[260:269], ids[:9]), "what is forgotten makes room")
	_, there := first(t, s, 2)
	require.ElementsMatch(t, ids[9:269], there)
}

// A record that is not what was written is not read, and nothing is written over it.
// covers F42.
func TestRecordsThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		value store.Value
		err   error
	}{
		"garbage":        {store.Value{Form: 1, Bytes: []byte("garbage")}, remember.ErrUnreadable},
		"a newer form":   {store.Value{Form: 2}, remember.ErrNewerForm},
		"no operation":   {store.Value{Form: 1, Bytes: []byte{9<<3 | 2, 1, 'a'}}, remember.ErrUnreadable},
		"an empty id":    {store.Value{Form: 1, Bytes: []byte{1<<3 | 2, 0}}, remember.ErrUnreadable},
		"an id too long": {store.Value{Form: 1, Bytes: append([]byte{1<<3 | 2, 0x81, 0x04}, make([]byte, 513)...)}, remember.ErrUnreadable},
		"not UTF-8":      {store.Value{Form: 1, Bytes: []byte{1<<3 | 2, 1, 0xff}}, remember.ErrUnreadable},
		"a number":       {store.Value{Form: 1, Bytes: []byte{1 << 3, 1}}, remember.ErrUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			st := memory.New()
			s := open(t, st)
			key, owner := store.Key{Kind: "remembered", ID: "k/12/7/0"}, store.Owner{Epoch: epoch.Epoch{Born: 1}, Instance: 1}
			_, err := st.Load(t.Context(), []store.Claim{{Key: key, Owner: owner}})
			require.NoError(t, err)
			_, err = st.Save(t.Context(), []store.Write{{Key: key, Owner: owner, Version: 1, Events: []store.Value{test.value}}})
			require.NoError(t, err)
			_, _, err = s.Open(t.Context(), remember.Shard{Kind: "k", Number: 7, Of: 12}, epoch.Epoch{Born: 1, N: 5})
			require.ErrorIs(t, err, test.err)
			require.ErrorContains(t, err, `shard 7 of 12 of k: remembered "k/12/7/0"`)
			_, _, err = s.Open(t.Context(), remember.Shard{Kind: "k", Number: 8, Of: 12}, epoch.Epoch{Born: 1, N: 5})
			require.NoError(t, err, "other shards go on")
			later := store.Owner{Epoch: epoch.Epoch{Born: 2}}
			records, err := st.Load(t.Context(), []store.Claim{{Key: key, Owner: later}})
			require.NoError(t, err)
			require.Len(t, records[0].Events, 1)
		})
	}
}

// The longest id that an entity can have is remembered; "an id too long" above has a byte more.
func TestTheLongestIDIsRemembered(t *testing.T) {
	longest := strings.Repeat("x", 512)
	require.NoError(t, sharding.CheckEntityID(longest))
	require.ErrorIs(t, sharding.CheckEntityID(longest+"x"), sharding.ErrInvalid)
	s := open(t, memory.New())
	set, _ := first(t, s, 1)
	require.NoError(t, set.Change(t.Context(), []string{longest}, nil))
	_, ids := first(t, s, 2)
	require.Equal(t, []string{longest}, ids)
}

// hanging is a store that does not answer before the context ends.
type hanging struct{ store.Store }

func (hanging) Load(ctx context.Context, _ []store.Claim) ([]store.Record, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A store that hangs is given up with the context of the caller.
func TestAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := open(t, hanging{memory.New()}).Open(ctx, remember.Shard{Kind: "k"}, epoch.Epoch{Born: 1})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, remember.ErrFenced)
		<-time.After(10 * time.Second) // The call of the store ends by its own limit.
	})
}

func TestConfigurationIsChecked(t *testing.T) {
	require.NoError(t, shardlog.Default().Validate())
	for text, change := range map[string]func(*shardlog.Config){
		"name":            func(c *shardlog.Config) { c.Name = "" },
		"pages":           func(c *shardlog.Config) { c.Pages = 65 },
		"state.max-bytes": func(c *shardlog.Config) { c.State.MaxBytes = 1000 },
		"state.batch":     func(c *shardlog.Config) { c.State.Batch = 0 },
	} {
		cfg := shardlog.Default()
		change(&cfg)
		require.ErrorContains(t, cfg.Validate(), text)
		_, err := shardlog.New(memory.New(), cfg)
		require.Error(t, err)
	}
}

// FuzzRecord: any bytes are read, or refused with an error that says so.
func FuzzRecord(f *testing.F) {
	f.Add(uint32(1), []byte{1<<3 | 2, 1, 'a', 2<<3 | 2, 1, 'a'})
	f.Add(uint32(1), []byte{1<<3 | 2, 1, 'a'})
	f.Add(uint32(2), []byte{})
	f.Add(uint32(0), []byte{9})
	f.Add(uint32(1), []byte{9<<3 | 2, 1, 'a'})
	f.Add(uint32(1), []byte{1<<3 | 2, 0})
	f.Fuzz(func(t *testing.T, form uint32, b []byte) {
		st := memory.New()
		key, owner := store.Key{Kind: "remembered", ID: "k/12/7/0"}, store.Owner{Epoch: epoch.Epoch{Born: 1}, Instance: 1}
		_, _ = st.Load(t.Context(), []store.Claim{{Key: key, Owner: owner}})
		_, _ = st.Save(t.Context(), []store.Write{{Key: key, Owner: owner, Version: 1, Events: []store.Value{{Form: form, Bytes: b}}}})
		set, ids, err := open(t, st).Open(t.Context(), remember.Shard{Kind: "k", Number: 7, Of: 12}, epoch.Epoch{Born: 1, N: 5})
		if err != nil {
			require.True(t, errors.Is(err, remember.ErrUnreadable) || errors.Is(err, remember.ErrNewerForm), "%v", err)
			return
		}
		require.NotContains(t, ids, "")
		require.NoError(t, set.Change(t.Context(), []string{"z"}, slices.Clone(ids)))
	})
}
