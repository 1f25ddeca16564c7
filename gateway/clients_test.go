// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/internal/patience"
)

// The metrics say what the counters say, until the gateway is closed.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := start(t, 1, nil)
	n := w.nodes[0]
	c := w.ready(nil)
	_, err := c.Ask(t.Context(), "echo", "one", []byte("once"))
	require.NoError(t, err)
	var waits sync.WaitGroup
	waits.Go(func() { _, _ = c.Ask(t.Context(), "echo", "two", []byte("wait")) }) // The end of the client ends it.
	value := func(name string) int { return int(n.metrics.Value(t, "quorate.gateway."+name)) }
	patience.Eventually(t, func() bool { return value("requests.waiting") == 1 }, "the second is under way")
	require.Equal(t, 1, value("connections"))
	require.Equal(t, 1, value("requests.answered"))
	require.Zero(t, value("requests.overloaded"))
	require.NoError(t, c.Close())
	waits.Wait()
	require.NoError(t, n.Close())
	require.Empty(t, n.metrics.Instruments(t))
}

// Many asks under way at a time are all answered, each with its own reply; soon each goes to the node that
// hosts.
func TestClientsAskAndTell(t *testing.T) {
	t.Parallel()
	w := start(t, 2, nil)
	c := w.ready(nil)
	var askers sync.WaitGroup
	for i := range 16 {
		askers.Go(func() {
			id := "e" + strconv.Itoa(i)
			for n := range 50 {
				text := strconv.Itoa(n)
				got, err := c.Ask(t.Context(), "echo", id, []byte(text))
				if err != nil || !strings.HasPrefix(string(got), id+" "+text+" ") {
					t.Errorf("%q, %v", got, err)
				}
			}
			if err := c.Tell(t.Context(), "echo", id, []byte("told")); err != nil {
				t.Error(err)
			}
		})
	}
	askers.Wait()
	for _, n := range w.nodes {
		patience.Eventually(t, func() bool { return n.Stats().Requests == 0 }, "nothing is under way")
	}
	answered := []uint64{w.nodes[0].Stats().Answered, w.nodes[1].Stats().Answered}
	for i := range 16 {
		id := "e" + strconv.Itoa(i)
		got, err := c.Ask(t.Context(), "echo", id, []byte("where"))
		require.NoError(t, err)
		at := 0
		if strings.HasSuffix(string(got), w.nodes[1].system.Node().Self().Address.String()) {
			at = 1
		}
		answered[at]++
	}
	patience.Eventually(t, func() bool {
		return w.nodes[0].Stats().Answered == answered[0] && w.nodes[1].Stats().Answered == answered[1]
	}, "each node has been asked what it hosts")
	for _, n := range w.nodes {
		patience.Eventually(t, func() bool { return n.Stats().Requests == 0 }, "nothing is under way")
	}
}

func TestErrorsSayWhatBecameOfTheMessage(t *testing.T) {
	t.Parallel()
	w := start(t, 2, nil)
	c := w.ready(nil)
	ask := func(ctx context.Context, kind, id, text string) error {
		_, err := c.Ask(ctx, kind, id, []byte(text))
		return err
	}
	for name, test := range map[string]struct {
		kind, id, text string
		want           error
	}{
		"unknown kind":       {"nothing", "a", "", client.ErrUnknownKind},
		"kind not shown":     {"hidden", "a", "", client.ErrUnknownKind},
		"no kind":            {"", "a", "", client.ErrInvalid},
		"empty id":           {"echo", "", "", client.ErrInvalid},
		"long id":            {"echo", strings.Repeat("x", 513), "", client.ErrInvalid},
		"id that is no text": {"echo", "\xff", "", client.ErrInvalid},
		"large message":      {"echo", "a", strings.Repeat("x", 1<<20+1), client.ErrInvalid},
		"larger message":     {"echo", "a", strings.Repeat("x", 4<<20), client.ErrInvalid},
		"entity that fails":  {"echo", "fails", "fail", client.ErrEntityFailed},
	} {
		err := ask(t.Context(), test.kind, test.id, test.text)
		require.ErrorIs(t, err, test.want, name)
	}
	require.ErrorIs(t, ask(patience.Expiring(t, 2*time.Second), "echo", "slow", "wait"), client.ErrUnknownOutcome, "the entity has begun")
	err := ask(patience.Expiring(t, 50*time.Millisecond), "echo", "slow", "behind")
	require.Error(t, err, "behind it nothing is begun: it has expired, was given back, or nobody knows yet")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ask(over, "echo", "a", ""), client.ErrNotDelivered)
	require.NoError(t, ask(t.Context(), "echo", "a", "x"), "all others are well")
	require.NoError(t, c.Close())
	require.ErrorIs(t, ask(t.Context(), "echo", "a", "x"), client.ErrNotDelivered)
}

// A node that ends answers what it has, and sends back what comes later: clients notice nothing.
func TestNodesEndWithoutAFailedAsk(t *testing.T) {
	t.Parallel()
	w := start(t, 2, nil)
	c := w.ready(nil)
	stop, failed := make(chan struct{}), make(chan error, 100)
	var askers sync.WaitGroup
	for i := range 8 {
		askers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := c.Ask(t.Context(), "echo", "e"+strconv.Itoa(i), []byte("x")); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Answered > 100 && w.nodes[1].Stats().Answered > 100 }, "both are asked")
	require.NoError(t, w.nodes[1].Close())
	before := w.nodes[0].Stats().Answered
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Answered > before+100 }, "the other one is asked")
	close(stop)
	askers.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
}

