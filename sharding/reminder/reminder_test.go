// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reminder_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/store"
	network "github.com/quorate/quorate/transport/memory"
)

// Reminders on clusters of a few nodes in one process, in virtual time, over a store that a test can
// stop and look into: first the nodes and their entities, then what is delivered and when, what moves
// and failures change, and what is refused.

// limit bounds every wait.
const limit = 2 * time.Minute

// disturbed is a store in memory that a test can stop.
type disturbed struct {
	*memory.Store

	mu   sync.Mutex
	load func() error // Before a load.
	save func() error // When a save has taken effect.
}

func (d *disturbed) set(load, save func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.load, d.save = load, save
}

func (d *disturbed) Load(ctx context.Context, claims []store.Claim) ([]store.Record, error) {
	d.mu.Lock()
	load := d.load
	d.mu.Unlock()
	if load != nil {
		if err := load(); err != nil {
			return nil, err
		}
	}
	return d.Store.Load(ctx, claims)
}

func (d *disturbed) Save(ctx context.Context, writes []store.Write) ([]store.Head, error) {
	d.mu.Lock()
	save := d.save
	d.mu.Unlock()
	heads, err := d.Store.Save(ctx, writes)
	if save != nil {
		err = errors.Join(err, save())
	}
	return heads, err
}

// world is a cluster.
type world struct {
	*testing.T

	network *network.Network
	store   *disturbed
	cfg     reminder.Config
	nodes   []*node

	mu      sync.Mutex
	came    []delivery // What entities were told, in this order.
	refuses func(n *node, d delivery) error
}

// delivery is one that has come to an entity.
type delivery struct {
	reminder.Fired

	at   time.Time
	node *node
}

// node is one node with entities and reminders.
type node struct {
	*membership.Node

	w         *world
	system    *sharding.System
	region    *sharding.Region[*sharding.Bytes]
	reminders *reminder.Service
}

func inBubble(t *testing.T, nodes int, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, network: network.NewNetwork(), store: &disturbed{Store: memory.New()}, cfg: reminder.Default()}
		defer func() {
			for _, n := range w.nodes {
				n.close()
			}
		}()
		for range nodes {
			w.start()
		}
		w.pass(20 * time.Second) // The buckets are spread.
		f(w)
	})
}

// start starts a node.
func (w *world) start() {
	cfg, quiet := membership.Default(), slog.New(slog.DiscardHandler)
	cfg.Cluster.Name, cfg.Node.Address = "test", fmt.Sprintf("10.0.0.%d:7946", len(w.nodes)+1)
	cfg.Membership.SeedNodes = []string{"10.0.0.1:7946"}
	member, err := membership.Start(w.Context(), cfg, membership.WithLogger(quiet), membership.WithTransport(w.network.Transport))
	require.NoError(w, err)
	system, err := sharding.New(member, sharding.Default(), sharding.WithLogger(quiet))
	require.NoError(w, err)
	n := &node{Node: member, w: w, system: system}
	n.region, err = sharding.Start(system, sharding.Kind[*sharding.Bytes]{
		Name: "account", Codec: sharding.Raw{},
		New: func(*sharding.Context) sharding.Entity[*sharding.Bytes] { return account{} },
	})
	require.NoError(w, err)
	n.reminders, err = reminder.Start(system, w.store, w.cfg, reminder.WithLogger(quiet))
	require.NoError(w, err)
	ask := reminder.Ask[*sharding.Bytes](n.region, func(f reminder.Fired) *sharding.Bytes {
		message := sharding.Bytes(f.Payload)
		return &message
	})
	require.NoError(w, n.reminders.Target("account", func(ctx context.Context, f reminder.Fired) error {
		d := delivery{f, time.Now(), n}
		w.mu.Lock()
		w.came = append(w.came, d)
		refuses := w.refuses
		w.mu.Unlock()
		if refuses != nil {
			if err := refuses(n, d); err != nil {
				return err
			}
		}
		return ask(ctx, f)
	}))
	w.nodes = append(w.nodes, n)
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	require.NoError(w, member.AwaitUp(ctx))
}

// account replies with what it is told, and fails at "fail".
type account struct{}

