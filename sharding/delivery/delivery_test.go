// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
	network "github.com/quorate/quorate/transport/memory"
)

// Deliveries on a cluster of a few nodes in one process, in virtual time: first the cluster, whose
// entities note what they handle, then what is delivered, through what, and what is refused.

// limit bounds every wait.
const limit = 2 * time.Minute

type text = *wrapperspb.StringValue

func say(s string) text { return wrapperspb.String(s) }

// world is a cluster whose nodes run a kind that takes deliveries.
type world struct {
	t       *testing.T
	network *network.Network
	nodes   []*membership.Node
	systems []*sharding.System
	regions []*sharding.Region[*delivery.Frame[text]]
	create  func(*sharding.Context) sharding.Entity[*delivery.Frame[text]] // In place of the usual entities.

	mu      sync.Mutex
	handled map[string][]string                     // By entity.
	before  func(c *sharding.Context, m text) error // Is called before a message counts as handled, if it is set.
}

func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, network: network.NewNetwork(), handled: map[string][]string{}}
		w.create = delivery.Entities(delivery.Inbox{}, func(*sharding.Context) sharding.Entity[text] { return actor{w} })
		defer func() {
			for i := range w.nodes {
				w.close(i)
			}
		}()
		f(t, w)
	})
}

// start starts nodes.
func (w *world) start(n int) {
	for range n {
		cfg, quiet := membership.Default(), slog.New(slog.DiscardHandler)
		cfg.Cluster.Name, cfg.Node.Address = "test", fmt.Sprintf("10.0.0.%d:7946", len(w.nodes)+1)
		cfg.Membership.SeedNodes = []string{"10.0.0.1:7946"}
		node, err := membership.Start(w.t.Context(), cfg, membership.WithLogger(quiet), membership.WithTransport(w.network.Transport))
		require.NoError(w.t, err)
		system, err := sharding.New(node, sharding.Default(), sharding.WithLogger(quiet))
		require.NoError(w.t, err)
		region, err := sharding.Start(system, sharding.Kind[*delivery.Frame[text]]{
			Name: "account", Shards: 10, Codec: delivery.Codec[text](nil), New: w.create,
		})
		require.NoError(w.t, err)
		w.nodes, w.systems, w.regions = append(w.nodes, node), append(w.systems, system), append(w.regions, region)
	}
	pass(20 * time.Second)
}

// close ends a node without a word.
func (w *world) close(i int) {
	require.NoError(w.t, w.nodes[i].Close())
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	require.NoError(w.t, w.systems[i].AwaitEnd(ctx))
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// producer starts a producer on a node, which ends with the test.
func (w *world) producer(node int, change ...func(*delivery.Config)) *delivery.Producer[text] {
	cfg := delivery.Default()
	cfg.Log = slog.New(slog.DiscardHandler)
	for _, f := range change {
		f(&cfg)
	}
	p, err := delivery.NewProducer(w.t.Context(), w.regions[node], cfg)
	require.NoError(w.t, err)
	w.t.Cleanup(p.Close)
	return p
}

// within returns a context that ends at the limit.
func (w *world) within() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) of(id string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.handled[id]...)
}

func (w *world) note(id, s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handled[id] = append(w.handled[id], s)
}

func (w *world) set(before func(c *sharding.Context, m text) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = before
}

// actor is an entity that notes what it handles.
type actor struct{ w *world }

func (a actor) Receive(c *sharding.Context, m text) error {
	a.w.mu.Lock()
	before := a.w.before
	a.w.mu.Unlock()
	if before != nil {
		if err := before(c, m); err != nil {
			return err
		}
	}
	a.w.note(c.ID(), m.GetValue())
	return nil
}

// numbers returns the texts of messages.
func numbers(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("m%d", i)
	}
	return all
}

