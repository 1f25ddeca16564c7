// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package singleton_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/memory"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/singleton"
	network "github.com/quorate/quorate/transport/memory"
)

// Singletons on clusters of a few nodes in one process, in virtual time: first the cluster and
// what it notes of each run, then where the instance runs, what follows a failure, entities, and
// what a start refuses.

// run is one run of a singleton.
type run struct {
	node  int
	epoch sharding.Epoch
	ctx   context.Context //nolint:containedctx // For the test to look at.
}

// world is a cluster whose nodes run a singleton.
type world struct {
	t       *testing.T
	network *network.Network
	nodes   []*membership.Node
	systems []*sharding.System

	config func(i int, cfg *membership.Config) // Changes the configuration of a node; nil: nothing.

	mu   sync.Mutex
	now  map[int]run // The runs under way, by node.
	runs []run
	work func(r run) error // What a run does; nil: it waits for its end.

	onStuck sharding.OnStuck // Of the singleton, with a limit of 5 s when it is set.
}

func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, network: network.NewNetwork(), now: map[int]run{}}
		defer func() {
			for i := range w.nodes {
				w.close(i)
			}
		}()
		f(t, w)
	})
}

// start starts a node.
func (w *world) start() *sharding.System {
	i := len(w.nodes)
	cfg, quiet := membership.Default(), slog.New(slog.DiscardHandler)
	cfg.Cluster.Name, cfg.Node.Address = "test", fmt.Sprintf("10.0.0.%d:7946", i+1)
	seed := 1
	if i >= 3 {
		seed = 2 // By then the first node may have left.
	}
	cfg.Membership.SeedNodes = []string{fmt.Sprintf("10.0.0.%d:7946", seed)}
	if w.config != nil {
		w.config(i, &cfg)
	}
	node, err := membership.Start(w.t.Context(), cfg, membership.WithLogger(quiet), membership.WithTransport(w.network.Transport))
	require.NoError(w.t, err)
	system, err := sharding.New(node, sharding.Default(), sharding.WithLogger(quiet), sharding.WithAllocation(youngest{}))
	require.NoError(w.t, err)
	w.nodes, w.systems = append(w.nodes, node), append(w.systems, system)
	return system
}

// youngest is a strategy that gives every shard to the node that has joined last, and moves none. Singletons do not
// follow it.
type youngest struct{}

func (youngest) Allocate(_ context.Context, r allocation.AllocateRequest) (res allocation.AllocateResult, err error) {
	for _, to := range slices.Backward(r.Regions) { // By address, which is the order in which they have joined.
		if !to.Eligible() {
			continue
		}
		for _, p := range r.Shards {
			res.Placements = append(res.Placements, allocation.Placement{Shard: p.Shard, Region: to.ID})
		}
		break
	}
	return res, nil
}

func (youngest) Rebalance(context.Context, allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	return allocation.RebalanceResult{}, nil
}

// started starts n nodes that run the singleton.
func (w *world) started(n int) { w.startedWith(n, "") }

// startedWith starts n nodes that run the singleton, which is limited to nodes with a role.
func (w *world) startedWith(n int, role string) {
	for range n {
		system, i := w.start(), len(w.nodes)-1
		c := singleton.Config{
			Name: "job", Role: role, Log: slog.New(slog.DiscardHandler), OnStuck: w.onStuck,
			Run: func(ctx context.Context, epoch sharding.Epoch) error { return w.ran(run{i, epoch, ctx}) },
		}
		if w.onStuck != "" {
			c.HandOverTimeout = 5 * time.Second
		}
		require.NoError(w.t, singleton.Start(system, c))
		w.pass(5 * time.Second)
	}
}

func (w *world) ran(r run) error {
	w.mu.Lock()
	for _, o := range w.now {
		if o.ctx.Err() == nil {
			w.t.Errorf("the instance runs at %d and at %d", o.node, r.node)
		}
	}
	if n := len(w.runs); n > 0 && r.epoch.Compare(w.runs[n-1].epoch) < 0 {
		w.t.Errorf("the epoch falls from %v to %v", w.runs[n-1].epoch, r.epoch)
	}
	w.now[r.node], w.runs = r, append(w.runs, r)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.now, r.node)
	}()
	if w.work != nil {
		return w.work(r)
	}
	<-r.ctx.Done()
	return context.Cause(r.ctx)
}

