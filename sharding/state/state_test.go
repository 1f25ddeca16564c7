// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/store"
	network "github.com/quorate/quorate/transport/memory"
)

// Entities with states on clusters of a few nodes in one process, in virtual time, over a store that a
// test can stop, fail and look into: first the store and the nodes, then what is kept, what is held
// back, what ends an instance, and what the store may do wrong.

// limit bounds every wait.
const limit = 2 * time.Minute

// disturbed is a store in memory that a test interferes with.
type disturbed struct {
	*memory.Store

	mu     sync.Mutex
	before func(writes []store.Write) error // Before a save takes effect; nil: nothing.
	after  func() error                     // When a save has taken effect; nil: nothing.
	loads  func(claims []store.Claim) ([]store.Record, error)
}

func (d *disturbed) set(f func(d *disturbed)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

func (d *disturbed) Load(ctx context.Context, claims []store.Claim) ([]store.Record, error) {
	d.mu.Lock()
	loads := d.loads
	d.mu.Unlock()
	if loads != nil {
		return loads(claims)
	}
	return d.Store.Load(ctx, claims)
}

func (d *disturbed) Save(ctx context.Context, writes []store.Write) ([]store.Head, error) {
	d.mu.Lock()
	before, after := d.before, d.after
	d.mu.Unlock()
	if before != nil {
		if err := before(writes); err != nil {
			return nil, err
		}
	}
	heads, err := d.Store.Save(context.WithoutCancel(ctx), writes) // It takes effect, however late.
	if after != nil {
		err = errors.Join(err, after())
	}
	return heads, err
}

// record returns what the store has of an entity.
func (d *disturbed) record(id string) store.Record {
	records, _ := d.Store.Load(context.Background(), []store.Claim{{Key: key(id)}})
	return records[0]
}

func key(id string) store.Key { return store.Key{Kind: "counter", ID: id} }

type (
	number  = *wrapperspb.Int64Value
	counter struct{ Sum int64 }
)

// world is a cluster.
type world struct {
	*testing.T

	network *network.Network
	store   *disturbed
	cfg     state.Config
	nodes   []*node
	kind    func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number]
}

type node struct {
	*membership.Node

	w      *world
	system *sharding.System
	region *sharding.Region[number]
	keeper *state.Keeper
}

func inBubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			T: t, network: network.NewNetwork(), store: &disturbed{Store: memory.New()}, cfg: state.Default(),
			kind: func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
				return state.Snapshots(k, state.JSON[counter](), add)
			},
		}
		defer func() {
			for _, n := range w.nodes {
				n.close()
			}
		}()
		f(w)
	})
}

// add adds the message to the sum, and replies with it; a negative number fails, after it was added.
func add(c *state.Context[counter], more number) error {
	c.State().Sum += more.GetValue()
	if more.GetValue() < 0 {
		return errors.New("a negative number")
	}
	return c.Reply(wrapperspb.Int64(c.State().Sum))
}

// start starts a node.
func (w *world) start() *node {
	i := len(w.nodes)
	cfg, quiet := membership.Default(), slog.New(slog.DiscardHandler)
	cfg.Cluster.Name, cfg.Node.Address = "test", fmt.Sprintf("10.0.0.%d:7946", i+1)
	cfg.Membership.SeedNodes = []string{"10.0.0.1:7946"}
	member, err := membership.Start(w.Context(), cfg, membership.WithLogger(quiet), membership.WithTransport(w.network.Transport))
	require.NoError(w, err)
	system, err := sharding.New(member, sharding.Default(), sharding.WithLogger(quiet))
	require.NoError(w, err)
	keeper, err := state.NewKeeper(w.store, w.cfg, state.WithLogger(quiet))
	require.NoError(w, err)
	n := &node{Node: member, w: w, system: system, keeper: keeper}
	n.region, err = sharding.Start(system, sharding.Kind[number]{Name: "counter", Shards: 8, New: w.kind(keeper)})
	require.NoError(w, err)
	w.nodes = append(w.nodes, n)
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	require.NoError(w, member.AwaitUp(ctx))
	return n
}

func (n *node) close() {
	require.NoError(n.w, n.Close())
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	require.NoError(n.w, n.system.AwaitEnd(ctx))
}

