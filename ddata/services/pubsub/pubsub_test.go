// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/services/internal/clustertest"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/membership"
)

// onAll puts topics on nodes.
func onAll(w *clustertest.World, nodes ...*clustertest.Node) (all []*pubsub.PubSub) {
	for _, n := range nodes {
		p, err := pubsub.New(n, pubsub.WithLogger(clustertest.Quiet(w.T)))
		require.NoError(w.T, err)
		n.Ends = append(n.Ends, p.AwaitEnd)
		all = append(all, p)
	}
	return all
}

// topic returns the topic "news" of a node.
func topic(t *testing.T, p *pubsub.PubSub) *pubsub.Topic[int] {
	t.Helper()
	of, err := pubsub.NewTopic(p, "news", pubsub.JSON[int]{})
	require.NoError(t, err)
	return of
}

// publish publishes numbers.
func publish(t *testing.T, of *pubsub.Topic[int], from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		require.NoError(t, of.Publish(t.Context(), i))
	}
}

// reader reads a subscription.
type reader struct {
	*pubsub.Subscription[int]

	t *testing.T
}

func (r reader) next() int {
	r.t.Helper()
	m, err := r.Next(patience.Context(r.t))
	require.NoError(r.t, err)
	return m.Value
}

// reads checks that these numbers come next.
func (r reader) reads(from, to int) {
	r.t.Helper()
	for i := from; i < to; i++ {
		require.Equal(r.t, i, r.next())
	}
}

// rest reads what comes in a while.
func (r reader) rest() (all []int) {
	r.t.Helper()
	for {
		m, err := r.Next(patience.Expiring(r.t, 5*time.Second))
		if errors.Is(err, context.DeadlineExceeded) {
			return all
		}
		require.NoError(r.t, err)
		all = append(all, m.Value)
	}
}

func subscribe(t *testing.T, of *pubsub.Topic[int], opts ...pubsub.SubscribeOption) reader {
	t.Helper()
	s, err := of.Subscribe(t.Context(), opts...)
	require.NoError(t, err)
	return reader{s, t}
}

func join(t *testing.T, of *pubsub.Topic[int], group string, opts ...pubsub.SubscribeOption) reader {
	t.Helper()
	s, err := of.SubscribeGroup(t.Context(), group, opts...)
	require.NoError(t, err)
	return reader{s, t}
}

// knows waits until a node knows as many other nodes with subscribers, and as many nodes in
// the group "g".
func knows(t *testing.T, p *pubsub.PubSub, nodes, members int) {
	t.Helper()
	clustertest.Eventually(t, "the subscribers are known", func() bool {
		e, err := p.Explain(t.Context(), "news")
		return err == nil && len(e.Nodes) == nodes && len(e.Groups["g"]) == members
	})
	clustertest.Pass(time.Second) // The news of a change is at most as late as subscriptions to data are.
}

// What one node publishes comes to all subscribers in order, and to each node once.
func TestMessagesReachAllSubscribersInOrder(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(3)
		all := onAll(w, w.Nodes...)
		var readers []reader
		for _, p := range all {
			of := topic(t, p)
			readers = append(readers, subscribe(t, of), subscribe(t, of))
		}
		other, err := pubsub.NewTopic(all[1], "other", pubsub.JSON[int]{})
		require.NoError(t, err)
		apart := subscribe(t, other)
		knows(t, all[0], 2, 0)
		const n = 500
		publish(t, topic(t, all[0]), 0, n)
		for _, r := range readers {
			r.reads(0, n)
		}
		require.Empty(t, apart.rest())
		require.EqualValues(t, n, all[0].Stats().Published)
		require.EqualValues(t, 2*n, all[0].Stats().Sent, "one for each other node")
		require.EqualValues(t, n, all[1].Stats().Received)
		m := all[0].Stats()
		require.Zero(t, m.Unheard+m.ConnectionFull+m.NodeGone+m.SubscriberFull)

		for _, r := range readers[2:4] {
			r.Close()
			r.Close()
			_, err := r.Next(t.Context())
			require.ErrorIs(t, err, pubsub.ErrClosed)
		}
		publish(t, topic(t, all[0]), n, n+1)
		knows(t, all[0], 1, 0)
		require.EqualValues(t, 1, all[1].Stats().Unheard, "what was sent before the publisher knew")
		publish(t, topic(t, all[0]), n+1, n+2)
		require.EqualValues(t, n+1, all[1].Stats().Received, "nothing more is sent to a node without subscribers")
		readers[4].reads(n, n+2)
	})
}