// close ends a node without a word, and waits until its instance has ended.
func (w *world) close(i int) {
	require.NoError(w.t, w.nodes[i].Close())
	require.NoError(w.t, w.systems[i].AwaitEnd(patience.Context(w.t)))
}

func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// at returns the nodes at which the instance runs.
func (w *world) at() (nodes []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.now {
		nodes = append(nodes, i)
	}
	return nodes
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runs)
}

// The instance runs on the oldest node; on the next oldest when that leaves, at once, and when it
// is gone, after the fence. A node that joins changes nothing. Epochs grow.
// covers I3.
func TestOneInstanceRunsOnTheOldest(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.started(3)
		require.Equal(t, []int{0}, w.at())
		require.Equal(t, 1, w.count())

		began := time.Now()
		require.NoError(t, w.nodes[0].Leave(t.Context()))
		w.pass(time.Second)
		require.Equal(t, []int{1}, w.at())
		require.Less(t, time.Since(began), 5*time.Second)

		w.started(2)
		require.Equal(t, []int{1}, w.at())
		w.close(1)
		w.pass(15 * time.Second)
		require.Equal(t, []int{2}, w.at())
		require.Equal(t, 3, w.count())
		require.Negative(t, w.runs[0].epoch.Compare(w.runs[1].epoch))
		require.Negative(t, w.runs[1].epoch.Compare(w.runs[2].epoch))
	})
}

// A node that is cut off ends its run before the others start one, though nobody can tell it.
// covers I3, I14.
func TestARunEndsWithTheStandingOfItsNode(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.started(3)
		for _, other := range w.nodes[1:] {
			w.network.Cut(w.nodes[0].Self().Address, other.Self().Address)
		}
		w.pass(20 * time.Second)
		require.Equal(t, []int{1}, w.at())
		require.Error(t, w.runs[0].ctx.Err())
	})
}

// cutOff cuts the first node off for a time that is too short for the others to decide anything.
func (w *world) cutOff(d time.Duration) {
	for _, other := range w.nodes[1:] {
		w.network.Cut(w.nodes[0].Self().Address, other.Self().Address)
	}
	w.pass(d)
	w.network.HealAll()
	w.pass(10 * time.Second)
}

// freezer is a component that has the driver of its node stand still.
type freezer struct{}

// Step implements [machine.Machine].
func (freezer) Step(_ machine.Now, in machine.Input, out *machine.Outbox) {
	if _, ok := in.(freezer); ok {
		out.Add(in)
	}
}

// freeze has the driver of a node stand still, which hears of nothing any more, not even that time passes. The
// other goroutines of the node run on: as after a freeze of the process, when they have their turn first.
func (w *world) freeze(i int) (thaw func()) {
	frozen := make(chan struct{})
	h, err := w.nodes[i].Attach(membership.Attachment{
		Component: machine.Component{Name: "freezer", Machine: freezer{}},
		Other:     func(machine.Effect) { <-frozen },
	})
	require.NoError(w.t, err)
	require.NoError(w.t, h.Post(freezer{}))
	return sync.OnceFunc(func() { close(frozen) })
}

// A look at the context of a run tells that the standing has passed though nobody has had a turn to end the context:
// it is looked at when the successor begins (ran).
// covers I3, I14.
func TestTheContextOfARunLooksAtTheClock(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.work = func(r run) error {
			for r.ctx.Err() == nil {
				<-time.After(100 * time.Microsecond)
			}
			return context.Cause(r.ctx)
		}
		w.started(3)
		thaw := w.freeze(0)
		defer thaw()
		w.pass(20 * time.Second)
		require.Equal(t, 2, w.count())
		require.Equal(t, []int{1}, w.at(), "the run of the frozen node has ended by its own look")
		thaw()
		w.pass(10 * time.Second)
		require.Equal(t, 2, w.count())
	})
}

// A run that has ended by its look, in a moment without standing that nobody else has noticed, begins again.
func TestARunThatEndsByItsLookBeginsAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = patient
		w.work = func(r run) error {
			for r.ctx.Err() == nil {
				<-time.After(100 * time.Microsecond)
			}
			return nil
		}
		w.started(3)
		thaw := w.freeze(0)
		defer thaw()
		w.pass(20 * time.Second)
		require.Empty(t, w.at())
		thaw()
		w.pass(10 * time.Second)
		require.Equal(t, []int{0}, w.at())
		require.Equal(t, 2, w.count())
	})
}