// ask asks an entity.
func (n *node) ask(id string, more int64) (int64, error) {
	ctx, cancel := context.WithTimeout(n.w.Context(), limit)
	defer cancel()
	sum, err := sharding.Ask[number](ctx, n.region, id, wrapperspb.Int64(more))
	return sum.GetValue(), err
}

// sum requires that an entity says so.
func (n *node) sum(id string, more, want int64) {
	n.w.Helper()
	sum, err := n.ask(id, more)
	require.NoError(n.w, err)
	require.Equal(n.w, want, sum)
}

// fails requires that an ask fails with a text, at an entity that has failed.
func (n *node) fails(id string, more int64, words string) {
	n.w.Helper()
	_, err := n.ask(id, more)
	require.ErrorIs(n.w, err, sharding.ErrEntityFailed)
	require.ErrorContains(n.w, err, words)
}

// The state of an entity outlives its instance, by whatever that ends: it is idle, it fails, its node
// leaves, or is gone.
func TestAStateOutlivesItsInstance(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, c, d := w.start(), w.start(), w.start(), w.start()
		for i := range int64(20) {
			a.sum(fmt.Sprint(i), i, i)
		}
		<-time.After(5 * time.Minute) // Every entity is passivated.
		for i := range int64(20) {
			b.sum(fmt.Sprint(i), 1, i+1)
		}
		a.fails("7", -1, "a negative number")
		a.sum("7", 0, 8)
		require.NoError(w, a.Leave(w.Context()))
		for i := range int64(20) {
			d.sum(fmt.Sprint(i), 1, i+2)
		}
		b.close()
		w.nodes = slices.DeleteFunc(w.nodes, func(n *node) bool { return n == b })
		<-time.After(time.Minute) // What was sent to it has an unknown outcome.
		for i := range int64(20) {
			_, _ = c.ask(fmt.Sprint(i), 0)
			c.sum(fmt.Sprint(i), 0, i+2)
		}
		require.Equal(w, uint64(3), w.store.record("3").Version)
	})
}

func TestWhatHasNotChangedIsNotSaved(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.start()
		n.sum("a", 0, 0)
		require.Zero(w, n.keeper.Stats().Saves)
		n.sum("a", 5, 5)
		n.sum("a", 0, 5)
		n.sum("a", 0, 5)
		require.Equal(w, uint64(1), n.keeper.Stats().Saves)
		require.JSONEq(w, `{"Sum":5}`, string(w.store.record("a").Snapshot.Bytes))
	})
}

// A reply waits for the save: while the store is silent nobody hears of the change.
func TestAReplyWaitsForTheSave(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.start()
		n.sum("a", 1, 1)
		release := make(chan struct{})
		w.store.set(func(d *disturbed) { d.before = func([]store.Write) error { <-release; return nil } })
		answered := make(chan error, 1)
		go func() { // It ends when the store is released.
			_, err := n.ask("a", 2)
			answered <- err
		}()
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Empty(w, answered)
		require.Equal(w, uint64(1), w.store.record("a").Version)
		close(release)
		require.NoError(w, <-answered)
		require.Equal(w, uint64(2), w.store.record("a").Version)
	})
}

// An answer that is lost does not make a change happen twice, nor fail.
func TestALostAnswerIsRecognised(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.start()
		lose := 3
		w.store.set(func(d *disturbed) {
			d.after = func() error {
				if lose--; lose >= 0 {
					return errors.New("connection reset")
				}
				return nil
			}
		})
		n.sum("a", 5, 5)
		n.sum("a", 1, 6)
		s := n.keeper.Stats()
		require.Equal(w, []uint64{2, 3, 5}, []uint64{s.Saves, s.FailedCalls, s.SaveCalls})
		require.Equal(w, uint64(2), w.store.record("a").Version)
	})
}