// One receiver of each group gets a message, in turn over nodes and receivers; a group goes
// on when a node has gone.
func TestGroups(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(3)
		all := onAll(w, w.Nodes...)
		var in []reader
		for _, p := range all {
			in = append(in, join(t, topic(t, p), "g"))
		}
		in = append(in, join(t, topic(t, all[2]), "g"))
		alone, plain := join(t, topic(t, all[1]), "h"), subscribe(t, topic(t, all[2]))
		knows(t, all[0], 1, 3)
		const n = 120
		publish(t, topic(t, all[0]), 0, n)
		alone.reads(0, n)
		plain.reads(0, n)
		seen := map[int]bool{}
		for i, want := range []int{n / 3, n / 3, n / 6, n / 6} {
			got := in[i].rest()
			require.Len(t, got, want, "receiver %d", i)
			require.IsIncreasing(t, got)
			for _, m := range got {
				require.False(t, seen[m], "by one receiver only")
				seen[m] = true
			}
		}
		require.Len(t, seen, n)
		require.EqualValues(t, n, all[2].Stats().Received, "one message a node, for its group and the others")

		w.Crash(w.Nodes[2])
		knows(t, all[0], 0, 2)
		publish(t, topic(t, all[0]), 0, 10)
		require.Len(t, in[0].rest(), 5)
		require.Len(t, in[1].rest(), 5)
		clustertest.Eventually(t, "the node that is gone is removed from the data", func() bool {
			e, err := all[0].Explain(t.Context(), "news")
			return err == nil && len(e.Absent) == 0
		})
	})
}

// A subscriber of another node that blocks has the publisher wait, and loses nothing.
func TestASubscriberThatBlocks(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(2)
		all := onAll(w, w.Nodes...)
		for at, p := range all {
			r := subscribe(t, topic(t, p), pubsub.WithRoom(8))
			knows(t, all[0], at, 0)
			const n = 400
			done, of := make(chan int, 1), topic(t, all[0])
			go func() {
				sent := 0
				for ; sent < n && of.Publish(t.Context(), sent) == nil; sent++ {
					//quorate:realtime It is virtual.
					<-time.After(time.Millisecond) // For the word of the other node to come.
				}
				done <- sent
			}()
			clustertest.Pass(2 * time.Second)
			require.Empty(t, done, "the publisher waits, node %d", at)
			r.reads(0, n)
			require.Equal(t, n, <-done)
			require.Zero(t, r.Dropped())

			ctx := patience.Expiring(t, 10*time.Millisecond)
			var err error
			for err == nil {
				err = topic(t, all[0]).Publish(ctx, 0)
				synctest.Wait()
			}
			var failed *pubsub.PublishError
			require.ErrorAs(t, err, &failed)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, p, all[at])
			require.Equal(t, w.Nodes[at].Member.Self(), failed.Failed[0].Node)
			r.Close()
		}
	})
}

// A subscriber that fails has the publisher told so, on its own node at once, and on another
// one when the word has come.
func TestASubscriberThatFails(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(2)
		all := onAll(w, w.Nodes...)
		here := subscribe(t, topic(t, all[0]), pubsub.WithRoom(8), pubsub.WithPolicy(pubsub.Fail))
		publish(t, topic(t, all[0]), 0, 8)
		require.ErrorIs(t, topic(t, all[0]).Publish(t.Context(), 8), pubsub.ErrSlow)
		here.reads(0, 8)
		here.Close()

		there := subscribe(t, topic(t, all[1]), pubsub.WithRoom(8), pubsub.WithPolicy(pubsub.Fail))
		knows(t, all[0], 1, 0)
		sent := 0
		for ; topic(t, all[0]).Publish(t.Context(), sent) == nil; sent++ {
			clustertest.Pass(time.Millisecond)
		}
		require.GreaterOrEqual(t, sent, 8)
		require.ErrorIs(t, topic(t, all[0]).Publish(t.Context(), sent), pubsub.ErrSlow)
		there.reads(0, 8)
		require.EqualValues(t, sent-8, there.Dropped())
		require.EqualValues(t, sent-8, all[1].Stats().SubscriberFull)
		clustertest.Pass(time.Second)
		require.NoError(t, topic(t, all[0]).Publish(t.Context(), sent))
		there.reads(sent, sent+1)
	})
}