func (account) Receive(c *sharding.Context, m *sharding.Bytes) error {
	if string(*m) == "fail" {
		return errors.New("it fails")
	}
	return c.Reply(m)
}

// close ends a node without a word.
func (n *node) close() {
	require.NoError(n.w, n.Close())
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	require.NoError(n.w, n.system.AwaitEnd(ctx))
}

func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *world) refuse(f func(*node, delivery) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuses = f
}

// deliveries returns what came to an entity.
func (w *world) deliveries(id string) []delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	var of []delivery
	for _, d := range w.came {
		if d.ID == id {
			of = append(of, d)
		}
	}
	return of
}

// set sets a reminder by a node.
func (n *node) set(id, name string, in, every time.Duration) reminder.Reminder {
	r := reminder.Reminder{Kind: "account", ID: id, Name: name, Due: time.Now().Add(in), Every: every, Payload: []byte(name)}
	require.NoError(n.w, n.reminders.Set(n.w.Context(), r))
	return r
}

// list returns the reminders of an entity.
func (n *node) list(id string) []reminder.Status {
	all, err := n.reminders.List(n.w.Context(), "account", id)
	require.NoError(n.w, err)
	return all
}

// A reminder is delivered once, at its time to the millisecond, wherever it was set and the entity is.
func TestAReminderComesAtItsTime(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		for i := range 60 {
			w.nodes[i%3].set(fmt.Sprintf("a%d", i), "once", time.Minute+time.Duration(i)*time.Second, 0)
		}
		require.Len(w, w.nodes[0].list("a7"), 1)
		w.pass(59 * time.Second)
		require.Empty(w, w.deliveries("a0"))
		w.pass(63 * time.Second)
		for i := range 60 {
			came := w.deliveries(fmt.Sprintf("a%d", i))
			require.Len(w, came, 1)
			late := came[0].at.Sub(came[0].Due)
			require.True(w, late >= 0 && late <= 10*time.Millisecond, "late by %v", late)
			require.Equal(w, "once", string(came[0].Payload))
			require.Empty(w, w.nodes[1].list(came[0].ID))
		}
		var sum reminder.Stats
		for _, n := range w.nodes {
			s := n.reminders.Stats()
			require.NotZero(w, s.Buckets)
			require.NotZero(w, s.Fired)
			sum.Buckets += s.Buckets
			sum.Acknowledged += s.Acknowledged
			sum.Late[0] += s.Late[0]
			require.LessOrEqual(w, s.LateMax, reminder.LateBounds()[0])
		}
		require.Equal(w, buckets.Buckets, sum.Buckets)
		require.EqualValues(w, 60, sum.Acknowledged)
		require.EqualValues(w, 60, sum.Late[0])
	})
}

// One that repeats stays on its grid; canceled, it ends.
func TestAReminderThatRepeats(t *testing.T) {
	inBubble(t, 2, func(w *world) {
		r := w.nodes[0].set("a", "often", time.Minute, 20*time.Second)
		w.pass(2*time.Minute + 10*time.Second)
		came := w.deliveries("a")
		require.Len(w, came, 4)
		for i, d := range came {
			require.WithinDuration(w, r.Due.Add(time.Duration(i)*20*time.Second), d.Due, time.Millisecond)
			require.Zero(w, d.Missed)
		}
		found, err := w.nodes[1].reminders.Cancel(w.Context(), "account", "a", "often")
		require.NoError(w, err)
		require.True(w, found)
		found, err = w.nodes[1].reminders.Cancel(w.Context(), "account", "a", "often")
		require.NoError(w, err)
		require.False(w, found)
		w.pass(2 * time.Minute)
		require.Len(w, w.deliveries("a"), 4)
	})
}