// A store that is slow delays the changes and nothing else: each is saved once, with its reply, also if
// a call takes longer than a call should, and what changes nothing is answered at once.
func TestAStoreThatIsSlow(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.start()
		n.sum("a", 1, 1)
		n.sum("b", 7, 7)
		sum := int64(1)
		for _, slow := range []time.Duration{w.cfg.CallTimeout / 2, 3 * w.cfg.CallTimeout} {
			w.store.set(func(d *disturbed) { d.before = func([]store.Write) error { <-time.After(slow); return nil } })
			began := time.Now()
			answered := make(chan error, 1)
			go func() { // It ends with the answer.
				_, err := n.ask("a", 1)
				answered <- err
			}()
			synctest.Wait()
			n.sum("b", 0, 7)
			require.Less(w, time.Since(began), 10*time.Millisecond, "b waits for a worker at most")
			require.NoError(w, <-answered)
			require.GreaterOrEqual(w, time.Since(began), slow)
			require.Less(w, time.Since(began), w.cfg.Limit)
			sum++
			require.JSONEq(w, fmt.Sprintf(`{"Sum":%d}`, sum), string(w.store.record("a").Snapshot.Bytes))
			require.EqualValues(w, sum, w.store.record("a").Version)
		}
		require.Zero(w, n.keeper.Stats().Unanswered)
	})
}

// A store that is down fails the messages that change something, and nothing of them is there
// afterwards; when it is back, so is the entity. An entity that is asked for nothing new does not need the store.
func TestAStoreThatIsDown(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.start()
		n.sum("a", 1, 1)
		n.sum("unharmed", 5, 5)
		down := errors.New("connection refused")
		w.store.set(func(d *disturbed) {
			d.before = func([]store.Write) error { return down }
			d.loads = func([]store.Claim) ([]store.Record, error) { return nil, down }
		})
		began := time.Now()
		n.fails("a", 2, "the store has not answered in time: connection refused")
		require.InDelta(w, w.cfg.Limit.Seconds(), time.Since(began).Seconds(), 3)
		n.fails("a", 0, "connection refused") // It cannot be loaded.
		n.fails("b", 0, "connection refused")
		n.sum("unharmed", 0, 5)
		require.NotZero(w, n.keeper.Stats().Unanswered)
		w.store.set(func(d *disturbed) { d.before, d.loads = nil, nil })
		<-time.After(time.Minute)
		n.sum("a", 0, 1)
		n.sum("b", 3, 3)
	})
}

// An instance whose record a later owner has does not write, answers nothing, and stops.
func TestAnOwnerThatWasReplacedStops(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.start()
		n.sum("a", 1, 1)
		later := w.store.record("a").Owner
		later.Epoch.Born++
		other, err := w.store.Store.Load(w.Context(), []store.Claim{{Key: key("a"), Owner: later}})
		require.NoError(w, err)
		require.Equal(w, uint64(1), other[0].Version)
		n.fails("a", 2, "a later owner has the record")
		n.fails("a", 0, "a later owner has the record")
		require.Equal(w, store.Head{Owner: later, Version: 1}, w.store.record("a").Head)
		require.NotZero(w, n.keeper.Stats().Fenced)
		n.sum("b", 2, 2)
	})
}

// The node of an entity is cut off while a save is on its way, and the save comes to the store when the
// next home of the entity has gone on: it comes to nothing.
func TestALateSaveOfANodeThatWasCutOff(t *testing.T) {
	inBubble(t, func(w *world) {
		var mu sync.Mutex
		lives := map[string]gossip.NodeID{}
		w.kind = func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			return state.Snapshots(k, state.JSON[counter](), func(c *state.Context[counter], more number) error {
				mu.Lock()
				lives[c.ID()] = c.Node()
				mu.Unlock()
				return add(c, more)
			})
		}
		for range 4 {
			w.start()
		}
		a, cut, id := w.nodes[0], w.nodes[3], ""
		for i := 0; id == ""; i++ {
			a.sum(fmt.Sprint(i), 1, 1)
			if lives[fmt.Sprint(i)] == cut.Self() {
				id = fmt.Sprint(i)
			}
		}
		release, held := make(chan struct{}), make(chan struct{})
		var first atomic.Bool
		w.store.set(func(d *disturbed) {
			d.before = func([]store.Write) error {
				if first.CompareAndSwap(false, true) {
					close(held)
					<-release
				}
				return nil
			}
		})
		over := make(chan error, 1)
		go func() { // The test waits for it.
			_, err := a.ask(id, 100)
			over <- err
		}()
		<-held
		for _, o := range w.nodes[:3] {
			w.network.Cut(o.Self().Address, cut.Self().Address)
		}
		require.ErrorIs(w, <-over, sharding.ErrUnknownOutcome)
		a.sum(id, 5, 6)
		require.NotEqual(w, cut.Self(), lives[id])
		before := w.store.record(id).Head
		close(release)
		synctest.Wait()
		require.Equal(w, before, w.store.record(id).Head)
		a.sum(id, 1, 7)
	})
}