// Everything is handled once and in order, on the own node and on others.
func TestMessagesAreDeliveredInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		p := w.producer(0)
		for _, m := range numbers(200) {
			for e := range 10 {
				require.NoError(t, p.Send(w.within(), fmt.Sprintf("e%d", e), say(m)))
			}
		}
		require.NoError(t, p.Flush(w.within()))
		for e := range 10 {
			require.Equal(t, numbers(200), w.of(fmt.Sprintf("e%d", e)))
		}
		require.Equal(t, delivery.Stats{Confirmed: 2000}, p.Stats())
	})
}

// What is sent while the home of the entity dies is delivered by the next one: at least once, with
// what comes after it in order.
func TestDeliveryOutlivesTheHome(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(4)
		p := w.producer(0)
		var sending sync.WaitGroup
		for e := range 10 {
			sending.Go(func() {
				for _, m := range numbers(50) {
					if !errors.Is(p.Send(w.within(), fmt.Sprintf("e%d", e), say(m)), nil) {
						t.Error("not accepted")
					}
					<-time.After(50 * time.Millisecond)
				}
			})
		}
		<-time.After(time.Second)
		w.close(3)
		sending.Wait()
		require.NoError(t, p.Flush(w.within()))
		for e := range 10 {
			last := -1
			seen := map[string]bool{}
			for _, m := range w.of(fmt.Sprintf("e%d", e)) {
				var n int
				_, err := fmt.Sscanf(m, "m%d", &n)
				require.NoError(t, err)
				require.True(t, seen[m] || n == last+1, "%s after m%d", m, last)
				last, seen[m] = n, true
			}
			require.Equal(t, 49, last)
		}
	})
}

// Nodes that come and go in order have nothing handled twice: entities take their inboxes along, those with
// a memory that too.
func TestAnInboxMovesWithItsEntity(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.create = delivery.Entities(delivery.Inbox{}, func(c *sharding.Context) sharding.Entity[text] {
			if c.ID() < "e5" {
				return actor{w}
			}
			return &rememberer{actor: actor{w}}
		})
		w.start(2)
		p := w.producer(0)
		for i, m := range numbers(40) {
			switch i {
			case 10:
				w.start(2)
			case 20:
				require.NoError(t, w.nodes[1].Leave(w.within()))
			}
			for e := range 10 {
				require.NoError(t, p.Send(w.within(), fmt.Sprintf("e%d", e), say(m)))
			}
		}
		require.NoError(t, p.Flush(w.within()))
		for e := range 10 {
			want := numbers(40)
			if e >= 5 {
				for i := range want {
					want[i] = fmt.Sprintf("%s after %d", want[i], i)
				}
			}
			require.Equal(t, want, w.of(fmt.Sprintf("e%d", e)))
		}
	})
}

// rememberer notes with each message how many it remembers.
type rememberer struct {
	actor

	n byte
}

func (r *rememberer) Receive(c *sharding.Context, m text) error {
	r.n++
	return r.actor.Receive(c, say(fmt.Sprintf("%s after %d", m.GetValue(), r.n-1)))
}

func (r *rememberer) Snapshot(*sharding.Context) ([]byte, error) { return []byte{r.n}, nil }

func (r *rememberer) Restore(_ *sharding.Context, snapshot []byte) error {
	r.n = snapshot[0]
	return nil
}

// An entity with a state handles each message once, though its homes die one after the other.
func TestAStateMakesItOnce(t *testing.T) {
	type account struct {
		Sum   int
		Inbox delivery.Inbox
	}
	inBubble(t, func(t *testing.T, w *world) {
		keeper, err := state.NewKeeper(memory.New(), state.Default())
		require.NoError(t, err)
		fails := 0
		w.create = state.Snapshots(keeper, state.JSON[account](),
			func(c *state.Context[account], f *delivery.Frame[text]) error {
				return f.Handle(c, &c.State().Inbox, func(m text) error {
					if m.GetValue() == "read" {
						return c.Reply(say(fmt.Sprint(c.State().Sum)))
					}
					c.State().Sum++
					if w.mu.Lock(); fails%7 == 6 {
						defer w.mu.Unlock()
						fails++
						return errors.New("now and then")
					}
					fails++
					w.mu.Unlock()
					return nil
				})
			})
		w.start(4)
		p := w.producer(0)
		for n := range 50 {
			for e := range 10 {
				require.NoError(t, p.Send(w.within(), fmt.Sprintf("e%d", e), say("add")))
			}
			if n == 20 {
				w.close(3)
			}
		}
		require.NoError(t, p.Flush(w.within()))
		require.NotZero(t, p.Stats().Failed)
		for e := range 10 {
			sum, err := sharding.Ask[text](w.within(), w.regions[1], fmt.Sprintf("e%d", e), delivery.Plain(say("read")))
			require.NoError(t, err)
			require.Equal(t, "50", sum.GetValue())
		}
	})
}