// patient has the nodes decide nothing about others for a minute.
func patient(_ int, cfg *membership.Config) {
	cfg.Downing.StableAfter = downing.AutoDuration(time.Minute)
}

// A node that loses its standing for a moment runs the instance again when it has the standing again, whatever the
// run returned that had ended meanwhile.
func TestARunBeginsAgainWithTheStandingOfItsNode(t *testing.T) {
	for name, returns := range map[string]error{"an error": errors.New("broken"), "nil": nil} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.config = patient
				w.work = func(r run) error {
					<-r.ctx.Done()
					return returns
				}
				w.started(3)
				w.cutOff(20 * time.Second)
				require.Equal(t, 2, w.count())
				require.Equal(t, []int{0}, w.at())
				require.Error(t, w.runs[0].ctx.Err())
				require.NoError(t, w.runs[1].ctx.Err())
			})
		})
	}
}

// With a role the instance runs on the oldest node that has it.
func TestOneInstanceRunsOnTheOldestWithTheRole(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, cfg *membership.Config) {
			if i > 0 {
				cfg.Node.Roles = []string{"worker"}
			}
		}
		w.startedWith(3, "worker")
		require.Equal(t, []int{1}, w.at())
		require.NoError(t, w.nodes[1].Leave(t.Context()))
		w.pass(time.Second)
		require.Equal(t, []int{2}, w.at())
	})
}

// The next node waits for a run that takes its time to end, and goes on without one that never
// ends only when its node has gone.
func TestAHandOverWaitsForTheRun(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.work = func(r run) error {
			<-r.ctx.Done()
			if r.node == 0 {
				<-time.After(3 * time.Second)
			}
			return nil
		}
		w.started(2)
		left := make(chan error, 1)
		go func() { left <- w.nodes[0].Leave(t.Context()) }()
		w.pass(2 * time.Second)
		require.Equal(t, []int{0}, w.at())
		w.pass(5 * time.Second)
		require.Equal(t, []int{1}, w.at())
		require.NoError(t, <-left)
	})
}

// A run that never returns holds the leave of its node up for a limited time: then the node goes, and the next one
// takes over. What still runs has an ended context and a lower epoch.
func TestARunThatNeverReturnsHoldsALeaveUpForALimitedTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		release := make(chan struct{})
		w.work = func(r run) error {
			if r.node == 0 {
				<-release
			}
			<-r.ctx.Done()
			return nil
		}
		w.started(2)
		began := time.Now()
		left := make(chan error, 1)
		go func() { left <- w.nodes[0].Leave(t.Context()) }()
		w.pass(20 * time.Second)
		require.Equal(t, []int{0}, w.at())
		t.Log("the leave has ended:", <-left)
		w.pass(15 * time.Second)
		require.Less(t, time.Since(began), time.Minute)
		require.Contains(t, w.at(), 1)
		require.Error(t, w.runs[0].ctx.Err())
		require.Negative(t, w.runs[0].epoch.Compare(w.runs[1].epoch))
		close(release)
	})
}

// A node that is drained waits for a run that does not return, or goes on without it after the hand-over limit: the
// singleton says which. Its context has ended in any case before another run begins, and its epoch is lower.
func TestADrainGoesOnWithoutARunThatNeverReturnsIfItIsGivenUp(t *testing.T) {
	for _, onStuck := range []sharding.OnStuck{sharding.OnStuckAbort, sharding.OnStuckAbandon} {
		t.Run(string(onStuck), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				release := make(chan struct{})
				w.onStuck, w.work = onStuck, func(r run) error {
					if r.node == 0 {
						<-release
					}
					<-r.ctx.Done()
					return nil
				}
				w.started(2)
				drained := make(chan error, 1)
				go func() { drained <- w.systems[0].Drain(t.Context()) }()
				w.pass(4 * time.Second)
				require.Equal(t, []int{0}, w.at(), "the limit has not passed")
				w.pass(4 * time.Second)
				if onStuck == sharding.OnStuckAbandon {
					require.ElementsMatch(t, []int{0, 1}, w.at())
				} else {
					w.pass(time.Minute)
					require.Equal(t, []int{0}, w.at())
				}
				close(release)
				w.pass(15 * time.Second)
				require.NoError(t, <-drained)
				require.Equal(t, []int{1}, w.at())
				require.Error(t, w.runs[0].ctx.Err())
				require.Negative(t, w.runs[0].epoch.Compare(w.runs[len(w.runs)-1].epoch))
			})
		})
	}
}