// Each instance owns its record anew, also on one node: what an earlier one has under way comes to nothing.
func TestInstancesOfOneHomeAreToldApart(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.start()
		n.sum("a", 1, 1)
		first := w.store.record("a").Owner
		n.fails("a", -1, "negative")
		n.sum("a", 2, 3)
		second := w.store.record("a").Owner
		require.Equal(w, first.Epoch, second.Epoch)
		require.True(w, first.Less(second))
	})
}

// What the store does not take of one entity, and what it panics at, does not keep others from being
// saved.
func TestAnEntityThatCannotBeSavedHoldsUpNobody(t *testing.T) {
	for name, fault := range map[string]func() error{
		"refused":  func() error { return errors.New("value too large") },
		"panicked": func() error { panic("no such column") },
		"deserted": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.cfg.Calls = 1
				var failed atomic.Int64 // Requests of calls that have failed.
				n := w.start()
				for i := range 20 {
					n.sum(fmt.Sprint(i), 1, 1)
				}
				w.store.set(func(d *disturbed) {
					d.before = func(writes []store.Write) error {
						<-time.After(20 * time.Millisecond) // So that others come meanwhile.
						if slices.ContainsFunc(writes, func(write store.Write) bool { return write.Key.ID == "7" }) {
							failed.Add(int64(len(writes)))
							return fault()
						}
						return nil
					}
				})
				var all sync.WaitGroup
				for i := range 20 {
					all.Go(func() {
						for more := range int64(20) {
							sum, err := n.ask(fmt.Sprint(i), 1)
							switch {
							case i == 7:
								require.ErrorIs(w, err, sharding.ErrEntityFailed)
								return
							case name == "deserted" && err != nil:
								return // Its goroutine has made the call for all, and ended.
							}
							require.NoError(w, err)
							require.Equal(w, more+2, sum)
						}
					})
				}
				all.Wait()
				w.store.set(func(d *disturbed) { d.before = nil })
				<-time.After(time.Minute)
				n.sum("7", 5, 6)
				require.Less(w, failed.Load(), int64(55), "what fails is soon alone")
			})
		})
	}
}

// A store that does not keep its contract is found out, and harms only the entity.
func TestAStoreThatLies(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.start()
		n.sum("a", 1, 1)
		w.store.set(func(d *disturbed) {
			d.loads = func([]store.Claim) ([]store.Record, error) { return nil, nil }
		})
		n.fails("b", 1, "0 answers to 1 requests")
		w.store.set(func(d *disturbed) {
			d.loads = func(c []store.Claim) ([]store.Record, error) { return make([]store.Record, len(c)), nil }
		})
		n.fails("c", 1, "a version that this owner has not written")
		w.store.set(func(d *disturbed) { d.loads = nil })
		o := w.store.record("a").Owner // Another program writes in the name of the owner.
		_, err := w.store.Store.Save(w.Context(), []store.Write{{Key: key("a"), Owner: o, Expected: 1, Version: 3}})
		require.NoError(w, err)
		n.fails("a", 1, "a version that this owner has not written")
		require.NotZero(w, n.keeper.Stats().Foreign)
		n.sum("a", 0, 0)
	})
}

// A state that cannot be read, or must not be, does not start its entity, and stays as it is.
func TestRecordsThatCannotBeUsed(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.start()
		for id, c := range map[string]struct {
			write store.Write
			words string
		}{
			"garbage": {store.Write{Snapshot: store.Value{Form: 1, Bytes: []byte("{]")}}, "cannot be decoded: form 1: invalid character"},
			"another": {store.Write{Snapshot: store.Value{Form: 1, Bytes: []byte("[1]")}}, "cannot be decoded: form 1: json: cannot unmarshal array"},
			"newer":   {store.Write{Snapshot: store.Value{Form: 2, Bytes: []byte("{}")}}, "written in a newer form: it has form 2, this program reads forms up to 1"},
			"events":  {store.Write{Events: []store.Value{{Form: 1, Bytes: []byte("{}")}}}, "it has 1 events"},
		} {
			owner := store.Owner{Instance: 1}
			_, err := w.store.Store.Load(w.Context(), []store.Claim{{Key: key(id), Owner: owner}})
			require.NoError(w, err)
			c.write.Key, c.write.Owner, c.write.Version = key(id), owner, 1
			_, err = w.store.Store.Save(w.Context(), []store.Write{c.write})
			require.NoError(w, err)
			n.fails(id, 1, c.words)
			r := w.store.record(id)
			require.Equal(w, uint64(1), r.Version)
			require.Equal(w, c.write.Snapshot, r.Snapshot)
		}
		n.sum("healthy", 1, 1)
	})
}