// An entity that handles nothing holds up its senders, and nobody else.
func TestAFullProducer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		hold := make(chan struct{})
		w.set(func(c *sharding.Context, _ text) error {
			if c.ID() == "slow" {
				select {
				case <-hold:
				case <-c.Context().Done():
				}
			}
			return nil
		})
		p := w.producer(0, func(c *delivery.Config) { c.PerEntity = 3 })
		for _, m := range numbers(3) {
			require.NoError(t, p.Send(w.within(), "slow", say(m)))
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := p.Send(short, "slow", say("too much"))
		require.ErrorIs(t, err, delivery.ErrFull)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, p.Deliver(w.within(), "quick", say("m")))
		require.Equal(t, 3, p.Stats().Held)
		sent := make(chan error, 1)
		go func() { sent <- p.Send(w.within(), "slow", say("m3")) }()
		pass(time.Second)
		require.Empty(t, sent)
		close(hold)
		require.NoError(t, <-sent)
		require.NoError(t, p.Flush(w.within()))
		require.Equal(t, numbers(4), w.of("slow"))
	})
}

// An entity that takes longer for a message than its producer waits handles each message once all the same.
func TestAnEntityThatIsSlowerThanTheTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		w.set(func(*sharding.Context, text) error {
			<-time.After(5 * time.Second)
			return nil
		})
		p := w.producer(0, func(c *delivery.Config) { c.Timeout = time.Second })
		for _, m := range numbers(5) {
			require.NoError(t, p.Send(w.within(), "e", say(m)))
		}
		require.NoError(t, p.Flush(w.within()))
		require.Equal(t, numbers(5), w.of("e"))
		require.NotZero(t, p.Stats().Failed)
	})
}

// A message that fails is delivered again, and those after it wait for it.
func TestAnEntityThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		left := 5
		w.set(func(_ *sharding.Context, m text) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if m.GetValue() == "m1" && left > 0 {
				left--
				return errors.New("not yet")
			}
			return nil
		})
		p := w.producer(0)
		for _, m := range numbers(3) {
			require.NoError(t, p.Send(w.within(), "e", say(m)))
		}
		require.NoError(t, p.Flush(w.within()))
		require.Equal(t, numbers(3), w.of("e"))
		require.GreaterOrEqual(t, p.Stats().Failed, uint64(5))
	})
}