// A run that fails is followed by another, at once and then after a rest that doubles, up to half a minute; a
// panic and an end of the goroutine are failures. A run of a minute begins the count anew, a shorter one does not.
func TestAFailedRunIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var ends []time.Time
		w.work = func(r run) error {
			n := len(ends)
			switch n {
			case 4:
				<-time.After(2 * time.Minute)
			case 7:
				<-time.After(55 * time.Second)
			case 20:
				<-r.ctx.Done() // Enough, also where nothing rests.
			}
			ends = append(ends, time.Now())
			switch n {
			case 0, 4, 5:
				return errors.New("broken")
			case 1:
				panic("worse")
			case 2:
				runtime.Goexit()
			}
			return errors.New("again")
		}
		w.started(1)
		w.pass(6 * time.Minute)
		rests := []time.Duration{
			0, time.Second, 2 * time.Second, 4*time.Second + 2*time.Minute,
			0, time.Second, 2*time.Second + 55*time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second,
		}
		require.Greater(t, len(ends), len(rests))
		for i, rest := range rests {
			require.InDelta(t, rest.Seconds(), ends[i+1].Sub(ends[i]).Seconds(), 0.1, "after run %d", i)
		}
	})
}

// With a lease the work begins when the lease is held, ends when the holding does, and gives the lease
// back.
func TestALeaseIsHeldWhileTheWorkRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		store := memory.New()
		keep := func(owner string) *lease.Keeper {
			k, err := lease.NewKeeper(store, lease.Default(), "job", owner)
			require.NoError(t, err)
			return k
		}
		other, mine := keep("other"), keep("mine")
		defer func() { require.NoError(t, errors.Join(other.Close(), mine.Close())) }()
		_, err := other.Acquire(t.Context())
		require.NoError(t, err)

		var causes []error
		require.NoError(t, singleton.Start(w.start(), singleton.Config{
			Name: "job", Lease: mine, Log: slog.New(slog.DiscardHandler),
			Run: func(ctx context.Context, epoch sharding.Epoch) error {
				_, held := mine.Check()
				require.True(t, held)
				err := w.ran(run{0, epoch, ctx})
				causes = append(causes, err)
				return err
			},
		}))
		w.pass(10 * time.Second)
		require.Zero(t, w.count(), "another has the lease")
		require.NoError(t, other.Release(t.Context()))
		w.pass(time.Minute)
		require.Equal(t, 1, w.count())

		store.Steal("job", "thief", 5*time.Second)
		w.pass(10 * time.Second)
		require.Equal(t, []error{singleton.ErrLeaseLost}, causes)
		require.Equal(t, 2, w.count(), "it is asked for again")
		require.NoError(t, w.nodes[0].Leave(t.Context()))
		w.pass(10 * time.Second)
		_, err = other.Acquire(t.Context())
		require.NoError(t, err, "it was given back")
	})
}

// keeper returns a keeper of the lease of the job, which ends after the nodes.
func keeper(t *testing.T, store lease.Store, cfg lease.Config) *lease.Keeper {
	t.Helper()
	k, err := lease.NewKeeper(store, cfg, "job", "owner")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	return k
}

// counting is a store whose lease another has, and which counts who asks for it.
type counting struct {
	*memory.Store

	asked int
}

func (s *counting) Take(ctx context.Context, c lease.Claim) (lease.Answer, error) {
	if s.asked++; s.asked > 100 {
		<-ctx.Done() // Enough, also where nothing rests.
	}
	return s.Store.Take(ctx, c)
}

// Work that does not get its lease rests before it asks for the lease again, and longer each time.
func TestWithoutTheLeaseWorkRests(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		store := &counting{Store: memory.New()}
		store.Steal("job", "another", time.Hour)
		require.NoError(t, singleton.Start(w.start(), singleton.Config{
			Name: "job", Lease: keeper(t, store, lease.Default()), Log: slog.New(slog.DiscardHandler),
			Run: func(context.Context, sharding.Epoch) error { return nil },
		}))
		w.pass(45 * time.Second)
		require.Equal(t, 7, store.asked) // After 0, 1, 3, 7, 15 and 31 seconds, and once before.
	})
}