// Timers are turns too, and what is done after the save is done after the save.
func TestTimersAndWhatFollowsTheSave(t *testing.T) {
	inBubble(t, func(w *world) {
		var after []uint64
		w.kind = func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			return state.Snapshots(k, state.JSON[counter](), func(c *state.Context[counter], more number) error {
				c.After("twice", 10*time.Second, func(c *state.Context[counter]) error {
					c.State().Sum *= 2
					c.AfterSave(func() error { after = append(after, w.store.record("a").Version); return nil })
					return nil
				})
				return add(c, more)
			})
		}
		n := w.start()
		n.sum("a", 4, 4)
		<-time.After(20 * time.Second)
		synctest.Wait()
		require.JSONEq(w, `{"Sum":8}`, string(w.store.record("a").Snapshot.Bytes))
		require.Equal(w, []uint64{2}, after)
		n.sum("a", 1, 9)
	})
}

// ledger is a state that is made of events.
type ledger struct {
	Sum     int64
	Entries []string
}

func booked(l *ledger, entry *string) {
	l.Sum += int64(len(*entry))
	l.Entries = append(l.Entries, *entry)
}

// books emits as many events as the message says; a negative number has the state erased, and as many
// emitted.
func books(c *state.Context[ledger], emit func(*string), more number) error {
	if more.GetValue() < 0 {
		c.Erase()
	}
	for range max(more.GetValue(), -more.GetValue()) {
		entry := strings.Repeat("x", len(c.State().Entries)+1)
		emit(&entry)
	}
	if more.GetValue() == 13 {
		return errors.New("thirteen")
	}
	return c.Reply(wrapperspb.Int64(c.State().Sum))
}

func TestStatesOfEvents(t *testing.T) {
	inBubble(t, func(w *world) {
		w.cfg.SnapshotEvery = 5
		w.kind = func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			return state.Events(k, state.JSON[ledger](), state.JSON[string](), booked, books)
		}
		n := w.start()
		restart := func() { n.fails("a", 13, "thirteen") }
		n.sum("a", 2, 3)
		n.sum("a", 0, 3)
		r := w.store.record("a")
		require.Len(w, r.Events, 2)
		require.Zero(w, r.Snapshot.Form)
		restart()
		n.sum("a", 2, 10)
		require.Equal(w, uint64(4), w.store.record("a").Version)
		n.sum("a", 1, 15)
		r = w.store.record("a")
		require.Empty(w, r.Events, "the fifth event makes a snapshot")
		require.Equal(w, uint64(5), r.Version)
		restart()
		n.sum("a", 1, 21)
		restart()
		n.sum("a", 0, 21)
		n.sum("a", 9, 120)
		require.Equal(w, uint64(15), w.store.record("a").Version)
		n.sum("a", -2, 3)
		r = w.store.record("a")
		require.JSONEq(w, `{"Sum":3,"Entries":["x","xx"]}`, string(r.Snapshot.Bytes))
		restart()
		n.sum("a", 0, 3)
	})
}

