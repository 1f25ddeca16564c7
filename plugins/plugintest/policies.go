// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"testing"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/discovery/bootstrap/bootstraptest"
	"github.com/quorate/quorate/discovery/discoverytest"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/fd/fdtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// policy is what the kit needs to know about a policy.
type policy struct {
	// suite runs the conformance suite of the strategies, on plugins that open opens.
	suite func(t *testing.T, open func(testing.TB) *host.Plugin)
	// ask asks the plugin a question that changes nothing, and returns the answer.
	ask func(context.Context, testing.TB, *host.Plugin) (any, error)
}

// suites has a row for each policy that hosts run.
func suites() map[plugins.Policy]policy {
	return map[plugins.Policy]policy{
		plugins.FailureDetector: {suiteOf(fdtest.TestJudge), askFailureDetector},
		plugins.Downing:         {suiteOf(downingtest.TestProvider), askDowning},
		plugins.Allocation:      {suiteOf(allocationtest.TestStrategy), askAllocation},
		plugins.JoinDecider:     {suiteOf(bootstraptest.TestJoinDecider), askJoinDecider},
		plugins.Discovery:       {suiteOf(discoverytest.TestDiscovery), askDiscovery},
	}
}

// suiteOf makes of the suite of a strategy one that runs on plugins.
func suiteOf[T any](test func(*testing.T, func(testing.TB) T)) func(*testing.T, func(testing.TB) *host.Plugin) {
	return func(t *testing.T, open func(testing.TB) *host.Plugin) {
		t.Helper()
		test(t, func(tb testing.TB) T {
			tb.Helper()
			return strategy[T](tb, open(tb))
		})
	}
}

// strategy returns the plugin as a strategy of its policy.
func strategy[T any](tb testing.TB, p *host.Plugin) T {
	tb.Helper()
	s, err := host.As[T](p)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// askDowning has the plugin decide about three members, all of them reachable.
func askDowning(ctx context.Context, tb testing.TB, p *host.Plugin) (any, error) {
	tb.Helper()
	members := downingtest.Members(3)
	return strategy[downing.Provider](tb, p).Decide(ctx, downing.View{
		Self: members[0].Node, Members: members, Seen: downingtest.IDs(members), Base: gossip.Base{downingtest.IDs(members)},
	})
}

// askAllocation has the plugin place two shards on two regions.
func askAllocation(ctx context.Context, tb testing.TB, p *host.Plugin) (any, error) {
	tb.Helper()
	return strategy[allocation.Strategy](tb, p).Allocate(ctx, allocation.AllocateRequest{
		Regions: []allocation.RegionState{{ID: "a"}, {ID: "b"}}, Shards: []allocation.Pending{{Shard: 1}, {Shard: 2}},
	})
}

// askJoinDecider has the plugin decide for a node that has found itself alone, where two are
// required.
func askJoinDecider(ctx context.Context, tb testing.TB, p *host.Plugin) (any, error) {
	tb.Helper()
	self := discovery.Target{Host: "127.0.0.1", Port: 7001}
	return strategy[bootstrap.JoinDecider](tb, p).Decide(ctx, bootstrap.Observations{
		Service: "example", Self: self, Required: 2, Points: []bootstrap.Observed{{Point: self}},
	})
}

// askDiscovery has the plugin look the contact points of the suite's service up.
func askDiscovery(ctx context.Context, tb testing.TB, p *host.Plugin) (any, error) {
	tb.Helper()
	return strategy[discovery.Discovery](tb, p).Lookup(ctx, discoverytest.Query())
}

// askFailureDetector has the plugin judge two nodes that have just answered.
func askFailureDetector(ctx context.Context, tb testing.TB, p *host.Plugin) (any, error) {
	tb.Helper()
	answered := []time.Duration{time.Millisecond}
	return strategy[fd.Judge](tb, p).Judge(ctx, fd.Batch{Number: 1, Subjects: []fd.Subject{
		{ID: "a", Available: true, Ages: answered}, {ID: "b", Available: true, Ages: answered},
	}})
}