// What is not acknowledged comes again, after pauses that double; occurrences that pass meanwhile come as one.
func TestAReminderThatIsNotAcknowledged(t *testing.T) {
	inBubble(t, 2, func(w *world) {
		var healed atomic.Bool
		w.refuse(func(_ *node, d delivery) error {
			switch {
			case healed.Load():
				return nil
			case d.Attempt%2 == 0:
				panic("a target panics")
			default:
				return errors.New("not at present")
			}
		})
		r := w.nodes[0].set("a", "often", time.Second, 10*time.Second)
		w.pass(32500 * time.Millisecond)
		came := w.deliveries("a")
		require.Len(w, came, 6)
		for i, d := range came { // Pauses of 1, 2, 4, 8 and 16 s.
			require.Equal(w, i+1, d.Attempt)
			require.WithinDuration(w, r.Due.Add(time.Duration(1<<i-1)*time.Second), d.at, 20*time.Millisecond)
		}
		listed := w.nodes[1].list("a")
		require.Len(w, listed, 1)
		require.Equal(w, 6, listed[0].Attempts)
		require.NotEmpty(w, listed[0].Failure)
		healed.Store(true)
		w.pass(time.Minute)
		came = w.deliveries("a")
		require.EqualValues(w, 6, came[6].Missed, "64 s after the first")
		require.WithinDuration(w, r.Due, came[6].Due, time.Millisecond)
		require.WithinDuration(w, r.Due.Add(70*time.Second), came[7].Due, time.Millisecond)
		require.Zero(w, came[7].Missed)
	})
}

// nobody is an error that cannot be asked for its text.
type nobody struct{ name string }

func (n *nobody) Error() string { return n.name }

// Whatever a target does instead of acknowledging, the delivery is repeated, and List says something.
func TestATargetThatGoesWrong(t *testing.T) {
	for what, wrong := range map[string]func() error{
		"an error without a text": func() error { return errors.New("") },
		"panic: ":                 func() error { return (*nobody)(nil) },
		"xééé":                    func() error { return errors.New("x" + strings.Repeat("é", 50)) },
		"a ?":                     func() error { return errors.New("a \xff") },
		"it ended its goroutine":  func() error { runtime.Goexit(); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, 1, func(w *world) {
				var healed atomic.Bool
				w.refuse(func(*node, delivery) error {
					if healed.Load() {
						return nil
					}
					return wrong()
				})
				w.nodes[0].set("a", "once", time.Second, 0)
				w.pass(2500 * time.Millisecond)
				require.Len(w, w.deliveries("a"), 2)
				listed := w.nodes[0].list("a")
				require.Len(w, listed, 1)
				require.Equal(w, 2, listed[0].Attempts)
				require.Contains(w, listed[0].Failure, what)
				healed.Store(true)
				w.pass(time.Minute)
				require.Empty(w, w.nodes[0].list("a"))
			})
		})
	}
}

// An entity that fails does not acknowledge, one that never answers neither; others do not wait for them.
func TestEntitiesThatDoNotAnswerDelayNobody(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.refuse(func(_ *node, d delivery) error {
			if strings.HasPrefix(d.Name, "hang") {
				<-time.After(w.cfg.AckTimeout)
				return errors.New("it hung")
			}
			return nil
		})
		for i := range 100 {
			w.nodes[0].set("a", fmt.Sprintf("hang%d", i), 0, 0)
		}
		w.nodes[0].set("a", "fail", 0, 0)
		w.pass(2 * time.Minute)
		other := neighbor(buckets.Place("account", "a"))
		w.nodes[0].set(other, "fine", time.Second, 0)
		w.pass(2 * time.Second)
		came := w.deliveries(other)
		require.Len(w, came, 1)
		require.WithinDuration(w, came[0].Due, came[0].at, 100*time.Millisecond)
		stats := w.nodes[0].reminders.Stats()
		require.Equal(w, 101, stats.Reminders)
		require.LessOrEqual(w, stats.InFlight, w.cfg.InFlight/2)
	})
}