// Events that cannot be read do not start their entity, which says which one it is, and stay as they are.
func TestEventsThatCannotBeUsed(t *testing.T) {
	inBubble(t, func(w *world) {
		w.kind = func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			return state.Events(k, state.JSON[ledger](), state.JSON[string](), booked, books)
		}
		n := w.start()
		good := store.Value{Form: 1, Bytes: []byte(`"x"`)}
		for id, c := range map[string]struct {
			event store.Value
			words string
		}{
			"garbage": {store.Value{Form: 1, Bytes: []byte("\xff")}, "event 2: cannot be decoded: form 1: invalid character"},
			"another": {store.Value{Form: 1, Bytes: []byte("{}")}, "event 2: cannot be decoded: form 1: json: cannot unmarshal object"},
			"newer":   {store.Value{Form: 7, Bytes: good.Bytes}, "event 2: written in a newer form: it has form 7"},
			"no form": {store.Value{Bytes: good.Bytes}, "event 2: cannot be decoded: it has no form"},
		} {
			owner := store.Owner{Instance: 1}
			_, err := w.store.Store.Load(w.Context(), []store.Claim{{Key: key(id), Owner: owner}})
			require.NoError(w, err)
			_, err = w.store.Store.Save(w.Context(), []store.Write{{Key: key(id), Owner: owner, Version: 3, Events: []store.Value{good, c.event, good}}})
			require.NoError(w, err)
			n.fails(id, 1, c.words)
			r := w.store.record(id)
			require.Equal(w, uint64(3), r.Version)
			require.Equal(w, c.event, r.Events[1])
		}
		n.sum("healthy", 1, 1)
	})
}

// What is emitted after the save would be in memory alone: it ends the instance, and is gone.
func TestAnEventAfterTheSaveIsRefused(t *testing.T) {
	inBubble(t, func(w *world) {
		w.kind = func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			return state.Events(k, state.JSON[ledger](), state.JSON[string](), booked,
				func(c *state.Context[ledger], emit func(*string), more number) error {
					if more.GetValue() == 7 {
						c.AfterSave(func() error { emit(new(string)); return nil })
						more = wrapperspb.Int64(1)
					}
					return books(c, emit, more)
				})
		}
		n := w.start()
		n.sum("a", 1, 1)
		n.fails("a", 7, "changed after the save")
		n.sum("a", 0, 3)
		require.Len(w, w.store.record("a").Events, 2)
	})
}

func TestAnErasedStateIsGone(t *testing.T) {
	inBubble(t, func(w *world) {
		w.kind = func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			return state.Snapshots(k, state.JSON[counter](), func(c *state.Context[counter], more number) error {
				if more.GetValue() >= 100 {
					c.Erase()
					more = wrapperspb.Int64(more.GetValue() - 100)
				}
				return add(c, more)
			})
		}
		n := w.start()
		n.sum("a", 5, 5)
		n.sum("a", 100, 0)
		r := w.store.record("a")
		require.Equal(w, store.Value{}, r.Snapshot)
		require.Equal(w, uint64(2), r.Version)
		n.sum("a", 3, 3)
		n.sum("a", 104, 4)
		require.JSONEq(w, `{"Sum":4}`, string(w.store.record("a").Snapshot.Bytes))
	})
}

// Forms of before are read, by one upgrade after the other; the present one is written with the next
// change.
func TestStatesOfEarlierForms(t *testing.T) {
	type now struct{ Cents int64 }
	codec := state.Upgraded(state.JSON[now](),
		func(old []byte) ([]byte, error) {
			return []byte(strings.Replace(string(old), "Euros", "Money", 1)), nil
		},
		func(old []byte) ([]byte, error) {
			var v struct{ Money int64 }
			_, err := fmt.Sscanf(string(old), `{"Money":%d}`, &v.Money)
			return fmt.Appendf(nil, `{"Cents":%d}`, 100*v.Money), err
		})
	inBubble(t, func(w *world) {
		w.kind = func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			return state.Snapshots(k, codec, func(c *state.Context[now], more number) error {
				c.State().Cents += more.GetValue()
				return c.Reply(wrapperspb.Int64(c.State().Cents))
			})
		}
		n := w.start()
		owner := store.Owner{Instance: 1}
		for id, old := range map[string]store.Value{
			"first":  {Form: 1, Bytes: []byte(`{"Euros":7}`)},
			"second": {Form: 2, Bytes: []byte(`{"Money":7}`)},
			"third":  {Form: 3, Bytes: []byte(`{"Cents":700}`)},
		} {
			_, err := w.store.Store.Load(w.Context(), []store.Claim{{Key: key(id), Owner: owner}})
			require.NoError(w, err)
			_, err = w.store.Store.Save(w.Context(), []store.Write{{Key: key(id), Owner: owner, Version: 1, Snapshot: old}})
			require.NoError(w, err)
			n.sum(id, 0, 700)
			require.Equal(w, old, w.store.record(id).Snapshot, "reading changes nothing")
			n.sum(id, 1, 701)
			require.Equal(w, uint32(3), w.store.record(id).Snapshot.Form)
		}
	})
}