// Subscribers that never read cost their room, and what is dropped is counted.
func TestSubscribersThatNeverRead(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(2)
		all := onAll(w, w.Nodes...)
		for at, p := range all {
			newest := subscribe(t, topic(t, p), pubsub.WithRoom(10), pubsub.WithPolicy(pubsub.DropNewest))
			oldest := subscribe(t, topic(t, p), pubsub.WithRoom(10), pubsub.WithPolicy(pubsub.DropOldest))
			knows(t, all[0], at, 0)
			publish(t, topic(t, all[0]), 0, 1000)
			clustertest.Pass(time.Second)
			require.Equal(t, 20, p.Stats().Waiting)
			newest.reads(0, 10)
			oldest.reads(990, 1000)
			require.EqualValues(t, 990, newest.Dropped())
			require.EqualValues(t, 990, oldest.Dropped())
			require.Empty(t, newest.rest())
			newest.Close()
			oldest.Close()
			require.EqualValues(t, 2*990, p.Stats().SubscriberFull, "node %d", at)
		}
	})
}

// A connection that takes no more is told to the publisher, or counted, or waited for.
func TestAConnectionThatIsFull(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Config = func(_ int, m *membership.Config, _ *ddata.Config) { m.Transport.WindowBytes = 64 << 10 }
		w.Start(2)
		all := onAll(w, w.Nodes...)
		there, err := pubsub.NewTopic(all[1], "blobs", pubsub.Bytes{})
		require.NoError(t, err)
		s, err := there.Subscribe(t.Context())
		require.NoError(t, err)
		clustertest.Pass(2 * time.Second)
		of := func(p pubsub.Policy) *pubsub.Topic[[]byte] {
			of, err := pubsub.NewTopic(all[0], "blobs", pubsub.Bytes{}, pubsub.WithOverflow(p))
			require.NoError(t, err)
			return of
		}
		w.Cut(w.Nodes[1])
		blob, sent := make([]byte, 10_000), 0
		for ; err == nil; sent++ {
			err = of(pubsub.Fail).Publish(t.Context(), blob)
			require.Less(t, sent, 100)
		}
		sent--
		require.ErrorIs(t, err, pubsub.ErrFull)
		require.ErrorIs(t, of(pubsub.Fail).Publish(t.Context(), make([]byte, 50_000)), pubsub.ErrFull, "a large message goes alone")
		require.NoError(t, of(pubsub.DropNewest).Publish(t.Context(), blob))
		require.EqualValues(t, 1, all[0].Stats().ConnectionFull)
		done := make(chan error, 1)
		go func() { done <- of(pubsub.Block).Publish(t.Context(), blob) }()
		clustertest.Pass(100 * time.Millisecond)
		require.Empty(t, done)
		w.Heal(w.Nodes[1])
		require.NoError(t, <-done)
		ctx := patience.Context(t)
		for range sent + 1 {
			m, err := s.Next(ctx)
			require.NoError(t, err)
			require.Len(t, m.Value, len(blob))
		}
	})
}

// What was published for a node that is gone before the connection took it is counted.
func TestWhatWaitsForANodeThatGoesIsCounted(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Config = func(_ int, m *membership.Config, _ *ddata.Config) { m.Transport.WindowBytes = 64 << 10 }
		w.Start(3)
		all := onAll(w, w.Nodes...)
		subscribe(t, topic(t, all[2]))
		knows(t, all[0], 1, 0)
		of, err := pubsub.NewTopic(all[0], "news", pubsub.JSON[int]{}, pubsub.WithOverflow(pubsub.Fail))
		require.NoError(t, err)
		w.Cut(w.Nodes[2])
		published := uint64(0)
		for ; err == nil; published++ {
			err = of.Publish(t.Context(), 1)
			require.Less(t, published, uint64(1_000_000))
		}
		published--
		require.ErrorIs(t, err, pubsub.ErrFull)
		sent := all[0].Stats().Sent
		require.Less(t, sent, published)
		w.Crash(w.Nodes[2])
		clustertest.Eventually(t, "the connection is given up", func() bool { return all[0].Stats().NodeGone > 0 })
		require.Equal(t, published, all[0].Stats().Sent+all[0].Stats().NodeGone)
	})
}