// A delivery that is refused comes again, to the instance that has refused it, and its inbox has not seen it: neither
// one in the memory of the entity, nor one in a state, from which what was handled of the same frame is taken back as
// well.
func TestARefusedDeliveryComesAgain(t *testing.T) {
	type account struct {
		Sum   int
		Inbox delivery.Inbox
	}
	for name, saved := range map[string]bool{"in memory": false, "in a state": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				keeper, err := state.NewKeeper(memory.New(), state.Default())
				require.NoError(t, err)
				left, starts := 5, 0
				refuses := func(_ *sharding.Context, m text) error {
					w.mu.Lock()
					defer w.mu.Unlock()
					if m.GetValue() == "m1" && left > 0 {
						left--
						return sharding.Refuse(say("not yet"))
					}
					return nil
				}
				w.set(refuses)
				create := w.create
				if saved {
					create = state.Snapshots(keeper, state.JSON[account](), func(c *state.Context[account], f *delivery.Frame[text]) error {
						return f.Handle(c, &c.State().Inbox, func(m text) error {
							if m.GetValue() == "read" {
								return c.Reply(say(fmt.Sprint(c.State().Sum)))
							}
							c.State().Sum++
							return refuses(c.Context, m)
						})
					})
				}
				w.create = func(c *sharding.Context) sharding.Entity[*delivery.Frame[text]] {
					w.mu.Lock()
					defer w.mu.Unlock()
					starts++
					return create(c)
				}
				w.start(2)
				p := w.producer(0)
				for _, m := range numbers(3) {
					require.NoError(t, p.Send(w.within(), "e", say(m)))
				}
				require.NoError(t, p.Flush(w.within()))
				require.GreaterOrEqual(t, p.Stats().Failed, uint64(5))
				require.Equal(t, 1, starts)
				if !saved {
					require.Equal(t, numbers(3), w.of("e"))
					return
				}
				sum, err := sharding.Ask[text](w.within(), w.regions[1], "e", delivery.Plain(say("read")))
				require.NoError(t, err)
				require.Equal(t, "3", sum.GetValue())
			})
		})
	}
}

// An entity that answers a delivery in place of acknowledging it confirms nothing. It holds up itself alone.
func TestAnEntityThatAnswersSomethingElse(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		w.set(func(c *sharding.Context, m text) error {
			if m.GetValue() == "odd" {
				return c.Reply(say("what nobody has asked for"))
			}
			return nil
		})
		p := w.producer(0)
		for e := range 5 {
			require.NoError(t, p.Send(w.within(), fmt.Sprintf("odd%d", e), say("odd")))
		}
		require.NoError(t, p.Deliver(w.within(), "e", say("m")))
		pass(time.Minute)
		require.Equal(t, 5, p.Stats().Held)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, p.Flush(short), delivery.ErrUnconfirmed)
		require.ErrorIs(t, p.Deliver(short, "odd", say("odd")), context.DeadlineExceeded)
	})
}

// What a producer leaves behind in its queue is delivered by the next one, and what was handled already
// is recognised.
func TestAQueueOutlivesItsProducer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		q := &queue{MemoryQueue: delivery.NewMemoryQueue()}
		queued := func(c *delivery.Config) { c.Queue = q }
		p := w.producer(0, queued)
		q.fail(errors.New("down"))
		require.ErrorIs(t, p.Send(w.within(), "e", say("refused")), delivery.ErrQueue)
		require.Zero(t, p.Stats().Held)
		q.fail(nil)
		for _, m := range numbers(3) {
			require.NoError(t, p.Deliver(w.within(), "e", say(m)))
		}
		q.failRemovals(errors.New("down"))
		for _, m := range numbers(6)[3:] {
			require.NoError(t, p.Send(w.within(), "e", say(m)))
		}
		pass(time.Second)
		require.Positive(t, p.Stats().Held, "what the queue has not removed is not confirmed")
		p.Close()
		q.failRemovals(nil)
		p = w.producer(1, queued)
		require.NoError(t, p.Deliver(w.within(), "e", say("m6")))
		require.Equal(t, numbers(7), w.of("e"))
		left, err := q.Load(t.Context())
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

// queue is a queue that fails when it is told to.
type queue struct {
	*delivery.MemoryQueue

	mu               sync.Mutex
	appends, removes error
}

func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.appends = err
}

func (q *queue) failRemovals(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removes = err
}

func (q *queue) Append(ctx context.Context, e delivery.Entry) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.appends != nil {
		return q.appends
	}
	return q.MemoryQueue.Append(ctx, e)
}

func (q *queue) Remove(ctx context.Context, ids []delivery.EntryID) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.removes != nil {
		return q.removes
	}
	return q.MemoryQueue.Remove(ctx, ids)
}