// What has an epoch and is no entity can keep a record too.
func TestAHandle(t *testing.T) {
	keeper, err := state.NewKeeper(memory.New(), state.Default(), state.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	h, record, err := keeper.Open(t.Context(), key("x"), sharding.Epoch{N: 1})
	require.NoError(t, err)
	require.Zero(t, record.Version)
	require.NoError(t, h.SaveEvents(t.Context(), nil))
	require.Zero(t, h.Version())
	require.NoError(t, h.SaveSnapshot(t.Context(), store.Value{Form: 1, Bytes: []byte("one")}, 1))
	require.Equal(t, uint64(1), h.Version())
	_, _, err = keeper.Open(t.Context(), key("x"), sharding.Epoch{N: 2})
	require.NoError(t, err)
	for range 2 { // It stays ended.
		err = h.SaveEvents(t.Context(), []store.Value{{Form: 1}})
		require.ErrorIs(t, err, state.ErrFenced)
	}
	var fault *state.Error
	require.ErrorAs(t, err, &fault)
	require.Equal(t, sharding.Epoch{N: 2}, fault.Found.Owner.Epoch)
	require.Equal(t, uint64(1), keeper.Stats().Fenced)

	h, _, err = keeper.Open(t.Context(), key("x"), sharding.Epoch{N: 3})
	require.NoError(t, err)
	err = h.SaveSnapshot(t.Context(), store.Value{Form: 1, Bytes: make([]byte, state.Default().MaxBytes+1)}, 1)
	require.ErrorIs(t, err, state.ErrTooLarge)
	_, record, err = keeper.Open(t.Context(), key("x"), sharding.Epoch{N: 3})
	require.NoError(t, err)
	require.Equal(t, "one", string(record.Snapshot.Bytes))
}

func TestKeysAreChecked(t *testing.T) {
	keeper, err := state.NewKeeper(memory.New(), state.Default(), state.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	long := strings.Repeat("x", 1025)
	for _, k := range []store.Key{{}, {Kind: "a"}, {ID: "a"}, {Kind: long[:129], ID: "a"}, {Kind: "a", ID: long}, {Kind: "a", ID: string([]byte{0xff})}} {
		_, _, err := keeper.Open(t.Context(), k, sharding.Epoch{N: 1})
		require.ErrorIs(t, err, state.ErrInvalidKey)
	}
	require.Zero(t, keeper.Stats().LoadCalls)
	_, _, err = keeper.Open(t.Context(), store.Key{Kind: long[:128], ID: long[:1024]}, sharding.Epoch{N: 1})
	require.NoError(t, err)
}

// Whose context ends does not wait, whether its call is under way, made by another, or not begun.
func TestAContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, d, release := state.Default(), &disturbed{Store: memory.New()}, make(chan struct{})
		cfg.Calls, cfg.Batch = 1, 2
		d.before = func([]store.Write) error { <-release; return nil }
		keeper, err := state.NewKeeper(d, cfg, state.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		over := make(chan error, 4)
		for i := range 4 {
			h, _, err := keeper.Open(t.Context(), key(fmt.Sprint(i)), sharding.Epoch{N: 1})
			require.NoError(t, err)
			go func() { over <- h.SaveSnapshot(ctx, store.Value{Form: 1}, 1) }() // The test waits for it.
			synctest.Wait()
		}
		moved := errors.New("moved")
		cancel(moved)
		for range 3 {
			err := <-over
			require.ErrorIs(t, err, state.ErrUnanswered)
			require.ErrorIs(t, err, moved)
		}
		close(release) // The call itself was that of all.
		require.NoError(t, <-over)
		h, _, err := keeper.Open(t.Context(), key("4"), sharding.Epoch{N: 1})
		require.NoError(t, err)
		require.NoError(t, h.SaveSnapshot(t.Context(), store.Value{Form: 1}, 1), "the lane goes on")
	})
}