// A node that does not hold the data publishes and subscribes like the others.
func TestANodeWithoutData(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.DataOn(2)
		w.Start(3)
		all := onAll(w, w.Nodes...)
		here, away := subscribe(t, topic(t, all[0])), subscribe(t, topic(t, all[2]))
		knows(t, all[0], 1, 0)
		publish(t, topic(t, all[0]), 0, 10)
		away.reads(0, 10)
		here.reads(0, 10)
		publish(t, topic(t, all[2]), 10, 20)
		away.reads(10, 20)
		here.reads(10, 20)
		here.Close()
		clustertest.Pass(3 * time.Second)
		before := all[2].Stats().Sent
		publish(t, topic(t, all[2]), 20, 21)
		require.Equal(t, before, all[2].Stats().Sent)
	})
}

// A context ends a wait for the subscribers, whoever else waits for them.
func TestAWaitEndsWithItsContext(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.DataOn(1)
		w.Start(2)
		of := topic(t, onAll(w, w.Nodes[1])[0])
		w.Cut(w.Nodes[1])
		first := make(chan error, 1)
		go func() { first <- of.Publish(patience.Expiring(t, 3*time.Second), 1) }() // Owner: this test, which waits.
		clustertest.Pass(time.Second)
		began := time.Now()
		require.ErrorIs(t, of.Publish(patience.Expiring(t, time.Second), 2), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, <-first, context.DeadlineExceeded)
	})
}

// fickle is a codec that fails as it is told.
type fickle struct{}

func (fickle) Append(dst []byte, v string) ([]byte, error) {
	switch v {
	case "fail":
		return nil, errors.New("no")
	case "panic":
		panic("no")
	default:
		return append(dst, v...), nil
	}
}

func (fickle) Decode(b []byte) (string, error) {
	_, err := fickle{}.Append(nil, string(b[1:]))
	return string(b), err
}

// Faults of callers, of codecs, and the end of the node.
func TestErrors(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(1)
		p := onAll(w, w.Nodes...)[0]
		_, err := pubsub.New(w.Nodes[0])
		require.ErrorIs(t, err, machine.ErrTaken)
		_, err = pubsub.New(w.Nodes[0], pubsub.WithMaxMessageBytes(0))
		require.ErrorIs(t, err, pubsub.ErrOption)
		for _, name := range []string{"", strings.Repeat("n", 256), "\xff"} {
			_, err := pubsub.NewTopic(p, name, pubsub.Bytes{})
			require.ErrorIs(t, err, pubsub.ErrName)
			_, err = topic(t, p).SubscribeGroup(t.Context(), name)
			require.ErrorIs(t, err, pubsub.ErrName)
			_, err = p.Explain(t.Context(), name)
			require.ErrorIs(t, err, pubsub.ErrName)
		}
		_, err = pubsub.NewTopic(p, "news", pubsub.Bytes{}, pubsub.WithOverflow(pubsub.DropOldest))
		require.ErrorIs(t, err, pubsub.ErrOption)
		_, err = topic(t, p).Subscribe(t.Context(), pubsub.WithRoom(0))
		require.ErrorIs(t, err, pubsub.ErrOption)

		odd, err := pubsub.NewTopic(p, "odd", fickle{})
		require.NoError(t, err)
		var codec *pubsub.CodecError
		for _, v := range []string{"fail", "panic"} {
			require.ErrorAs(t, odd.Publish(t.Context(), v), &codec)
		}
		require.NoError(t, odd.Publish(t.Context(), "nobody hears it"))
		require.EqualValues(t, 1, p.Stats().Unheard)
		s, err := odd.Subscribe(t.Context())
		require.NoError(t, err)
		for _, v := range []string{"-fail", "-panic", "-good"} {
			require.NoError(t, odd.Publish(t.Context(), v))
		}
		for range 2 {
			_, err = s.Next(t.Context())
			require.ErrorAs(t, err, &codec)
			require.Equal(t, w.Nodes[0].Member.Self(), codec.From)
		}
		m, err := s.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, "-good", m.Value)
		require.EqualValues(t, 2, p.Stats().Undecoded)
		require.ErrorIs(t, odd.Publish(t.Context(), strings.Repeat("x", 64<<20)), pubsub.ErrTooLarge)

		w.Close(w.Nodes[0])
		_, err = s.Next(t.Context())
		require.ErrorIs(t, err, pubsub.ErrClosed)
		require.ErrorIs(t, odd.Publish(t.Context(), "late"), pubsub.ErrClosed)
		_, err = odd.Subscribe(t.Context())
		require.ErrorIs(t, err, pubsub.ErrClosed)
	})
}

