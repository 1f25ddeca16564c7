// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/machine"
)

// maxStale is how many answers of the strategy in a row may be discarded because the view
// has changed. Then the built-in strategy decides where shards without a home go, and no
// move evens out the load until the next check.
const maxStale = 3

// maxFruitless is how many answers of the strategy in a row may give no shard a home,
// before the built-in strategy decides. Leaving shards out breaks no contract.
const maxFruitless = 3

// askPause is the least time between two questions of a kind to its strategy: no answer has it asked again at once.
const askPause = 50 * time.Millisecond

// call is a question to a strategy that may block: either allocate or rebalance is set.
// At most one call of a coordinator is in flight.
type call struct {
	id        machine.CallID
	strategy  string // The name of the strategy that is asked: another may be in use when it answers.
	allocate  *allocation.AllocateRequest
	rebalance *allocation.RebalanceRequest
	view      uint64 // The digest of what the answer depends on, when the strategy was asked.
	stale     int    // How many answers in a row were discarded because the view had changed.
}

// request returns the request of the call.
func (q *call) request() any {
	if q.rebalance != nil {
		return *q.rebalance
	}
	return *q.allocate
}

// ask puts a question to the strategy.
func (c *coordinator) ask(q call) {
	c.control().calls++
	q.id, q.view, q.strategy = c.control().calls, c.view(), c.kind.cfg.Strategy
	c.call, c.mayAsk = q, c.now().Add(askPause)
	limit := c.kind.timings.Call
	c.control().out.Add(machine.Call{ID: q.id, Port: AllocationCall, Key: c.kind.name, Limit: limit, Request: q.request()})
	c.control().out.Arm(callTimer{c.kind.name}, c.now().Add(limit))
}

// forgetCall drops the question in flight; its answer is ignored.
func (c *coordinator) forgetCall() {
	c.call = call{stale: c.call.stale}
	c.control().out.Disarm(callTimer{c.kind.name})
}

// view is a digest of what an answer depends on: the regions that may be given shards, and
// the version of the map that the request described.
func (c *coordinator) view() uint64 {
	return c.regions.digest(c.table.mapVersion())
}

// called takes the answer of a strategy to the call in flight. When the view has changed
// since the question, the answer is discarded and the strategy asked again.
func (c *coordinator) called(in machine.Called) {
	asked := c.call
	c.forgetCall()
	if c.view() != asked.view {
		c.call.stale++
		c.rounds.setDue(asked.rebalance != nil && c.call.stale < maxStale)
		c.evaluate()
		return
	}
	c.call.stale = 0
	if asked.rebalance != nil {
		c.rebalanced(asked, in)
		c.evaluate()
		return
	}
	c.allocated(asked, in)
}

// answerOf returns what a strategy answered. An error, an answer of another type and one
// that fails the check of its contract are no answer.
func answerOf[R any](in machine.Called, check func(*R) error) (res R, err error) {
	if in.Err != nil {
		return res, in.Err
	}
	res, ok := in.Result.(R)
	if !ok {
		return res, fmt.Errorf("the answer is a %T", in.Result)
	}
	return res, check(&res)
}

// allocated takes the answer to the question where shards should go.
func (c *coordinator) allocated(asked call, in machine.Called) {
	res, err := answerOf(in, func(res *allocation.AllocateResult) error {
		return allocation.CheckAllocate(asked.allocate, res)
	})
	if err != nil {
		c.fallBack(asked, err.Error())
		return
	}
	if c.place(*asked.allocate, res, asked.strategy) > 0 {
		c.fruitless = 0
	} else if c.fruitless++; c.fruitless >= maxFruitless {
		c.fallBack(asked, fmt.Sprintf("%d answers in a row gave no shard a home", c.fruitless))
		return
	}
	c.advance()
}

// callTimeout goes on without the strategy; a late answer is ignored.
func (c *coordinator) callTimeout() {
	asked := c.call
	switch {
	case asked.id == 0:
	case asked.rebalance != nil:
		c.call = call{}
		c.notMoved(asked, "it did not answer in time")
		c.evaluate()
	default:
		c.call = call{}
		c.fallBack(asked, "it did not answer in time")
	}
}

// fallBack lets the built-in strategy decide.
func (c *coordinator) fallBack(asked call, why string) {
	c.control().out.DecideOften("allocation", c.kind.name, allocation.LeastShardName,
		fmt.Sprintf("strategy %s: %s", asked.strategy, why))
	c.call.stale, c.fruitless = maxStale, 0
	c.evaluate()
}