// What a node had when it was lost is unknown; what it had not goes to another node.
func TestLostNodesLeaveUnknownOutcomes(t *testing.T) {
	t.Parallel()
	w := start(t, 1, func(c *gateway.Config) { c.Window = 1 })
	c := w.ready(nil)
	has, waits := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := c.Ask(patience.Context(t), "echo", "stuck", []byte("wait"))
		has <- err
	}()
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Requests == 1 }, "the node has it")
	go func() {
		_, err := c.Ask(patience.Context(t), "echo", "other", []byte("x"))
		waits <- err
	}()
	closed := make(chan error, 1)
	go func() { closed <- w.nodes[0].Close() }() // The entity does not answer: the call is cut.
	require.ErrorIs(t, <-has, client.ErrUnknownOutcome)
	require.NoError(t, <-closed)
	require.Empty(t, waits)
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-waits, client.ErrNotDelivered)
}

// A client whose nodes take no more waits, within its bound, and says so.
func TestClientsAreSlowedDown(t *testing.T) {
	t.Parallel()
	w := start(t, 1, func(c *gateway.Config) { c.Window = 1 })
	c := w.ready(func(c *client.Config) { c.Queued = 1 })
	results := make(chan error, 3)
	ask := func(d time.Duration) {
		_, err := c.Ask(patience.Expiring(t, d), "echo", "stuck", []byte("wait"))
		results <- err
	}
	go ask(2 * time.Second)
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Requests == 1 }, "the node has it")
	go ask(2 * time.Second)
	_, err := c.Ask(patience.Expiring(t, 200*time.Millisecond), "echo", "other", nil)
	require.ErrorIs(t, err, client.ErrOverloaded)
	require.ErrorIs(t, err, client.ErrNotDelivered)
	require.Error(t, <-results)
	require.Error(t, <-results)
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Requests == 0 }, "the node has let go")
	_, err = c.Ask(patience.Context(t), "echo", "other", []byte("x"))
	require.NoError(t, err)
}

// Requests beyond the bounds of the node are sent back.
func TestNodesTakeSoMuchAtATime(t *testing.T) {
	t.Parallel()
	w := start(t, 1, func(c *gateway.Config) { c.MaxRequests = 1 })
	c := w.ready(nil)
	first := make(chan error, 1)
	go func() {
		_, err := c.Ask(patience.Expiring(t, time.Second), "echo", "stuck", []byte("wait"))
		first <- err
	}()
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Requests == 1 }, "the node has it")
	_, err := c.Ask(patience.Context(t), "echo", "other", []byte("x"))
	require.ErrorIs(t, err, client.ErrOverloaded)
	require.EqualValues(t, 1, w.nodes[0].Stats().Overloaded)
	require.Error(t, <-first)
}

// A client outlives a time without any node.
func TestClientsWaitForNodes(t *testing.T) {
	t.Parallel()
	w := start(t, 1, nil)
	address := w.nodes[0].Address()
	require.NoError(t, w.nodes[0].Close())
	c := w.client(only(address))
	patience.Eventually(t, func() bool {
		err := c.AwaitReady(patience.Expiring(t, 300*time.Millisecond))
		require.Error(t, err)
		return strings.Contains(err.Error(), address)
	}, "the client has tried %s", address)
	_, err := c.Ask(patience.Expiring(t, 100*time.Millisecond), "echo", "a", nil)
	require.ErrorIs(t, err, client.ErrNotDelivered)
	require.ErrorContains(t, err, address)
	cfg := gateway.Default()
	cfg.Address, cfg.Kinds = address, []string{gateway.All}
	var again *gateway.Server
	patience.Eventually(t, func() bool { // A connection of another test may have the port for a while.
		again, err = gateway.Serve(t.Context(), cfg, w.nodes[0].system, gateway.WithLogger(quiet()))
		return err == nil
	}, "the node listens again")
	defer func() { require.NoError(t, again.Close()) }()
	got, err := c.Ask(patience.Context(t), "hidden", "a", []byte("x"))
	require.NoError(t, err)
	require.Equal(t, "a x 127.0.0.1:7946", string(got))
}

// only has a client know one address.
func only(address string) func(*client.Config) {
	return func(c *client.Config) { c.Addresses = []string{address} }
}

// A gateway on a node that has ended sends back what it gets.
func TestEndedNodesSendRequestsBack(t *testing.T) {
	t.Parallel()
	w := start(t, 1, nil)
	c := w.ready(nil)
	require.NoError(t, w.nodes[0].member.Close())
	require.NoError(t, w.nodes[0].system.AwaitEnd(patience.Context(t)))
	sentBack := func(send func(context.Context) error) func() bool {
		return func() bool { // Nobody knows of a request that is at the gateway when its time is over.
			err := send(patience.Expiring(t, 500*time.Millisecond))
			require.Error(t, err)
			return errors.Is(err, client.ErrNotDelivered)
		}
	}
	patience.Eventually(t, sentBack(func(ctx context.Context) error {
		_, err := c.Ask(ctx, "echo", "a", nil)
		return err
	}), "it sends an ask back")
	patience.Eventually(t, sentBack(func(ctx context.Context) error { return c.Tell(ctx, "echo", "a", nil) }), "it sends what is told back")
}