// What the frames between nodes do not take is refused, whatever the bound of messages says.
func TestAMessageLargerThanAFrame(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Config = func(_ int, m *membership.Config, _ *ddata.Config) { m.Transport.MaxFrameBytes = 128 << 10 }
		w.Start(2)
		all := onAll(w, w.Nodes...)
		there, err := pubsub.NewTopic(all[1], "news", pubsub.Bytes{})
		require.NoError(t, err)
		s, err := there.Subscribe(t.Context())
		require.NoError(t, err)
		knows(t, all[0], 1, 0)
		here, err := pubsub.NewTopic(all[0], "news", pubsub.Bytes{})
		require.NoError(t, err)
		require.ErrorIs(t, here.Publish(t.Context(), make([]byte, 200<<10)), pubsub.ErrTooLarge)
		require.Zero(t, all[0].Stats().NodeGone)
		require.NoError(t, here.Publish(t.Context(), make([]byte, 50<<10)))
		m, err := s.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, m.Value, 50<<10)
	})
}

// A frame that means nothing is counted and dropped.
func TestAHostileFrame(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(2)
		all := onAll(w, w.Nodes...)
		r := subscribe(t, topic(t, all[1]))
		lane := w.Nodes[0].Member.Transport().Lane(w.Nodes[1].Member.Self(), machine.LaneMessage)
		require.NoError(t, lane.Append(6, func(dst []byte) []byte { return append(dst, "\x0a\x00"...) }))
		clustertest.Eventually(t, "it is counted", func() bool { return all[1].Stats().Malformed == 1 })
		knows(t, all[0], 1, 0)
		publish(t, topic(t, all[0]), 0, 3)
		r.reads(0, 3)
	})
}

func TestMetrics(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(1)
		reader := metertest.New()
		p, err := pubsub.New(w.Nodes[0], pubsub.WithMeterProvider(reader.Provider()))
		require.NoError(t, err)
		w.Nodes[0].Ends = append(w.Nodes[0].Ends, p.AwaitEnd)
		subscribe(t, topic(t, p))
		publish(t, topic(t, p), 0, 3)
		for name, want := range map[string]int{
			"subscribers": 1, "topics": 1, "messages.waiting": 3, "messages.published": 3, "messages.sent": 0, "messages.received": 0,
			"messages.unheard": 0, "messages.malformed": 0, "messages.undecoded": 0,
		} {
			require.Equal(t, want, int(reader.Value(t, "quorate.pubsub."+name)), name)
		}
	})
}

// Topics that nobody uses are forgotten, and known again when they are used.
func TestIdleTopicsAreForgotten(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(1)
		p := onAll(w, w.Nodes...)[0]
		of := topic(t, p)
		for i := range 100 {
			one, err := pubsub.NewTopic(p, fmt.Sprint(i), pubsub.JSON[int]{})
			require.NoError(t, err)
			require.NoError(t, one.Publish(t.Context(), 1))
		}
		publish(t, of, 0, 1)
		require.Equal(t, 101, p.Stats().Topics)
		clustertest.Pass(3 * time.Minute)
		require.Zero(t, p.Stats().Topics)
		r := subscribe(t, topic(t, p))
		publish(t, of, 0, 1)
		r.reads(0, 1)
	})
}
