// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
)

// two starts a cluster of two nodes, both with an HTTP interface and some more lines in their
// file.
func two(t *testing.T, more ...string) (a, b *cluster.Node) {
	t.Helper()
	ctx := patience.Context(t)
	path, seed := lone(t, append(more, `management: {address: "127.0.0.1:0"}`)...)
	var nodes []*cluster.Node
	for i := range 2 {
		node, err := cluster.Start(ctx, quiet(cluster.WithFile(path), cluster.WithChange(func(c *cluster.Config) {
			if i > 0 {
				c.Node.Address = free(t)
			}
			c.Membership.SeedNodes = []string{seed}
		}))...)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, node.Close()) })
		require.NoError(t, node.AwaitUp(ctx))
		require.NoError(t, node.Data().AwaitReady(ctx))
		nodes = append(nodes, node)
	}
	return nodes[0], nodes[1]
}

// What is registered on one node is found on the other, and vanishes when its node leaves.
// Both are shown over HTTP, also by a node that has asked for no registry.
func TestServicesVanishWithTheirNode(t *testing.T) {
	t.Parallel()
	a, b := two(t)
	ctx := t.Context()
	of, err := b.Registry()
	require.NoError(t, err)
	_, err = of.Register(ctx, registry.Entry{Name: "mail", Address: "10.0.0.2:25", Metadata: map[string]string{"tls": "yes"}})
	require.NoError(t, err)
	explain := func() registry.Explanation {
		return shown[registry.Explanation](t, a, "/v1/registry/explain?name=mail")
	}
	patience.Eventually(t, func() bool { return len(explain().Entries) == 1 }, "the entry is shown")
	e := explain()
	require.Equal(t, registry.ExplainedEntry{Address: "10.0.0.2:25", Metadata: map[string]string{"tls": "yes"}, Node: b.Self().String(), ID: 1, Version: 1}, e.Entries[0])
	require.True(t, e.Data.Here)
	names := shown[cluster.ServiceNames](t, a, "/v1/registry?prefix=ma")
	require.Equal(t, cluster.ServiceNames{Self: a.Self().String(), Names: []string{"mail"}}, names)
	require.Empty(t, shown[cluster.ServiceNames](t, a, "/v1/registry?prefix=x").Names)
	require.Equal(t, 1, running(t), "looking has started nothing on this node")

	services, err := a.Registry()
	require.NoError(t, err)
	again, err := a.Registry()
	require.NoError(t, err)
	require.Same(t, services, again)
	sub := services.Subscribe("mail")
	defer sub.Close()
	event, err := sub.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, registry.Appeared, event.Kind)
	require.Equal(t, 1, explain().Subscribers)
	require.NoError(t, b.Close())
	event, err = sub.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, registry.Vanished, event.Kind)
	found, err := services.Find(ctx, "mail")
	require.NoError(t, err)
	require.Empty(t, found)
	for _, e := range explain().Entries { // Until the entry is removed from the data too.
		require.Equal(t, "its node was removed from the cluster", e.Hidden)
	}
	for bad, status := range map[string]int{
		"/v1/registry/explain": 400, "/v1/registry?limit=0": 400, "/v1/registry?x=1": 400,
		"/v1/topics/explain?topic=": 400, "/v1/topics?limit=10001": 400,
	} {
		got, body := fetch(t, a, bad)
		require.Equal(t, status, got, "%s: %s", bad, body)
	}
	_, err = b.Registry()
	require.NoError(t, err, "it was started before its node ended")
	_, err = of.Register(ctx, registry.Entry{Name: "mail", Address: "10.0.0.2:25"})
	require.ErrorIs(t, err, registry.ErrClosed)
}

// running returns how many registries run in this process.
func running(t *testing.T) int {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&b, 2))
	return strings.Count(b.String(), "registry.(*Registry).run(")
}

// A message that one node publishes reaches the subscriber on the other, and HTTP shows whom
// it reaches. The largest one is what the file says.
func TestTopicsReachTheOtherNode(t *testing.T) {
	t.Parallel()
	a, b := two(t, "pubsub: {max-message-bytes: 8}")
	ctx := t.Context()
	topic := func(n *cluster.Node) *pubsub.Topic[[]byte] {
		p, err := n.Topics()
		require.NoError(t, err)
		of, err := pubsub.NewTopic(p, "news", pubsub.Bytes{})
		require.NoError(t, err)
		return of
	}
	sub, err := topic(b).Subscribe(ctx)
	require.NoError(t, err)
	defer sub.Close()
	explain := func(n *cluster.Node) pubsub.Explanation {
		return shown[pubsub.Explanation](t, n, "/v1/topics/explain?topic=news")
	}
	patience.Eventually(t, func() bool { return len(explain(a).Nodes) == 1 }, "the subscriber is known")
	require.Equal(t, []string{b.Self().String()}, explain(a).Nodes)
	require.Empty(t, explain(a).Subscribers)
	require.Equal(t, []pubsub.ExplainedSubscriber{{Policy: "block", Room: explain(b).Subscribers[0].Room}}, explain(b).Subscribers)
	require.Equal(t, cluster.TopicNames{Self: a.Self().String(), Topics: []string{"news"}}, shown[cluster.TopicNames](t, a, "/v1/topics"))
	require.NoError(t, topic(a).Publish(ctx, []byte("12345678")))
	m, err := sub.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, "12345678", string(m.Value))
	require.Equal(t, a.Self(), m.Publisher)
	require.ErrorIs(t, topic(a).Publish(ctx, []byte("123456789")), pubsub.ErrTooLarge)
}

// A node that uses neither services nor topics runs nothing for them, and the sections are
// checked.
func TestServicesAndTopicsStartWhenAskedFor(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, "registry: {consistency: majority}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	require.NoError(t, node.Data().AwaitReady(t.Context()))
	require.Zero(t, running(t))
	_, err = node.Registry()
	require.NoError(t, err)
	patience.Eventually(t, func() bool { return running(t) == 1 }, "the registry runs")
	_, err = registry.New(node)
	require.ErrorIs(t, err, machine.ErrTaken)
	_, err = pubsub.New(node)
	require.NoError(t, err)
	_, err = node.Topics()
	require.ErrorIs(t, err, machine.ErrTaken)
	require.NoError(t, node.Close())

	path, _ = lone(t, "registry: {consistency: most}", "pubsub: {max-message-bytes: -1}")
	err = cluster.Check(cluster.Extensions{}, path)
	require.ErrorContains(t, err, `:4: registry.consistency: "most" is none of local, majority, all`)
	require.ErrorContains(t, err, ":5: pubsub.max-message-bytes: -1 is not at least 0")
	path, _ = lone(t, "pubsub: {max-message-bytes: 5000000}")
	require.ErrorContains(t, cluster.Check(cluster.Extensions{}, path), ":4: pubsub.max-message-bytes: 5000000 is more than fits into a frame")
}
