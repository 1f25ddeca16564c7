// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster/locations/internal/part"
	"github.com/quorate/quorate/ddata/ddatasim"
	"github.com/quorate/quorate/sharding/shardingsim"
	"github.com/quorate/quorate/simulation"
)

// The strategy of each node, by the steps of locations.Strategy: the first question waits a while until the replica of
// the node counts, each reads what the node itself holds, or asks one that holds it, and allocation.External decides.

const (
	readyTimeout = 2 * time.Second // As that of package locations.
	readyLook    = 50 * time.Millisecond
	maxAnswer    = 50 * time.Millisecond
)

// ask takes a question of a coordinator.
func (w *World) ask(n *simulation.Node, request any, reply func(any, error)) {
	w.Counts.Asked++
	q := &question{w: w, node: n, request: request, reply: reply}
	switch r := request.(type) {
	case allocation.AllocateRequest:
		for _, p := range r.Shards {
			q.shards = append(q.shards, p.Shard)
		}
	case allocation.RebalanceRequest:
		for _, region := range r.Regions {
			q.shards = append(q.shards, region.Shards...)
		}
	}
	q.await(w.Now() + readyTimeout)
}

// question is a question of a coordinator that was not answered yet.
type question struct {
	w       *World
	node    *simulation.Node
	request any
	shards  []allocation.Shard
	reply   func(any, error)
}

// await reads as soon as the replica is ready, or at a time, and only the first time of a node waits.
func (q *question) await(until time.Duration) {
	switch {
	case !q.node.Alive():
	case q.w.begun[q.node.ID()] || q.w.data.Ready(q.node) || q.w.Now() >= until:
		q.w.begun[q.node.ID()] = true
		q.read(part.Of(q.shards), part.Known{})
	default:
		q.w.After(readyLook, func() { q.await(until) })
	}
}

// read reads the parts with some numbers, and then decides.
func (q *question) read(numbers []int, known part.Known) {
	if len(numbers) == 0 {
		q.w.After(q.w.upTo(maxAnswer), func() { q.decide(known) })
		return
	}
	took := func(v any, err error) {
		if err != nil {
			q.w.Counts.Unread++
			q.reply(nil, err)
			return
		}
		if p, ok := v.(part.Part); ok {
			known.Add(p, numbers[0])
		}
		q.read(numbers[1:], known)
	}
	name := part.Key(shardingsim.Kind, numbers[0])
	if v, err := q.w.data.Local(q.node, name); err == nil {
		took(v, nil)
		return
	}
	q.w.Counts.Away++
	q.w.data.Read(q.node, name, ddatasim.One, callTimeout, took)
}

// decide answers.
func (q *question) decide(known part.Known) {
	e, err := allocation.NewExternal(allocation.Default().LeastShard, known)
	if err != nil {
		q.w.Fail(err)
		return
	}
	switch r := q.request.(type) {
	case allocation.AllocateRequest:
		q.reply(e.Allocate(context.Background(), r))
	case allocation.RebalanceRequest:
		answer, err := e.Rebalance(context.Background(), r)
		q.w.Counts.Moves += len(answer.Moves)
		q.reply(answer, err)
	default:
		q.w.Fail(fmt.Errorf("the request is a %T", q.request))
	}
}
