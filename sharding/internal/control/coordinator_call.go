// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/machine"
)

// A strategy is asked by ask; called takes its answer, to which allocated and rebalanced belong, and callTimeout goes
// on without one. fallBack has the strategy that is built in decide.

// maxStale is how many answers of the strategy in a row may be discarded because the view
// has changed. Then the built-in strategy decides where shards without a home go, and no
// move evens out the load until the next check.
const maxStale = 3

// maxFruitless is how many answers of the strategy in a row may give no shard a home,
// before the built-in strategy decides. Leaving shards out breaks no contract.
const maxFruitless = 3

// askPause is the least time between two questions of a kind to its strategy: no answer has it asked again at once.
const askPause = 50 * time.Millisecond

// call is a question to a strategy that may block: either allocate or rebalance is set. The zero value is none.
type call struct {
	id        machine.CallID
	strategy  string // The name of the strategy that is asked: another may be in use when it answers.
	allocate  *allocation.AllocateRequest
	rebalance *allocation.RebalanceRequest
	view      uint64 // The digest of what the answer depends on, when the strategy was asked.
}

// request returns the request of the call.
func (q *call) request() any {
	if q.rebalance != nil {
		return *q.rebalance
	}
	return *q.allocate
}

// strategyClient asks the strategy of a kind, one question at a time, and counts answers that were of no use.
type strategyClient struct {
	env
	asked     call            // The question in flight.
	mayAsk    machine.Instant // When the strategy may be asked next.
	stale     int             // How many answers in a row were discarded because the view had changed.
	fruitless int             // How many answers in a row gave no shard a home.
}

// isAsked reports whether a question is in flight.
func (s *strategyClient) isAsked() bool { return s.asked.id != 0 }

// passedOver reports whether the strategy is not asked next, but the one that is built in.
func (s *strategyClient) passedOver() bool { return s.stale >= maxStale }

// ask puts a question to the strategy.
func (s *strategyClient) ask(q call, view uint64) {
	c := s.control()
	c.calls++
	q.id, q.view, q.strategy = c.calls, view, s.kind.cfg.Strategy
	s.asked, s.mayAsk = q, s.now().Add(askPause)
	limit := s.kind.timings.Call
	c.out.Add(machine.Call{ID: q.id, Port: AllocationCall, Key: s.kind.name, Limit: limit, Request: q.request()})
	c.out.Arm(callTimer{s.kind.name}, s.now().Add(limit))
}

// forget drops the question in flight; its answer is ignored.
func (s *strategyClient) forget() {
	s.asked = call{}
	s.control().out.Disarm(callTimer{s.kind.name})
}

// answered ends the question in flight, and reports whether its answer is about the present view.
func (s *strategyClient) answered(view uint64) (asked call, current bool) {
	asked = s.asked
	s.forget()
	if view != asked.view {
		s.stale++
		return asked, false
	}
	s.stale = 0
	return asked, true
}

// expired ends the question in flight, whose timer has fired. Its strategy answers no question of before.
func (s *strategyClient) expired() (asked call) {
	asked, s.asked, s.stale = s.asked, call{}, 0
	return asked
}

// gaveHomes counts the homes of an answer, and reports whether the built-in strategy has to decide.
func (s *strategyClient) gaveHomes(homes int) (exhausted bool) {
	if s.fruitless++; homes > 0 {
		s.fruitless = 0
	}
	return s.fruitless >= maxFruitless
}

// passOver has the built-in strategy decide next.
func (s *strategyClient) passOver() { s.stale, s.fruitless = maxStale, 0 }

// forgive forgets what was counted: another strategy is in use.
func (s *strategyClient) forgive() { s.stale, s.fruitless = 0, 0 }

// view is a digest of what an answer depends on: the regions that may be given shards, and
// the version of the map that the request described.
func (c *coordinator) view() uint64 {
	return c.regions.digest(c.table.mapVersion())
}

// called takes the answer of a strategy to the call in flight. When the view has changed
// since the question, the answer is discarded and the strategy asked again.
func (c *coordinator) called(in machine.Called) {
	asked, current := c.strategy.answered(c.view())
	if !current {
		c.rounds.setDue(asked.rebalance != nil && !c.strategy.passedOver())
		c.evaluate()
		return
	}
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
	if c.strategy.gaveHomes(c.place(*asked.allocate, res, asked.strategy)) {
		c.fallBack(asked, fmt.Sprintf("%d answers in a row gave no shard a home", maxFruitless))
		return
	}
	c.advance()
}

// callTimeout gives up the question in flight, whose late answer is ignored: no shard moves by it, and what has no home
// is placed by the strategy that is built in.
func (c *coordinator) callTimeout() {
	const why = "it did not answer in time"
	switch asked := c.strategy.expired(); {
	case asked.id == 0:
	case asked.rebalance != nil:
		c.notMoved(asked, why)
		c.evaluate()
	default:
		c.fallBack(asked, why)
	}
}

// fallBack lets the built-in strategy decide.
func (c *coordinator) fallBack(asked call, why string) {
	c.control().out.DecideOften("allocation", c.kind.name, allocation.LeastShardName,
		fmt.Sprintf("strategy %s: %s", asked.strategy, why))
	c.strategy.passOver()
	c.evaluate()
}
