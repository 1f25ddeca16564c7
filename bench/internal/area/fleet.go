// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// The cluster that is changed while its entities are asked ([startFleet]), what its nodes say of their entities in
// the end ([fleet.census]), and the node in each of the other processes ([serveMember]).

const (
	answerLimit   = 60 * time.Second // For all entities to answer.
	baselineSteps = 2                // Measuring times that pass before anything is done to the cluster.
)

// fleet is a cluster of processes. This process is the second member: it is never the one
// that is killed, and not the oldest either.
type fleet struct {
	spec    rig.Spec
	first   string // Address of the oldest node.
	node    *cluster.Node
	lives   *register
	watches *watches
	others  *rig.Peers
	left    []residents // What the nodes that have left had seen.
	victim  string      // Address of the node that was killed, if one was.
}

// startFleet starts the oldest node, this one, and more, and asks all entities until all
// have answered.
func startFleet(ctx context.Context, s rig.Spec, k *rig.Link, more int) (f *fleet, err error) {
	f = &fleet{spec: s, others: k.Peers(), lives: newRegister()}
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
	f.watches = watchOver(ctx, region, s.Entities)
	_, err = f.watches.allSince(ctx, time.Now(), answerLimit)
	return f, err
}

// add starts one more node and waits until it is up.
func (f *fleet) add(ctx context.Context) error {
	s := f.spec.As(roleMember)
	if f.first != "" {
		s.Seeds = []string{f.first}
	}
	if f.node != nil { // The first node may have left.
		s.Seeds = append(s.Seeds, f.node.Self().Address.String())
	}
	return f.others.Add(ctx, s)
}

// end ends all nodes of the fleet.
func (f *fleet) end() {
	if f.watches != nil {
		f.watches.stop()
	}
	if f.node != nil {
		dropNode(f.node)
	}
	f.others.Stop()
}

// baseline lets time pass, and returns the summary of an undisturbed cluster.
func (f *fleet) baseline(ctx context.Context) (summary, error) {
	f.watches.summary(true)
	err := rig.Pause(ctx, baselineSteps*f.spec.Time)
	p99 := f.watches.percentile(0.99)
	before := f.watches.summary(true)
	before.p99 = p99
	return before, err
}

// census asks the nodes which entities live there, and checks the order of their
// messages.
func (f *fleet) census(ctx context.Context, out *figure.Outcome) error {
	all, err := rig.AskAll[residents](ctx, f.others, requestStays)
	if err != nil {
		return err
	}
	nodes := make([][]stay, 0, 1+len(all)+len(f.left))
	for _, r := range append(append(all, f.left...), f.lives.residents()) {
		nodes = append(nodes, r.Stays)
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

// residents is what a node reports about the entities that live on it.
type residents struct {
	Stays  []stay     `json:"stays"`
	Totals rig.Totals `json:"totals"`
}

// The requests that a member answers.
const (
	requestStays  = "stays"  // With its residents.
	requestHosted = "hosted" // With the number of shards that it hosts.
	requestLeave  = "leave"  // With its residents, when it has left the cluster in order.
)

// serveMember runs a node that hosts residents.
func serveMember(ctx context.Context, s rig.Spec, k *rig.Link) error {
	n, err := startNode(ctx, s.Seeds, nil)
	if err != nil {
		return err
	}
	defer dropNode(n)
	lives := newRegister()
	if _, err := sharding.Start(n, lives.kind(s.Shards)); err != nil {
		return err
	}
	return k.Host(n.Self().Address.String(), rig.Answers{
		requestHosted: func() (any, error) { return n.Sharding().Kinds()[0].Hosted, nil },
		requestStays:  func() (any, error) { return lives.residents(), nil },
		requestLeave: func() (any, error) {
			err := n.Leave(ctx)
			return lives.residents(), err
		},
	})
}