// Work whose context has ended since the lease was lost is not done, although it returns nil.
func TestALostLeaseIsNoSuccess(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		store := memory.New()
		require.NoError(t, singleton.Start(w.start(), singleton.Config{
			Name: "job", Lease: keeper(t, store, lease.Default()), Log: slog.New(slog.DiscardHandler),
			Run: func(ctx context.Context, epoch sharding.Epoch) error {
				_ = w.ran(run{0, epoch, ctx})
				return nil
			},
		}))
		w.pass(2 * time.Minute)
		store.Steal("job", "thief", 5*time.Second)
		w.pass(10 * time.Second)
		require.Equal(t, []int{0}, w.at())
		require.Equal(t, 2, w.count())
	})
}

// Work that panics gives the lease back, so that another may have it while the work rests.
func TestALeaseIsGivenBackAfterAPanic(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		store := memory.New()
		mine, other := keeper(t, store, lease.Default()), keeper(t, store, lease.Default())
		require.NoError(t, singleton.Start(w.start(), singleton.Config{
			Name: "job", Lease: mine, Log: slog.New(slog.DiscardHandler),
			Run: func(context.Context, sharding.Epoch) error { panic("broken") },
		}))
		w.pass(12 * time.Second) // The fifth run rests for eight seconds.
		_, held := mine.Check()
		require.False(t, held)
		_, err := other.Acquire(t.Context())
		require.NoError(t, err)
	})
}

// sluggish is a store that takes its time to give a lease, and none to renew it.
type sluggish struct {
	*memory.Store

	owner string // Who had an answer last.
}

func (s *sluggish) Take(ctx context.Context, c lease.Claim) (lease.Answer, error) {
	if c.Owner != s.owner {
		<-time.After(70 * time.Second)
		s.owner = c.Owner
	}
	return s.Store.Take(ctx, c)
}

// The time in which a lease is waited for is no part of the run: work that fails at once rests, and longer
// each time.
func TestWaitingForALeaseIsNoRun(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := lease.Default()
		cfg.TTL, cfg.RequestTimeout = 5*time.Minute, 75*time.Second
		var ends []time.Time
		require.NoError(t, singleton.Start(w.start(), singleton.Config{
			Name: "job", Lease: keeper(t, &sluggish{Store: memory.New()}, cfg), Log: slog.New(slog.DiscardHandler),
			Run: func(context.Context, sharding.Epoch) error {
				ends = append(ends, time.Now())
				return errors.New("broken")
			},
		}))
		w.pass(10 * time.Minute)
		require.Greater(t, len(ends), 4)
		for i, rest := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} {
			require.InDelta(t, (70*time.Second + rest).Seconds(), ends[i+1].Sub(ends[i]).Seconds(), 0.1, "after run %d", i)
		}
	})
}

// Work that is done is not repeated.
func TestWorkThatIsDoneRests(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.work = func(run) error { return nil }
		w.started(2)
		w.pass(5 * time.Minute)
		require.Equal(t, 1, w.count())
		require.NoError(t, w.nodes[0].Leave(t.Context()))
		w.pass(5 * time.Second)
		require.Equal(t, 2, w.count(), "the next node cannot know")
	})
}

// A periodic job does its work at once and then at its interval, and ends with its context.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var calls []time.Duration
		began := time.Now()
		over := make(chan error, 1)
		go func() {
			over <- singleton.Every(time.Minute, func(context.Context, sharding.Epoch) error {
				calls = append(calls, time.Since(began))
				return nil
			})(ctx, sharding.Epoch{})
		}()
		<-time.After(150 * time.Second)
		cancel()
		require.ErrorIs(t, <-over, context.Canceled)
		require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute}, calls)
		broken := errors.New("broken")
		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.ErrorIs(t, singleton.Every(time.Minute, func(context.Context, sharding.Epoch) error { return broken })(ctx, sharding.Epoch{}), broken)
	})
}