// Reminders come although nodes leave, end without a word, and all start anew.
func TestRemindersOutliveNodes(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		for i := range 40 {
			w.nodes[0].set(fmt.Sprintf("a%d", i), "often", 10*time.Second, 10*time.Second)
		}
		w.pass(35 * time.Second)
		require.NoError(w, w.nodes[1].Leave(w.Context()))
		w.pass(30 * time.Second)
		for i := range 40 {
			last := w.deliveries(fmt.Sprintf("a%d", i))
			require.WithinDuration(w, time.Now(), last[len(last)-1].at, 11*time.Second)
			for n := 1; n < len(last); n++ {
				require.NotEqual(w, last[n-1].Due, last[n].Due, "an orderly move repeats nothing")
			}
		}
		w.nodes[2].close()
		w.pass(time.Minute)
		w.nodes[0].close()
		w.pass(10 * time.Minute)
		w.mu.Lock()
		w.came = nil
		w.mu.Unlock()
		w.nodes = nil
		w.start()
		w.pass(30 * time.Second)
		for i := range 40 {
			came := w.deliveries(fmt.Sprintf("a%d", i))
			require.NotEmpty(w, came)
			require.Greater(w, came[0].Missed, uint64(50), "ten minutes are one delivery")
			require.WithinDuration(w, time.Now(), came[len(came)-1].at, 11*time.Second)
		}
	})
}

// A store that is down delays reminders, and loses none; answers that are lost do no harm. Entities go on.
func TestAStoreThatIsDown(t *testing.T) {
	inBubble(t, 2, func(w *world) {
		w.nodes[0].set("a", "once", 2*time.Minute, 0)
		down := errors.New("the store is down")
		w.store.set(func() error { return down }, func() error { return down })
		r := reminder.Reminder{Kind: "account", ID: "b", Name: "new", Due: time.Now().Add(time.Minute)}
		err := w.nodes[0].reminders.Set(w.Context(), r)
		require.ErrorIs(w, err, reminder.ErrUnknown)
		var detailed *reminder.Error
		require.ErrorAs(w, err, &detailed)
		require.Contains(w, detailed.Detail, "the store is down")
		require.ErrorIs(w, w.nodes[1].reminders.Set(w.Context(), r), reminder.ErrUnavailable)
		w.nodes[1].close() // Its buckets go to a node that cannot read them.
		w.pass(3 * time.Minute)
		w.nodes = w.nodes[:1]
		require.NotZero(w, w.nodes[0].reminders.Stats().Closed)
		message := sharding.Bytes("unharmed")
		began := time.Now()
		for _, id := range []string{"a", "b", "c"} {
			_, err := sharding.Ask[*sharding.Bytes](w.Context(), w.nodes[0].region, id, &message)
			require.NoError(w, err)
		}
		require.Less(w, time.Since(began), time.Second)
		w.store.set(nil, nil)
		w.pass(time.Minute)
		require.Zero(w, w.nodes[0].reminders.Stats().Closed)
		require.NotEmpty(w, w.deliveries("a"))
		require.NotEmpty(w, w.deliveries("b"), "it was saved, though the answer was lost")
		require.Empty(w, w.nodes[0].list("a"))
		w.nodes[0].set("b", "again", 0, 0)
		w.pass(time.Second)
		require.Empty(w, w.nodes[0].list("b"))
	})
}

// A page with garbage, or of a newer version, is left as it is; the others go on.
func TestAPageThatCannotBeRead(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		for id, value := range map[string]store.Value{
			"garbage": {Form: 1, Bytes: []byte("garbage")}, "newer": {Form: 9, Bytes: []byte("who knows")},
		} {
			bucket, page := buckets.Place("account", id)
			key := store.Key{Kind: "reminders", ID: fmt.Sprintf("%d/%d", bucket, page)}
			// Somebody else writes the page, as no program should.
			records, err := w.store.Store.Load(w.Context(), []store.Claim{{Key: key}})
			require.NoError(w, err)
			owner := records[0].Owner
			_, err = w.store.Store.Save(w.Context(), []store.Write{{Key: key, Owner: owner, Expected: records[0].Version, Version: records[0].Version + 5, Snapshot: value}})
			require.NoError(w, err)
			r := reminder.Reminder{Kind: "account", ID: id, Name: "x", Due: time.Now()}
			require.ErrorIs(w, w.nodes[0].reminders.Set(w.Context(), r), reminder.ErrUnknown) // The page is found changed.
			w.pass(5 * time.Second)
			err = w.nodes[0].reminders.Set(w.Context(), r)
			require.ErrorIs(w, err, reminder.ErrUnavailable)
			require.ErrorContains(w, err, map[string]string{"garbage": "cannot be decoded", "newer": "newer form"}[id])
			other := neighbor(bucket, page)
			w.nodes[0].set(other, "y", 0, 0)
			w.pass(time.Second)
			require.Len(w, w.deliveries(other), 1)
			w.pass(time.Minute)
			records, err = w.store.Store.Load(w.Context(), []store.Claim{{Key: key}})
			require.NoError(w, err)
			require.Equal(w, value, records[0].Snapshot)
		}
		require.Equal(w, 2, w.nodes[0].reminders.Stats().Closed)
		require.NotZero(w, w.nodes[0].reminders.Stats().PagesClosed)
	})
}

