// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// The cluster that is changed while its entities are asked ([startProcessCluster]), what its nodes say of their
// entities in the end ([processCluster.census]), and the node in each of the other processes ([serveMember]).

const (
	answerTimeout = 60 * time.Second // For all entities to answer.
	baselineSteps = 2                // Measuring times that pass before anything is done to the cluster.
)

// processCluster is a cluster whose nodes are processes. This process is the second member: it is never the one
// that is killed, and not the oldest either.
type processCluster struct {
	spec    harness.Spec
	first   string // Address of the oldest node.
	node    *cluster.Node
	lives   *register
	watches *watches
	others  *harness.Peers
	left    []entityReport // What the nodes that have left had seen.
	victim  string         // Address of the node that was killed, if one was.
}

// startProcessCluster starts the oldest node, this one, and more, and asks all entities until all
// have answered.
func startProcessCluster(ctx context.Context, s harness.Spec, k *harness.Link, more int) (f *processCluster, err error) {
	f = &processCluster{spec: s, others: k.Peers(), lives: newRegister()}
	defer func() {
		if err != nil {
			f.end()
		}
	}()
	if err := f.add(ctx); err != nil {
		return nil, err
	}
	f.first = f.others.Address(0)
	if f.node, err = startNode(ctx, []string{f.first}, nil); err != nil {
		return nil, err
	}
	kind := f.lives.kind(s.Shards)
	kind.ProxyOnly = s.Proxy
	region, err := sharding.Start(f.node, kind)
	for range more {
		err = errors.Join(err, f.add(ctx))
	}
	if err == nil {
		_, err = until(ctx, time.Now(), []*membership.Node{f.node.Membership()}, "all nodes are members", func() bool {
			return len(f.node.Membership().View().State.Members()) == 2+more
		})
	}
	if err != nil {
		return nil, err
	}
	f.watches = watchOver(ctx, region, s.Entities, s.Senders)
	_, err = f.watches.allSince(ctx, time.Now(), answerTimeout)
	return f, err
}

// add starts one more node and waits until it is up.
func (f *processCluster) add(ctx context.Context) error {
	s := f.spec.As(roleMember)
	if f.first != "" {
		s.Seeds = []string{f.first}
	}
	if f.node != nil { // The first node may have left.
		s.Seeds = append(s.Seeds, f.node.Self().Address.String())
	}
	return f.others.Add(ctx, s)
}

// end ends all nodes of the cluster.
func (f *processCluster) end() {
	if f.watches != nil {
		f.watches.stop()
	}
	if f.node != nil {
		dropNode(f.node)
	}
	f.others.Stop()
}

// baseline lets time pass, and returns the summary of an undisturbed cluster.
func (f *processCluster) baseline(ctx context.Context) (summary, error) {
	f.watches.summary(true)
	err := harness.Pause(ctx, baselineSteps*f.spec.Time)
	p99, slowest := f.watches.percentile(0.99), f.watches.percentile(1)
	before := f.watches.summary(true)
	before.p99, before.slowest = p99, slowest
	return before, err
}

// census asks the nodes which entities live there, and checks the order of their
// messages.
func (f *processCluster) census(ctx context.Context, out *figure.Outcome) error {
	all, err := harness.AskAll[entityReport](ctx, f.others, requestStays)
	if err != nil {
		return err
	}
	nodes := make([][]entitySpan, 0, 1+len(all)+len(f.left))
	for _, r := range append(append(all, f.left...), f.lives.report()) {
		nodes = append(nodes, r.Spans)
		out.OutOfOrder += r.Totals.OutOfOrder
		out.Duplicated += r.Totals.Duplicated
	}
	now, ever, example := doubles(nodes)
	if ever > 0 {
		remark(out, example)
	}
	out.Values["twice"], out.Values["overlapped"] = float64(now), float64(ever)
	return nil
}

// entityReport is what a node reports about the entities that live, or have lived, on it.
type entityReport struct {
	Spans  []entitySpan   `json:"stays"`
	Totals harness.Totals `json:"totals"`
}

// The requests that a member answers.
const (
	requestStays  = "stays"  // With a report of its entities.
	requestHosted = "hosted" // With the number of shards that it hosts.
	requestLeave  = "leave"  // With a report of its entities, when it has left the cluster in order.
)

// serveMember runs a node that hosts reporting entities.
func serveMember(ctx context.Context, s harness.Spec, k *harness.Link) error {
	n, err := startNode(ctx, s.Seeds, nil)
	if err != nil {
		return err
	}
	defer dropNode(n)
	lives := newRegister()
	if _, err := sharding.Start(n, lives.kind(s.Shards)); err != nil {
		return err
	}
	return k.Host(n.Self().Address.String(), harness.Answers{
		requestUsage:  func() (any, error) { return harness.UsageNow() },
		requestHosted: func() (any, error) { return n.Sharding().Kinds()[0].Hosted, nil },
		requestStays:  func() (any, error) { return lives.report(), nil },
		requestLeave: func() (any, error) {
			err := n.Leave(ctx)
			return lives.report(), err
		},
	})
}