// A call that takes longer than the interval is followed by the next one at once, and by no other call meanwhile.
func TestEveryHasNoOverlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := patience.Expiring(t, 170*time.Second)
		var calls []time.Duration
		began, running := time.Now(), false
		over := make(chan error, 1)
		go func() {
			over <- singleton.Every(time.Minute, func(context.Context, sharding.Epoch) error {
				if running {
					t.Error("two calls at one time")
				}
				running = true
				calls = append(calls, time.Since(began))
				if len(calls) == 1 {
					<-time.After(90 * time.Second)
				}
				running = false
				return nil
			})(ctx, sharding.Epoch{})
		}()
		require.ErrorIs(t, <-over, context.DeadlineExceeded)
		require.Equal(t, []time.Duration{0, 90 * time.Second, 120 * time.Second}, calls)
	})
}

// No call begins when the context has ended, also if the interval is over as well.
func TestEveryBeginsNothingAfterItsEnd(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			ended, calls := errors.New("ended"), 0
			err := singleton.Every(time.Minute, func(context.Context, sharding.Epoch) error {
				calls++
				<-time.After(90 * time.Second)
				cancel(ended)
				return nil
			})(ctx, sharding.Epoch{})
			require.ErrorIs(t, err, ended)
			require.Equal(t, 1, calls)
		})
	}
}

// counter counts what it is told.
type counter struct {
	sum   int64
	start func()
}

func (c *counter) Start(*sharding.Context) error {
	c.start()
	return nil
}

func (c *counter) Receive(ctx *sharding.Context, more *wrapperspb.Int64Value) error {
	c.sum += more.GetValue()
	return ctx.Reply(wrapperspb.Int64(c.sum))
}

// A singleton that takes messages is started without one, and is reached from every node, also
// from one that only sends, in the order of the sender.
func TestAnEntityAsASingleton(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var proxies []*singleton.Proxy[*wrapperspb.Int64Value]
		started := 0
		for i := range 3 {
			system := w.start()
			p, err := singleton.StartEntity(system, sharding.Kind[*wrapperspb.Int64Value]{
				Name: "counter", ProxyOnly: i == 0,
				New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] {
					return &counter{start: func() { started++ }}
				},
			})
			require.NoError(t, err)
			proxies = append(proxies, p)
			w.pass(5 * time.Second)
		}
		require.Equal(t, 1, started)
		for _, p := range proxies {
			require.NoError(t, p.Tell(t.Context(), wrapperspb.Int64(1)))
		}
		w.pass(time.Second)
		sum, err := singleton.Ask[*wrapperspb.Int64Value](t.Context(), proxies[0], wrapperspb.Int64(1))
		require.NoError(t, err)
		require.EqualValues(t, 4, sum.GetValue())
		w.pass(time.Hour)
		require.Equal(t, 1, started, "it is not stopped for being idle")
	})
}

// A singleton that takes messages runs on the oldest node, as one that takes none.
func TestAnEntityRunsOnTheOldest(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var at []int
		for i := range 5 {
			_, err := singleton.StartEntity(w.start(), sharding.Kind[*wrapperspb.Int64Value]{
				Name: "counter",
				New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] {
					return &counter{start: func() { at = append(at, i) }}
				},
			})
			require.NoError(t, err)
			w.pass(5 * time.Second)
		}
		for i := range 4 {
			require.NoError(t, w.nodes[i].Leave(t.Context()))
			w.pass(5 * time.Second)
		}
		require.Equal(t, []int{0, 1, 2, 3, 4}, at)
	})
}

func TestWhatAStartRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		system := w.start()
		require.ErrorIs(t, singleton.Start(system, singleton.Config{Name: "job"}), singleton.ErrNoWork)
		work := func(context.Context, sharding.Epoch) error { return nil }
		require.ErrorContains(t, singleton.Start(system, singleton.Config{Run: work}), "name")
		require.ErrorContains(t, singleton.Start(system, singleton.Config{Name: "job", Run: work, HandOverTimeout: -1}), "HandoffTimeout")
		require.ErrorContains(t, singleton.Start(system, singleton.Config{Name: "job", Run: work, OnStuck: "kill"}), `OnStuck: "kill" is neither abort nor abandon`)
		require.NoError(t, singleton.Start(system, singleton.Config{Name: "job", Run: work}))
		require.ErrorContains(t, singleton.Start(system, singleton.Config{Name: "job", Run: work}), "runs on this node already")
	})
}