// neighbor returns the id of an entity in the same bucket and another page.
func neighbor(bucket, page int) string {
	for i := 0; ; i++ {
		id := fmt.Sprintf("n%d", i)
		if b, p := buckets.Place("account", id); b == bucket && p != page {
			return id
		}
	}
}

// A reminder whose time has passed comes at once, one in 300 years is kept.
func TestThePastAndTheFarFuture(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.nodes[0].set("past", "x", -50*365*24*time.Hour, 0)
		w.pass(10 * time.Millisecond)
		require.Len(w, w.deliveries("past"), 1)
		far := reminder.Reminder{Kind: "account", ID: "far", Name: "x", Due: time.Now().AddDate(300, 0, 0), Every: math.MaxInt64}
		require.NoError(w, w.nodes[0].reminders.Set(w.Context(), far))
		w.pass(5 * time.Minute)
		require.Empty(w, w.deliveries("far"))
		listed := w.nodes[0].list("far")
		require.Len(w, listed, 1)
		require.WithinDuration(w, far.Due, listed[0].Due, time.Millisecond)
		require.Zero(w, w.nodes[0].reminders.Stats().Late[1], "the time before it was set does not count")
	})
}

// What is not possible is refused with its reason, and changes nothing.
func TestWhatIsRefused(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		good := reminder.Reminder{Kind: "account", ID: "a", Name: "x", Due: time.Now().Add(time.Hour)}
		for want, change := range map[string]func(r *reminder.Reminder){
			"the kind is empty":                 func(r *reminder.Reminder) { r.Kind = "" },
			"the id is empty":                   func(r *reminder.Reminder) { r.ID = "" },
			"the id has 513 bytes":              func(r *reminder.Reminder) { r.ID = strings.Repeat("x", 513) },
			"the id is not valid UTF-8":         func(r *reminder.Reminder) { r.ID = "\xff" },
			"the name has 129 bytes":            func(r *reminder.Reminder) { r.Name = strings.Repeat("x", 129) },
			"the payload has 4097 bytes":        func(r *reminder.Reminder) { r.Payload = make([]byte, 4097) },
			"due is not set":                    func(r *reminder.Reminder) { r.Due = time.Time{} },
			"not in the years 1 to 9999":        func(r *reminder.Reminder) { r.Due = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
			"at least 1s are possible, or zero": func(r *reminder.Reminder) { r.Every = time.Second - time.Millisecond },
			"every is 1ns":                      func(r *reminder.Reminder) { r.Every = time.Nanosecond },
			"every is -1s":                      func(r *reminder.Reminder) { r.Every = -time.Second },
		} {
			r := good
			change(&r)
			err := w.nodes[0].reminders.Set(w.Context(), r)
			require.ErrorIs(w, err, reminder.ErrInvalid, want)
			require.ErrorContains(w, err, want)
		}
		for i := range buckets.MaxPerEntity {
			w.nodes[0].set("many", fmt.Sprintf("r%d", i), time.Hour, 0)
		}
		r := good
		r.ID = "many"
		require.ErrorIs(w, w.nodes[0].reminders.Set(w.Context(), r), reminder.ErrFull)
		w.nodes[0].set("many", "r7", 2*time.Hour, 0) // Takes the place of another.
		require.Len(w, w.nodes[0].list("many"), buckets.MaxPerEntity)
		require.Empty(w, w.nodes[0].list("a"))

		require.ErrorIs(w, w.nodes[0].reminders.Target("", func(context.Context, reminder.Fired) error { return nil }), reminder.ErrInvalid)
		require.ErrorIs(w, w.nodes[0].reminders.Target("other", nil), reminder.ErrInvalid)
		require.ErrorIs(w, w.nodes[0].reminders.Target("account", func(context.Context, reminder.Fired) error { return nil }), reminder.ErrInvalid)
	})
}