// A queue with something that no producer has appended is refused.
func TestAQueueOfGarbage(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		id := delivery.EntryID{Session: delivery.Session{1}, Number: 7}
		for want, entries := range map[string][]delivery.Entry{
			"message 7 of session 01000000000000000000000000000000: it cannot be decoded": {{EntryID: id, To: "e", Message: []byte{0xff}}},
			"it has no session":    {{EntryID: delivery.EntryID{Number: 7}, To: "e"}},
			"it follows message 7": {{EntryID: id, To: "e"}, {EntryID: id, To: "e"}},
			"the id is empty":      {{EntryID: id}},
		} {
			cfg, q := delivery.Default(), delivery.NewMemoryQueue()
			for _, e := range entries {
				require.NoError(t, q.Append(t.Context(), e))
			}
			cfg.Queue = q
			_, err := delivery.NewProducer(t.Context(), w.regions[0], cfg)
			require.ErrorIs(t, err, delivery.ErrQueue)
			require.ErrorContains(t, err, want)
		}
	})
}

// Who waits when the producer, or its node, ends, is told.
func TestTheEndOfAProducer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		w.set(func(c *sharding.Context, _ text) error {
			<-c.Context().Done()
			return context.Cause(c.Context())
		})
		p, other := w.producer(0), w.producer(0)
		waits := make(chan error, 2)
		go func() { waits <- p.Deliver(w.within(), "e", say("m")) }()
		go func() { waits <- other.Deliver(w.within(), "e", say("m")) }()
		pass(time.Second)
		p.Close()
		p.Close()
		require.ErrorIs(t, <-waits, delivery.ErrClosed)
		require.ErrorIs(t, p.Send(w.within(), "e", say("m")), delivery.ErrClosed)
		require.ErrorIs(t, p.Flush(w.within()), delivery.ErrClosed)
		w.close(0)
		require.ErrorIs(t, <-waits, delivery.ErrClosed)
	})
}

// A producer ends with its node, also one that holds nothing and that nobody closes: the bubble has no end while a
// goroutine is left.
func TestAProducerEndsWithItsNode(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		p, err := delivery.NewProducer(w.t.Context(), w.regions[0], delivery.Default())
		require.NoError(t, err)
		require.NoError(t, p.Deliver(w.within(), "e", say("m")))
		pass(time.Minute)
		w.close(0)
		synctest.Wait()
		require.ErrorIs(t, p.Send(w.within(), "e", say("m")), delivery.ErrClosed)
	})
}

func TestWhatIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		p := w.producer(0, func(c *delivery.Config) { c.MessageBytes, c.FrameBytes = 100, 100 })
		for _, id := range []string{"", strings.Repeat("x", 513), "\xff"} {
			require.ErrorIs(t, p.Send(w.within(), id, say("m")), delivery.ErrInvalid)
		}
		require.ErrorIs(t, p.Send(w.within(), "e", say(strings.Repeat("x", 100))), delivery.ErrInvalid)
		require.ErrorIs(t, p.Send(w.within(), "e", say("\xff")), delivery.ErrInvalid, "protobuf has no such text")
		require.ErrorIs(t, p.Send(w.within(), "e", nil), delivery.ErrInvalid)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, p.Send(over, "e", say("m")), context.Canceled)
		require.Zero(t, p.Stats())
		for _, change := range []func(*delivery.Config){
			func(c *delivery.Config) { c.Messages = 0 },
			func(c *delivery.Config) { c.PerEntity = c.Messages + 1 },
			func(c *delivery.Config) { c.Frame = delivery.MaxFrame + 1 },
			func(c *delivery.Config) { c.FrameBytes = c.MessageBytes + 1 },
			func(c *delivery.Config) { c.Timeout = 0 },
			func(c *delivery.Config) { c.RetryMax = c.RetryMin - 1 },
		} {
			cfg := delivery.Default()
			change(&cfg)
			_, err := delivery.NewProducer(t.Context(), w.regions[0], cfg)
			require.ErrorIs(t, err, delivery.ErrConfig)
		}
	})
}
