// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

const (
	answerLimit   = 60 * time.Second // For all entities to answer.
	joinSettle    = 25 * time.Second // For how long moves are waited for after a join.
	joinStill     = 3 * time.Second  // Without a move: it is over.
	requestStays  = "stays"
	baselineSteps = 2 // Measuring times that pass before anything is done to the cluster.
)

// residents is what a node says of who lives on it.
type residents struct {
	Stays  []stay `json:"stays"`
	Totals totals `json:"totals"`
}

// serveMember is a node that hosts residents.
func serveMember(ctx context.Context, s spec, k *link) error {
	node, err := startNode(ctx, s.Seeds, nil)
	if err != nil {
		return err
	}
	lives := newRegister()
	if _, err := sharding.Start(node, lives.kind()); err != nil {
		return errors.Join(err, node.Close())
	}
	if err := k.send(hello{node.Self().Address.String()}); err != nil {
		return errors.Join(err, node.Close())
	}
	err = k.serve(func(request string) (any, error) {
		if request != requestStays {
			return nil, fmt.Errorf("bench: request %q is not known", request)
		}
		return residents{lives.stays(), lives.found.totals()}, nil
	})
	return errors.Join(err, node.Membership().Close())
}

// fleet is a cluster of processes, of which this one is the second member: it
// is never the one that is killed, and not the oldest either.
type fleet struct {
	spec    spec
	link    *link
	first   string // Address of the oldest.
	node    *cluster.Node
	lives   *register
	watches *watches
	others  []*process // In the order of their age.
	at      []string   // Their addresses.
}

// startFleet starts the oldest node, this one, and so many more, and asks all
// entities until all have answered.
func startFleet(ctx context.Context, s spec, k *link, more int) (*fleet, error) {
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
	region, err := sharding.Start(f.node, f.lives.kind())
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
	s := f.spec.as(roleMember)
	if f.first != "" {
		s.Seeds = []string{f.first}
	}
	p, address, err := f.link.peer(ctx, s)
	if err != nil {
		return err
	}
	f.others, f.at = append(f.others, p), append(f.at, address)
	return nil
}

// end ends everything.
func (f *fleet) end() {
	if f.watches != nil {
		f.watches.stop()
	}
	if f.node != nil {
		drop(f.node)
	}
	for _, p := range f.others {
		p.stop()
	}
}

// baseline lets time pass, and returns what it looks like when nothing happens.
func (f *fleet) baseline(ctx context.Context) (summary, error) {
	f.watches.summary(true)
	err := pause(ctx, baselineSteps*f.spec.Time)
	return f.watches.summary(true), err
}

// census asks the nodes who lives where. The order of messages is part of it.
func (f *fleet) census(ctx context.Context, out *outcome) error {
	nodes := [][]stay{f.lives.stays()}
	sum := f.lives.found.totals()
	for _, p := range f.others {
		var r residents
		if err := p.call(ctx, requestStays, &r); err != nil {
			return err
		}
		nodes = append(nodes, r.Stays)
		sum.OutOfOrder += r.Totals.OutOfOrder
		sum.Duplicated += r.Totals.Duplicated
	}
	now, ever := doubles(nodes)
	out.Values["twice"], out.Values["overlapped"] = float64(now), float64(ever)
	out.OutOfOrder, out.Duplicated = sum.OutOfOrder, sum.Duplicated
	return nil
}

// measureJoin has a third node join two under load.
func measureJoin(ctx context.Context, s spec, k *link) (outcome, error) {
	f, err := startFleet(ctx, s, k, 0)
	if err != nil {
		return outcome{}, err
	}
	defer f.end()
	before, err := f.baseline(ctx)
	if err != nil {
		return outcome{}, err
	}
	if err := f.add(ctx); err != nil {
		return outcome{}, err
	}
	settled, err := f.settle(ctx, before.hosts)
	if err != nil {
		return outcome{}, err
	}
	after := f.watches.summary(false)
	out := outcome{Values: map[string]float64{
		"gap":      milliseconds(after.longest),
		"gap-idle": milliseconds(before.longest),
		"failed":   float64(after.failures(before.hosts, func(string) bool { return true })),
		"moved":    100 * float64(after.movedFrom(before.hosts)) / float64(s.Entities),
		"settled":  settled.Seconds(),
	}}
	if after.movedFrom(before.hosts) == 0 {
		out.Note = "nothing moved to the new node"
	}
	if after.cause != nil {
		out.Note = strings.TrimPrefix(out.Note+"; first failed ask: "+after.cause.Error(), "; ")
	}
	err = f.census(ctx, &out)
	return out, err
}

// settle waits until no entity moves any more, and returns how long after the
// join the last one did; zero when none did.
func (f *fleet) settle(ctx context.Context, hosts []string) (time.Duration, error) {
	began := time.Now()
	last, moved := began, 0
	for {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
		now := time.Now()
		if n := f.watches.summary(false).movedFrom(hosts); n != moved {
			moved, last = n, now
		}
		if moved > 0 && now.Sub(last) > joinStill || now.Sub(began) > joinSettle {
			return last.Sub(began), nil
		}
	}
}

// measureKill kills one of three nodes.
func measureKill(ctx context.Context, s spec, k *link) (outcome, error) {
	f, err := startFleet(ctx, s, k, 1)
	if err != nil {
		return outcome{}, err
	}
	defer f.end()
	before, err := f.baseline(ctx)
	if err != nil {
		return outcome{}, err
	}
	victim := len(f.others) - 1
	if s.Oldest {
		victim = 0
	}
	address := f.at[victim]
	lost := 0
	for _, host := range before.hosts {
		if host == address {
			lost++
		}
	}
	if lost == 0 {
		return outcome{}, errors.New("bench: the node to kill hosts nothing")
	}
	killed := time.Now()
	f.others[victim].kill()
	f.others = append(f.others[:victim:victim], f.others[victim+1:]...)
	took, err := f.watches.allSince(ctx, killed, answerLimit)
	if err != nil {
		return outcome{}, err
	}
	after := f.watches.summary(false)
	out := outcome{Values: map[string]float64{
		"answer":    took.Seconds(),
		"survivors": float64(after.failures(before.hosts, func(host string) bool { return host != address })),
		"victim":    float64(after.failures(before.hosts, func(host string) bool { return host == address })),
		"hosted":    float64(lost),
	}}
	if after.cause != nil {
		out.Note = "first failed ask: " + after.cause.Error()
	}
	err = f.census(ctx, &out)
	return out, err
}

// milliseconds is a duration as a number.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