// The longest id of a reminder is that of an entity.
func TestTheBoundOfIDsIsThatOfEntities(t *testing.T) {
	require.NoError(t, sharding.CheckEntityID(strings.Repeat("x", buckets.EntityBytes)))
	require.ErrorIs(t, sharding.CheckEntityID(strings.Repeat("x", buckets.EntityBytes+1)), sharding.ErrInvalid)
}

// A configuration that cannot work is refused, with the keys of all faults.
func TestConfigurationsAreChecked(t *testing.T) {
	require.NoError(t, reminder.Default().Validate())
	var none reminder.Config
	err := none.Validate()
	for _, key := range []string{"name", "in-flight", "ack-timeout", "retry-min", "state.max-bytes", "state.call-timeout"} {
		require.ErrorContains(t, err, key+":")
	}
	_, err = reminder.Start(nil, memory.New(), none)
	require.ErrorContains(t, err, "in-flight")
}

// A delivery that is under way when its bucket moves ends first, and is not repeated.
func TestADeliveryEndsBeforeItsBucketMoves(t *testing.T) {
	inBubble(t, 2, func(w *world) {
		w.refuse(func(*node, delivery) error {
			<-time.After(time.Second)
			return nil
		})
		for i := range 40 {
			w.nodes[0].set(fmt.Sprintf("a%d", i), "slow", time.Second, 0)
		}
		w.pass(1200 * time.Millisecond)
		require.NotZero(w, w.nodes[1].reminders.Stats().InFlight)
		require.NoError(w, w.nodes[1].Leave(w.Context()))
		w.pass(20 * time.Second)
		for i := range 40 {
			require.Len(w, w.deliveries(fmt.Sprintf("a%d", i)), 1)
		}
		require.Equal(w, buckets.Buckets, w.nodes[0].reminders.Stats().Buckets)
		require.Zero(w, w.nodes[0].reminders.Stats().Reminders)
	})
}

// A node that does not hear the others delivers nothing, and goes on when it hears them again.
func TestDeliveriesEndWithTheStandingOfTheNode(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		for i := range 40 {
			w.nodes[0].set(fmt.Sprintf("a%d", i), "often", time.Second, time.Second)
		}
		pairs := func(f func(a, b *node)) {
			f(w.nodes[0], w.nodes[1])
			f(w.nodes[1], w.nodes[2])
			f(w.nodes[2], w.nodes[0])
		}
		pairs(func(a, b *node) { w.network.Cut(a.Self().Address, b.Self().Address) })
		held := func() (n int) {
			for _, node := range w.nodes {
				if node.Standing().Held() {
					n++
				}
			}
			return n
		}
		for held() > 0 {
			w.pass(100 * time.Millisecond)
		}
		before := w.deliveries("a1")
		w.pass(1500 * time.Millisecond)
		require.Len(w, w.deliveries("a1"), len(before))
		for _, n := range w.nodes {
			require.Zero(w, n.reminders.Stats().Buckets)
		}
		pairs(func(a, b *node) { w.network.Heal(a.Self().Address, b.Self().Address) })
		w.pass(20 * time.Second)
		require.Equal(w, 3, held())
		for i := range 40 {
			came := w.deliveries(fmt.Sprintf("a%d", i))
			require.WithinDuration(w, time.Now(), came[len(came)-1].at, 1100*time.Millisecond)
		}
	})
}

// A time between two milliseconds is that of the later one: nothing comes early.
func TestTimesAreRoundedUp(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		due := time.Now().Truncate(time.Millisecond).Add(time.Minute + time.Nanosecond)
		require.NoError(w, w.nodes[0].reminders.Set(w.Context(), reminder.Reminder{Kind: "account", ID: "a", Name: "x", Due: due}))
		listed := w.nodes[0].list("a")
		require.Len(w, listed, 1)
		require.Equal(w, due.Add(time.Millisecond-time.Nanosecond).UnixNano(), listed[0].Due.UnixNano())
	})
}
