// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

const (
	answerLimit   = 60 * time.Second // For all entities to answer.
	joinSettle    = 25 * time.Second // For how long moves are waited for after a join.
	joinStill     = 3 * time.Second  // Without a move: it is over.
	baselineSteps = 2                // Measuring times that pass before anything is done to the cluster.
)

// fleet is a cluster of processes. This process is the second member: it is never the one
// that is killed, and not the oldest either.
type fleet struct {
	spec    rig.Spec
	link    *rig.Link
	first   string // Address of the oldest node.
	node    *cluster.Node
	lives   *register
	watches *watches
	others  []*rig.Process // In the order of their age.
	at      []string       // Addresses of the other nodes.
	left    []residents    // What the nodes that have left had seen.
}

// startFleet starts the oldest node, this one, and more, and asks all entities until all
// have answered.
func startFleet(ctx context.Context, s rig.Spec, k *rig.Link, more int) (*fleet, error) {
	f := &fleet{spec: s, link: k, lives: newRegister()}
	if err := f.add(ctx); err != nil {
		return nil, err
	}
	f.first = f.at[0]
	var err error
	if f.node, err = startNode(ctx, []string{f.first}, nil); err != nil {
		f.end()
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
		f.end()
		return nil, err
	}
	f.watches = watchOver(ctx, region, s.Entities)
	if _, err := f.watches.allSince(ctx, time.Now(), answerLimit); err != nil {
		f.end()
		return nil, err
	}
	return f, nil
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
	p, address, err := f.link.Peer(ctx, s)
	if err != nil {
		return err
	}
	f.others, f.at = append(f.others, p), append(f.at, address)
	return nil
}

// end ends all nodes of the fleet.
func (f *fleet) end() {
	if f.watches != nil {
		f.watches.stop()
	}
	if f.node != nil {
		dropNode(f.node)
	}
	for _, p := range f.others {
		p.Stop()
	}
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
	nodes := [][]stay{f.lives.stays()}
	sum := f.lives.found.Totals()
	all := f.left
	for _, p := range f.others {
		var r residents
		if err := p.Call(ctx, requestStays, &r); err != nil {
			return err
		}
		all = append(all, r)
	}
	for _, r := range all {
		nodes = append(nodes, r.Stays)
		sum.OutOfOrder += r.Totals.OutOfOrder
		sum.Duplicated += r.Totals.Duplicated
	}
	now, ever, example := doubles(nodes)
	if ever > 0 {
		out.Note = strings.TrimPrefix(out.Note+"; "+example, "; ")
	}
	out.Values["twice"], out.Values["overlapped"] = float64(now), float64(ever)
	out.OutOfOrder, out.Duplicated = sum.OutOfOrder, sum.Duplicated
	return nil
}
