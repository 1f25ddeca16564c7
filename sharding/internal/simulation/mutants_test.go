// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package simulation_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Defects that the seeds must find: first the table of the defects, then the test that has
// each of them looked for, package simulationtest says how.

// mutant is a defect that is put into the machines, and that the seeds of a test must find.
// old is replaced by new in the file; new has the defect when mutant(NAME) is true, where
// NAME stands for the name of the mutant. Further places of the defect are in also.
type mutant struct {
	name, test, file string
	old, new         string
	first            string // The first seed to run; empty: 0.
	in               string // The directory of the test; empty: this one.
	also             []simulationtest.Edit
}

var mutants = []mutant{
	{
		test: "TestLateCommands", name: "no promise", first: "405", file: "control/perkind.go",
		old: "		k.send(from, Refused{Kind: k.name, Promise: k.promise})\n		return false\n",
		new: "		if mutant(NAME) {\n			return true\n		}\n		k.send(from, Refused{Kind: k.name, Promise: k.promise})\n		return false\n",
	},
	{
		test: "TestMoves", name: "epoch from the region's copy", first: "18", file: "control/table.go",
		old: "	if !s.travelling {\n		s.base, s.positions = epoch, nil\n",
		new: "	if mutant(NAME) && t.kind.host != nil {\n		epoch = t.kind.host.homes.at(id).Epoch\n		epoch.N++\n	}\n" +
			"	if !s.travelling && !mutant(\"streams that do not begin anew\") || s.base.IsZero() {\n		s.base, s.positions = epoch, nil\n",
	},
	{
		test: "TestRandomFaults", name: "streams that do not begin anew", // The text of the mutant above contains this one.
	},
	{
		test: "TestTheWholeClusterIsStopped", name: "shards move while the whole cluster is being stopped", first: "90", file: "control/coordinator_moves.go",
		old: "	case c.control().stays():\n", new: "	case c.control().stays() && !mutant(NAME):\n",
	},
	{
		test: "TestTheWholeClusterIsStopped", name: "the load is evened out while the whole cluster is being stopped", file: "control/coordinator_rebalance.go",
		old: "c.unsettled() || c.control().stays() {", new: "c.unsettled() || c.control().stays() && !mutant(NAME) {",
	},
	{
		test: "TestSenselessStrategies", name: "a shard goes round and round", file: "control/table.go",
		old: "	return came.before > since &&", new: "	return !mutant(NAME) && came.before > since &&",
	},
	{
		test: "TestSenselessStrategies", name: "the answers of a strategy set its pace", file: "control/coordinator_rebalance.go",
		old: "	if wait := c.strategy.mayAsk.Sub(c.now()); wait > 0 &&", new: "	if wait := c.strategy.mayAsk.Sub(c.now()); wait > 0 && !mutant(NAME) &&",
	},
	{
		test: "TestMoves", name: "opened before everybody has answered", file: "control/regions.go",
		old: "if !r.opened && len(r.silent()) == 0 {",
		new: "if !r.opened && (len(r.silent()) == 0 || mutant(NAME) && len(r.silent()) < len(r.peers)) {",
	},
	{
		test: "TestLiesHaveNoEffect", name: "members have a node keep as many shards as they like", file: "control/keeping.go",
		old: "	if have := c.shards(); have+more > c.cfg.MaxShards {\n",
		new: "	if have := c.shards(); have+more > c.cfg.MaxShards && !mutant(NAME) {\n",
	},
	{
		test: "TestAReportOfLayoutsHasToHaveRoom", in: "../control", name: "layouts that a report names have room", file: "control/keeping.go",
		old: "	if more == 0 || full == \"\" {\n", new: "	if more == 0 || full == \"\" || mutant(NAME) {\n",
	},
	{
		test: "TestWhatIsPassedOnStaysWhatItWas", in: "../wire", name: "an item brings fields of an envelope along", file: "wire/envelope.go",
		old: "	if f.Number <= numberLast {\n", new: "	if f.Number <= numberLast && !mutant(NAME) {\n",
	},
	{
		test: "TestHomesAreGivenInSlices", in: "../control", name: "one step gives any number of shards a home", file: "control/keeping.go",
		old: "	n := min(pending, stepShards-c.placed)\n",
		new: "	n := min(pending, stepShards-c.placed)\n	if mutant(NAME) {\n		n = pending\n	}\n",
	},
	{
		test: "TestAKindThatNobodyRunsIsForgotten", in: "../control", name: "a kind that nobody runs is kept", file: "control/keeping.go",
		old: "		case !k.unused():\n", new: "		case !k.unused() || mutant(NAME):\n",
	},
	{
		test: "TestAKindThatNobodyRunsIsForgotten", in: "../control", name: "a kind that comes back has the terms of before", file: "control/keeping.go",
		old: "			if k.core != nil {\n				c.starts", new: "			if k.core != nil && !mutant(NAME) {\n				c.starts",
	},
	{
		test: "TestANewCoordinatorWaitsForTheFencesOfBefore", in: "../control", name: "who was removed before a coordinator began is not waited for", file: "control/regions.go",
		old: "	for _, node := range sortedNodes(r.control().serving) {\n",
		new: "	for _, node := range sortedNodes(r.control().serving) {\n		if mutant(NAME) && !r.control().serving[node] {\n			continue\n		}\n",
	},
	{
		test: "TestANewCoordinatorWaitsForTheFencesOfBefore", in: "../control", name: "who is seen first when it is down is not waited for", file: "control/control.go",
		old: "		if m.HasService(uint16(protocol.Service)) && !c.fences.Has(m.Node) {\n			c.serving[m.Node] = true\n",
		new: "		if _, known := c.serving[m.Node]; mutant(NAME) && !known && m.Status == gossip.Down {\n			continue\n		}\n" +
			"		if m.HasService(uint16(protocol.Service)) && !c.fences.Has(m.Node) {\n			c.serving[m.Node] = true\n",
	},
	{
		test: "TestACoordinatorWithoutStandingAllocatesNothing", in: "../control", name: "a coordinator without standing allocates", file: "control/coordinator.go",
		old: "return c.regions.isOpen() && !c.control().suspended }", new: "return c.regions.isOpen() && (!c.control().suspended || mutant(NAME)) }",
	},
	{
		test: "TestAnOldOrderHostsNothingAgain", in: "../control", name: "a shard is hosted again by an old order", file: "control/host.go",
		old: "	if h.began[hs.Shard] == hs.Epoch {\n", new: "	if h.began[hs.Shard] == hs.Epoch && !mutant(NAME) {\n",
	},
	{
		test: "TestMoves", name: "positions that do not travel", file: "cell/inbound.go",
		old: "		i.stream(p.Origin).last = p.Seq\n",
		new: "		if !mutant(NAME) {\n			i.stream(p.Origin).last = p.Seq\n		}\n",
	},
	{
		test: "TestRollingRestart", name: "sequence not moved with the shard", file: "control/table.go",
		old: "		positions: ss.Positions, travelling: ss.Base == s.base, came: s.came,\n	})\n",
		new: "		positions: ss.Positions, travelling: ss.Base == s.base, came: s.came,\n	})\n	if mutant(NAME) {\n		s.positions = nil\n	}\n",
	},
	{
		test: "TestRandomFaults", name: "what was handed over counts as sent", file: "cell/origin.go",
		old: "		if o.left(at.at(v.Seq)) {\n",
		new: "		if o.left(at.at(v.Seq)) || mutant(NAME) && at.at(v.Seq) != 0 {\n",
	},
	{
		test: "TestRandomFaults", name: "what was written is sent again", file: "cell/passage.go",
		old: "place != 0 && place-1 < o.written\n",
		new: "!mutant(NAME) && place != 0 && place-1 < o.written\n",
	},
	{
		test: "TestFloodsWait", name: "who waits for the window passes by a full mailbox", file: "cell/flow.go",
		old: "		if t.m.Entity == entity {\n",
		new: "		if t.m.Entity == entity && !mutant(NAME) {\n",
	},
	{
		test: "TestFloodsUnderFaults", name: "nobody asks whether it is still held back", file: "cell/flow.go",
		old: "now.Sub(h.at) >= o.cfg.Resend {",
		new: "now.Sub(h.at) >= o.cfg.Resend && !mutant(NAME) {",
	},
	{
		test: "TestFloodsWait", name: "a full mailbox holds nobody back", file: "cell/waiting.go",
		old: "	if h.bytes == 0 ||",
		new: "	if mutant(NAME) {\n		return protocol.CodeOK\n	}\n	if h.bytes == 0 ||",
	},
	{
		test: "TestLiesHaveNoEffect", name: "members speak for others", file: "cell/senders.go",
		old: "	if from == origin ||",
		new: "	if mutant(NAME) || from == origin ||",
	},
	{
		test: "TestLiesHaveNoEffect", name: "acknowledged by anybody", file: "cell/place.go",
		old: "	case from == p.route.Home || from == p.cfg.Self:\n",
		new: "	case from == p.route.Home || from == p.cfg.Self || mutant(NAME):\n",
	},
	{
		test: "TestLiesHaveNoEffect", name: "answered by anybody", file: "cell/place.go",
		old: "	return node == p.route.Home ||\n",
		new: "	return mutant(NAME) || node == p.route.Home ||\n",
	},
	{
		test: "TestLiesHaveNoEffect", name: "what comes back is taken", file: "cell/cell.go",
		old: "	case m.Origin == c.cfg.Self:\n		out.drop(",
		new: "	case m.Origin == c.cfg.Self && !mutant(NAME):\n		out.drop(",
	},
	{
		test: "TestRandomFaults", name: "a stop that is told nothing of a successor", file: "cell/stop.go",
		old: "	why := r.stopReason(e)\n",
		new: "	why := r.stopReason(e)\n	if mutant(NAME) {\n		return StopMoved, true\n	}\n" +
			"	if mutant(\"stops without standing\") {\n		return why, true\n	}\n",
	},
	{
		test: "TestStopsKnowOfSuccessors", name: "stops without standing", // The text of the mutant above contains this one.
	},
	{
		test: "TestMoves", name: "gaps passed over", file: "cell/inbound.go",
		old: "	if m.Seq == in.last+1 {\n",
		new: "	if m.Seq == in.last+1 || mutant(NAME) && m.Seq > in.last {\n",
	},
	{
		test: "TestMoves", name: "forwarding without route epoch", file: "cell/place.go",
		old: "&& m.Route.Less(p.route.Epoch)\n",
		new: "&& (m.Route.Less(p.route.Epoch) || mutant(NAME))\n",
	},
	{
		test: "TestMoves", name: "home given before the old one has stopped", file: "control/coordinator_moves.go",
		old: "		c.table.addCommand(id, o)\n		most--\n",
		new: "		c.table.addCommand(id, o)\n		most--\n" +
			"		if mutant(NAME) {\n			s := c.table.at(id)\n			*c.table.shards.at(id) = shard{epoch: s.epoch, base: s.base}\n			c.giveHome(id, p.to, p.reason)\n		}\n",
	},
	{
		test: "TestStopsEndInTime", name: "stop that is never taken back", file: "control/table.go",
		old: "if s.phase == PhaseStopping && t.now() >= s.deadline {",
		new: "if s.phase == PhaseStopping && t.now() >= s.deadline && !mutant(NAME) {",
	},
	{
		test: "TestMoves", name: "Resume after Stopped", first: "5", file: "control/host.go",
		old: "			continue\n		case entry.state == Stopping:\n",
		new: "			if mutant(NAME) {\n				entry.state = Serving\n				h.toShard(se.Shard, protocol.StartHosting{Epoch: entry.epoch, Base: entry.base, Positions: entry.positions})\n			}\n" +
			"			continue\n		case entry.state == Stopping:\n",
	},
	{
		test: "TestCoordinatorLeavesInTheMiddleOfMoves", name: "coordinator that leaves its moves on their way", file: "control/coordinator_moves.go",
		old: "	if c.now() >= c.endBy || ",
		new: "	if c.now() >= c.endBy || mutant(NAME) || ",
	},
	{
		test: "TestSeveralLeaveOverASlowNetwork", name: "leaver that is gone before others took over", file: "control/host.go",
		old: "(len(h.hosted) == 0 || !h.kind.successor() && h.hosting() == 0) {",
		new: "(len(h.hosted) == 0 || (mutant(NAME) || !h.kind.successor()) && h.hosting() == 0) {",
	},
	{
		test: "TestStrategyThatNeverAnswers", name: "late answer used", file: "control/perkind.go",
		old: "k.coord.strategy.asked.id == in.ID {",
		new: "(k.coord.strategy.asked.id == in.ID || mutant(NAME) && k.coord.strategy.isAsked()) {",
	},
	{
		test: "TestStrategyThatNeverAnswers", name: "strategy waited for without a limit", file: "control/coordinator_call.go",
		old: "	asked, s.asked, s.stale = s.asked, call{}, 0\n",
		new: "	if mutant(NAME) {\n		return call{}\n	}\n	asked, s.asked, s.stale = s.asked, call{}, 0\n",
	},
	{
		test: "TestStrategyThatNeverAnswers", name: "homes not checked", file: "control/coordinator_call.go",
		old: "		return allocation.CheckAllocate(asked.allocate, res)\n",
		new: "		if mutant(NAME) {\n			return nil\n		}\n		return allocation.CheckAllocate(asked.allocate, res)\n",
	},
	{
		test: "TestStrangeStrategies", name: "moves not checked", file: "control/coordinator_rebalance.go",
		old: "		return allocation.CheckRebalance(asked.rebalance, res)\n",
		new: "		if mutant(NAME) {\n			return nil\n		}\n		return allocation.CheckRebalance(asked.rebalance, res)\n",
	},
	{
		test: "TestStrangeStrategies", name: "two calls in flight", file: "control/coordinator_allocate.go",
		old: "	if c.strategy.isAsked() || c.gather == gatherWaiting {\n",
		new: "	if c.strategy.isAsked() && !mutant(NAME) || c.gather == gatherWaiting {\n",
	},
	{
		test: "TestStrangeStrategies", name: "moves asked for beside a call in flight", file: "control/coordinator_rebalance.go",
		old: "	if c.ending || c.strategy.isAsked() || ",
		new: "	if c.ending || c.strategy.isAsked() && !mutant(NAME) || ",
	},
	{
		test: "TestStrategyThatNeverAnswers", name: "strategy asked again for ever", file: "control/coordinator_call.go",
		old: "	c.strategy.passOver()\n",
		new: "	if !mutant(NAME) {\n		c.strategy.passOver()\n	}\n",
	},
	{
		test: "TestStrategyThatGivesNoHomes", name: "strategy without homes never passed over", file: "control/coordinator_call.go",
		old: "	return s.fruitless >= maxFruitless\n",
		new: "	return s.fruitless >= maxFruitless && !mutant(NAME)\n",
	},
	{
		test: "TestStrategiesAreChanged", name: "nobody waits for the strategy before any more", file: "control/coordinator.go",
		old: "		c.strategy.forgive()\n",
		new: "		c.strategy.forgive()\n		if mutant(NAME) {\n			c.control().out.Disarm(callTimer{c.kind.name})\n		}\n		if mutant(\"question of the strategy before forgotten\") {\n			c.strategy.asked = call{}\n		}\n",
	},
	{
		test: "TestStrategiesAreChanged", name: "question of the strategy before forgotten", // The text of the mutant above contains this one.
	},
	{
		test: "TestOutcomesAreTrue", name: "deadline that counts from the arrival", file: "cell/clocks.go",
		old: "	return r.at(now)\n",
		new: "	if mutant(NAME) {\n		return r.at(now).Add(time.Hour)\n	}\n	return r.at(now)\n",
	},
	{
		test: "TestOutcomesAreTrue", name: "begun after its deadline", file: "cell/entitytable.go",
		old: "		if e.mailbox.at(0).Expired(now) {\n			r.refuse",
		new: "		if e.mailbox.at(0).Expired(now) && !mutant(NAME) {\n			r.refuse",
		// Both look: the cell when it hands the message out, and the worker before it begins.
		also: []simulationtest.Edit{{File: "runtime/job.go", Old: "	case !inTime:\n", New: "	case !inTime && !mutant(NAME):\n"}},
	},
	{
		test: "TestOutcomesAreTrue", name: "what a lane has is taken back", file: "cell/retract.go",
		old: "	if !ok {\n		return false\n	}\n	if spent := ",
		new: "	if mutant(NAME) {\n		seq, ok = o.window.Find(correlation, 0)\n	}\n	if !ok {\n		return false\n	}\n	if spent := ",
	},
	{
		test: "TestOutcomesAreTrue", name: "gap where a message was taken back", file: "window/window.go",
		old: "	c.remove(i)\n",
		new: "	c.remove(i)\n	if mutant(NAME) {\n		for all := w.head; all != nil; all = all.next {\n			all.at++\n		}\n		w.first++\n	}\n",
	},
	{
		test: "TestOutcomesAreTrue", name: "nothing is taken back", file: "cell/retract.go",
		old: "	if c.own.retractSent(correlation, out) {\n",
		new: "	if mutant(NAME) {\n		return nil, false\n	}\n	if c.own.retractSent(correlation, out) {\n",
	},
	{
		test: "TestSlowStrategies", name: "answer about another map used", file: "control/coordinator_call.go",
		old: "	if view != asked.view {\n",
		new: "	if view != asked.view && !mutant(NAME) {\n",
	},
	{
		test: "TestRandomFaults", name: "a worker that does not look at the standing", file: "runtime/job.go",
		old: "	case !held:\n",
		new: "	case !held && !mutant(NAME):\n",
	},
	{
		test: "TestEntitiesThatKeepTheirWorkersKeepNobodyWaiting", name: "a worker that is kept is never replaced", file: "runtime/class.go",
		old: "	if c.limit-kept < c.least {\n",
		new: "	if c.limit-kept < c.least && !mutant(NAME) {\n",
	},
	{
		test: "TestBusyEntitiesNearTheirSenders", name: "a slow entity that keeps its place in the quick class", file: "runtime/job.go",
		old: "		j.yields = j.op != 0\n",
		new: "		j.yields = j.op != 0 && !mutant(NAME)\n",
	},
	{
		test: "TestBusyEntitiesNearTheirSenders", name: "slow entities among the quick ones", file: "runtime/class.go",
		old: "	if slow {\n",
		new: "	if slow && !mutant(NAME) {\n",
	},
	{
		test: "TestAnEntityIsSlowForSomeRuns", in: "../cell", name: "an entity that is slow for ever", file: "cell/entities.go",
		old: "		e.slow--\n",
		new: "		if !mutant(NAME) {\n			e.slow--\n		}\n",
	},
	{
		test: "TestQueueLaws", in: "../runtime", name: "slow jobs that are never served", file: "runtime/queue.go",
		old: "c.busy <= c.limit && c.jobs.len() > 0 {",
		new: "c.busy <= c.limit && c.jobs.len() > 0 && !(mutant(NAME) && w.class == ClassSlow) {",
	},
	{
		test: "TestQueueLaws", in: "../runtime", name: "a slow job that takes a place of the quick class", file: "runtime/queue.go",
		old: "	s.Worker.class = of\n",
		new: "	s.Worker.class = of\n	if mutant(NAME) {\n		s.Worker.class = ClassQuick\n	}\n",
	},
	{
		test: "TestQueueLaws", in: "../runtime", name: "workers beside those that wait for a processor", file: "runtime/queue.go",
		old: "	w.seen = w.calls.Load()\n",
		new: "	w.seen = w.calls.Load()\n	if mutant(NAME) {\n		return w.seen == last\n	}\n",
	},
	{
		test: "TestStarvedWorkersNeedNoOthers", name: "workers beside those that wait for a processor, in a world", file: "runtime/queue.go",
		old: "	return w.seen == last && last%2 == 1\n",
		new: "	return w.seen == last && (last%2 == 1 || mutant(NAME))\n",
	},
	{
		test: "TestBusyEntitiesNearTheirSenders", name: "user code that keeps its worker unseen", file: "runtime/queue.go",
		old: "func (w *Worker[W]) Enter() { w.calls.Add(1) }\n",
		new: "func (w *Worker[W]) Enter() {\n	if !mutant(NAME) {\n		w.calls.Add(1)\n	}\n}\n",
	},
	{
		test: "TestRandomFaults", name: "a reply that goes to another ask", file: "runtime/asks.go",
		old: "	a := t.open[reply.Correlation]\n	if a == nil {\n",
		new: "	a := t.open[reply.Correlation]\n	if mutant(NAME) && a != nil {\n		for _, other := range t.open {\n			if other.Correlation < a.Correlation {\n				a = other\n			}\n		}\n	}\n	if a == nil {\n",
	},
	{
		test: "TestRandomFaults", name: "an ask that is not told that its message has failed", file: "runtime/carry.go",
		old: "	if a.Message.Correlation != 0 {\n",
		new: "	if a.Message.Correlation != 0 && !mutant(NAME) {\n",
	},
	{
		test: "TestRandomFaults", name: "a round of acknowledgements that forgets a cell", file: "runtime/acks.go",
		old: "	r.now = n.Ports.Clock.Instant()\n",
		new: "	r.now = n.Ports.Clock.Instant()\n	if mutant(NAME) && len(due) > 1 {\n		due = due[1:]\n	}\n",
	},
	{
		test: "TestRandomFaults", name: "an acknowledgement of another shard", file: "wire/acks.go",
		old: "		f(ack)\n",
		new: "		if mutant(NAME) {\n			ack.Shard ^= 1\n		}\n		f(ack)\n",
	},
	{
		test: "TestWhatAnEarlierLaneHasLostHasItsPlaceInABatch", in: "../cell", name: "a batch without what an earlier passage has lost", file: "cell/passage.go",
		old: "		if old == handing || old == 0 {\n",
		new: "		if old == handing || old == 0 && !mutant(NAME) {\n",
	},
	{
		test: "TestRandomFaults", name: "a reply with the payload of the one before", file: "wire/replies.go",
		old: "	kind := \"\"\n	for rest := r.parts",
		new: "	kind := \"\"\n	if mutant(NAME) {\n		var last []byte\n		right := f\n		f = func(r *protocol.Reply) {\n			r.Payload, last = last, r.Payload\n			right(r)\n		}\n	}\n	for rest := r.parts",
	},
	{
		test: "TestRepliesTravelTogether", in: "../runtime", name: "a list of replies that the lane is not asked for again", file: "runtime/replies.go",
		old: "	p.replies.called = false\n",
		new: "	p.replies.called = mutant(NAME)\n",
	},
	{
		test: "TestRepliesDoNotWaitForASessionThatHasEnded", in: "../runtime", name: "replies that a session takes along when it ends", file: "runtime/peers.go",
		old: "		old.sendReplies()\n",
		new: "		if !mutant(NAME) {\n			old.sendReplies()\n		}\n",
	},
	{
		test: "TestRandomFaults", name: "a part of a batch for another shard", file: "wire/batch.go",
		old: "			h.of, err = d.stream(&in)\n",
		new: "			h.of, err = d.stream(&in)\n			if mutant(NAME) && err == nil {\n				of := *h.of\n				of.shard ^= 1\n				h.of = &of\n			}\n",
	},
	{
		test: "TestStreamsByNumber", name: "a number of an earlier session", file: "wire/numbers.go",
		old: "	if generation != n.generation || int(i) >=",
		new: "	if generation != n.generation && !mutant(NAME) || int(i) >=",
	},
	{
		test: "TestStreamsByNumber", name: "numbers that a later session does not end", file: "wire/numbers.go",
		old: "		*n = Numbers{generation: generation}\n",
		new: "		before := n.pages\n		*n = Numbers{generation: generation}\n		if mutant(NAME) {\n			n.pages = before\n		}\n",
	},
	{
		// What is transmitted again alone spells its stream out, so that a cluster recovers, only later.
		test: "TestNumbersNameOneStreamEach", in: "../wire", name: "a lost definition that is not made up for", file: "wire/numbers.go",
		old: "	if !known || seq < n.beyond {\n",
		new: "	if !known || seq < n.beyond && !mutant(NAME) {\n",
	},
	{
		test: "TestRandomFaults", name: "what went with others counts as not sent", file: "cell/passage.go",
		old: "func (h *PendingAppend) Placed(place uint64) {\n",
		new: "func (h *PendingAppend) Placed(place uint64) {\n	if mutant(NAME) {\n		place = ^uint64(0)\n	}\n",
	},
	{
		test: "TestRandomFaults", name: "a message of a batch in a place of another", file: "wire/items.go",
		old: "	for b, seq := r.items, r.e.seq; len(b) > 0; {\n",
		new: "	if mutant(NAME) && len(r.d.batch.parts) > 0 {\n		r.e.seq++\n	}\n	for b, seq := r.items, r.e.seq; len(b) > 0; {\n",
	},
	{
		test: "TestBusyEntitiesNearTheirSenders", name: "a message of a run that is not counted", file: "runtime/job.go",
		old: "			j.ran++ // Counted",
		new: "			if !mutant(NAME) {\n				j.ran++\n			} // Counted",
	},
	{
		test: "TestBusyEntitiesNearTheirSenders", name: "a mailbox that overwrites what was handed out", file: "cell/mailbox.go",
		old: "	if int(b.n) == len(b.ring) {\n",
		new: "	if int(b.n) == len(b.ring) && !mutant(NAME) || b.waiting() == len(b.ring) {\n",
	},
	{
		test: "TestRandomFaults", name: "a value that enters a mailbox out of its turn", file: "cell/cell.go",
		old: "	if a.Seq != in.last+1 {\n",
		new: "	if a.Seq != in.last+1 && !mutant(NAME) {\n",
	},
	{
		test: "TestRandomFaults", name: "a value of the message before it", file: "runtime/inbox.go",
		old: "m.Value = decode(m.Entity(), m.Payload())\n",
		new: "m.Value = decode(m.Entity(), m.Payload())\n				if mutant(NAME) && i > 0 {\n					m.Value = items[i-1].Value\n				}\n",
	},
	{
		test: "TestRandomFaults", name: "a value that is not decoded", file: "runtime/inbox.go",
		old: "		Mail: cell.Mail{Value: m.Value},\n	}\n",
		new: "		Mail: cell.Mail{Value: m.Value},\n	}\n	if mutant(NAME) {\n		a.Mail.Value = nil\n	}\n",
	},
	{
		test: "TestDrainedNodes", name: "drained nodes are given shards", file: "control/regions.go",
		old: "reg.Drained == drained &&",
		new: "(reg.Drained == drained || mutant(NAME)) &&",
	},
	{
		test: "TestTheNextCoordinatorKnowsWhoIsDrained", in: "../control", name: "a drain that is told once", file: "control/host.go",
		old: "Drained: h.kind.control.drain.on,\n",
		new: "Drained: h.kind.control.drain.on && !(mutant(NAME) && h.said.Drained),\n",
	},
	{
		test: "TestOrdersThatAreRefused", in: "../control", name: "an order to a node that can host nothing", file: "control/coordinator_moves.go",
		old: "	case !slices.Contains(c.regions.eligible(), to):\n",
		new: "	case !mutant(NAME) && !slices.Contains(c.regions.eligible(), to):\n",
	},
	{
		test: "TestADrainIsTakenBackInTheMiddle", in: "../control", name: "plans outlive the drain", file: "control/coordinator_moves.go",
		old: "		if parting[home] == \"\" {\n",
		new: "		if parting[home] == \"\" && !mutant(NAME) {\n",
	},
	{
		test: "TestAKindThatWasSplitComesTogether", in: "../control", name: "a kind that stays split", file: "control/coordinator_rebalance.go",
		old: "	if !req.Fitness.NoneUnreachable ||",
		new: "	if !req.Fitness.NoneUnreachable || mutant(NAME) ||",
	},
	{
		test: "TestRandomFaults", name: "an ask of another node that is answered to this one", file: "cell/cell.go",
		old: "		about.from = in\n",
		new: "		if !mutant(NAME) {\n			about.from = in\n		}\n",
	},
	{
		test: "TestOutcomesAreTrue", name: "an ask that has begun is taken back", file: "cell/mailbox.go",
		old: "	for i := b.out; i < b.n; i++ {\n		if m := *b.at(i);",
		new: "	from := b.out\n	if mutant(NAME) {\n		from = 0\n	}\n	for i := from; i < b.n; i++ {\n		if m := *b.at(i);",
	},
	{
		test: "TestOutcomesAreTrue", name: "an ask of this node without its deadline", file: "cell/runs.go",
		old: "		m = MailOfAsk(value, correlation, deadline)\n",
		new: "		if mutant(NAME) {\n			deadline = 0\n		}\n		m = MailOfAsk(value, correlation, deadline)\n",
	},
	{
		test: "TestOutcomesAreTrue", name: "an ask behind the first one that does not end", file: "runtime/asks.go",
		old: "; next != 0 {\n",
		new: "; next != 0 && !mutant(NAME) {\n",
	},
	{
		test: "TestOutcomesAreTrue", name: "an ask that ends and stays in the table", file: "runtime/asks.go",
		old: "			delete(sl.asks.open, correlation)\n			a.Asker.End(",
		new: "			if !mutant(NAME) {\n				delete(sl.asks.open, correlation)\n			}\n			a.Asker.End(",
	},
	{
		test: "TestOutcomesAreTrue", name: "an ask whose message is said to be taken back", file: "runtime/asks.go",
		old: "a.Asker.End(sl.takeBack(a), cause)",
		new: "a.Asker.End(sl.takeBack(a) || mutant(NAME), cause)",
	},
	{
		test: "TestRandomFaults", name: "a chunk cut one short", file: "window/window.go",
		old: "end: min(seq+1, w.Next())}\n",
		new: "end: min(seq+1, w.Next())}\n	if mutant(NAME) && over.end > over.first+1 {\n		over.end--\n	}\n",
	},
	{
		test: "TestRandomFaults", name: "a chunk cut one too far", file: "window/window.go",
		old: "	for w.head != nil {\n",
		new: "	if mutant(NAME) {\n		over.end = min(over.end+1, w.Next())\n	}\n	for w.head != nil {\n",
	},
	{
		test: "TestRandomFaults", name: "an offset kept of an earlier chunk", file: "window/chunk.go",
		old: "	if i == 0 {\n		return 0\n	}\n",
		new: "	if i == 0 {\n		if mutant(NAME) && c.next != nil {\n			return c.next.items[0].end\n		}\n		return 0\n	}\n",
	},
	{
		test: "TestOutcomesAreTrue", name: "a deadline of the neighbour", file: "window/chunk.go",
		old: "	if e.timed {\n",
		new: "	if mutant(NAME) && e.timed && i > 0 && c.items[i-1].timed {\n		copy(b, c.bytes[c.start(i-1):][:deadlineBytes])\n	}\n	if e.timed {\n",
	},
	{
		test: "TestRandomFaults", name: "a message that is transmitted again as the one before it", file: "window/window.go",
		old: "	i.first++\n",
		new: "	if at := int(i.first - i.chunk.at); mutant(NAME) && at > 0 {\n		i.chunk.view(at-1, v)\n		v.Seq++\n	}\n	i.first++\n",
	},
	{
		test: "TestLimitedEntities", name: "whoever is busy makes room", file: "cell/sweep.go",
		old: "	if _, idle := e.Idle(); !idle ||",
		new: "	if _, idle := e.Idle(); !idle && (!mutant(NAME) || e.state != entityActive) ||",
	},
	{
		test: "TestLimitedEntities", name: "who is permanent makes room", file: "cell/entitytable.go",
		old: "	if r.cfg.Limiter != nil && !r.permanent(e) {\n",
		new: "	if r.cfg.Limiter != nil && (!r.permanent(e) || mutant(NAME)) {\n",
	},
	{
		test: "TestLimitedEntities", name: "who was busy is not looked at again", file: "runtime/limit.go",
		old: "		l.call(passRetry)\n",
		new: "		if !mutant(NAME) {\n			l.call(passRetry)\n		}\n",
	},
	{
		test: "TestLimitedEntities", name: "who was busy is never put back", file: "runtime/limit.go",
		old: "	l.order.Return()\n",
		new: "	if !mutant(NAME) {\n		l.order.Return()\n	}\n",
	},
	{
		test: "TestLimitedEntities", name: "a pass that leaves an excess is the last one", file: "runtime/limit.go",
		old: "	case evicted > 0:\n		l.call(0)\n",
		new: "	case evicted > 0:\n		if !mutant(NAME) {\n			l.call(0)\n		}\n",
	},
	{
		test: "TestLimitedEntities", name: "a limit for each shard", file: "runtime/layouts.go",
		old: "			sl.cell.Maintenance().Limit(bound)\n",
		new: "			if mutant(NAME) {\n				bound = newLimiter(r, bound.cfg)\n			}\n			sl.cell.Maintenance().Limit(bound)\n",
	},
	{
		test: "TestUsesCountForTheLimit", in: "../..", name: "a use of which the policy does not hear", file: "runtime/limit.go",
		old: "	for _, s := range handles {\n",
		new: "	for _, s := range handles {\n		if mutant(NAME) {\n			break\n		}\n",
	},
	{
		test: "TestALimitIsReloaded", in: "../..", name: "a smaller limit that waits for the next start", file: "runtime/limit.go",
		old: "	l.order.Resize(to.Limit)\n	l.look()\n",
		new: "	l.order.Resize(to.Limit)\n	if !mutant(NAME) {\n		l.look()\n	}\n",
	},
	{
		test: "TestALimitIsReloaded", in: "../..", name: "a new limit that shards which are there do not hear of", file: "runtime/limit.go",
		old: "	r.EachSlot(func(sl *Slot) { sl.Do(func(c *cell.Cell) { c.Maintenance().Limit(next) }) })\n",
		new: "	if !mutant(NAME) {\n		r.EachSlot(func(sl *Slot) { sl.Do(func(c *cell.Cell) { c.Maintenance().Limit(next) }) })\n	}\n",
	},
	{
		test: "TestLimitedEntities", name: "an instance that stops keeps its handle", file: "cell/stop.go",
		old: "	r.limiter.leave(e)\n",
		new: "	if !mutant(NAME) {\n		r.limiter.leave(e)\n	}\n",
	},
	{
		test: "TestPermanentEntitiesRun", name: "a permanent entity that waits for its first message", file: "cell/entitytable.go",
		old: "	for _, id := range r.cfg.Permanent {\n",
		new: "	for _, id := range r.cfg.Permanent {\n		if mutant(NAME) {\n			return\n		}\n",
	},
	{
		test: "TestPermanentEntitiesRun", name: "a permanent entity that rests for ever", file: "cell/entitytable.go",
		old: "			r.alarm.at(e.at, out)\n",
		new: "			if !mutant(NAME) {\n				r.alarm.at(e.at, out)\n			}\n",
	},
	{
		test: "TestTheOldestIsDrained", in: "../control", name: "what lives on the oldest goes to anybody", file: "control/coordinator_allocate.go",
		old: "	if c.kind.cfg.OnOldest {\n",
		new: "	if c.kind.cfg.OnOldest && !mutant(NAME) {\n",
	},
	{
		test: "TestNewcomersStartSlowly", name: "a newcomer that gets its whole part at once", file: "control/regions.go",
		old: "	r.slowStart.scale(all, nodes)\n",
		new: "	if !mutant(NAME) {\n		r.slowStart.scale(all, nodes)\n	}\n",
	},
	{
		test: "TestNewcomersStartSlowly", name: "a newcomer whose age the next coordinator does not know", file: "control/slowstart.go",
		old: "	if age <= 0 {\n",
		new: "	if age <= 0 || mutant(NAME) && age > 3*time.Second {\n",
	},
	{
		test: "TestNewcomersStartSlowly", name: "a newcomer that stays slow", file: "control/slowstart.go",
		old: "	age := s.now().Sub(at)\n",
		new: "	age := s.now().Sub(at)\n	if mutant(NAME) {\n		age = min(age, slow/2)\n	}\n",
	},
	{
		test: "TestANewcomerGetsItsPartOfTheLoad", in: "../control", name: "a load that stays where the shard was", file: "control/loads.go",
		old: "		case told > 0:\n",
		new: "		case told > 0 && !mutant(NAME):\n",
	},
	{
		test: "TestANewcomerGetsItsPartOfTheLoad", in: "../control", name: "a load of which nothing comes along", file: "control/loads.go",
		old: "	if n == 0 {\n		return usual\n",
		new: "	if mutant(NAME) {\n		return 0\n	}\n	if n == 0 {\n		return usual\n",
	},
	{
		test: "TestLoadsAreEvenedOutAndStayAtRest", in: "../control", name: "a strategy that hears of no load", file: "control/regions.go",
		old: "	r.loads.expect(all, regs)\n",
		new: "	if !mutant(NAME) {\n		r.loads.expect(all, regs)\n	}\n",
	},
	{
		test: "TestLoadsAreEvenedOutAndStayAtRest", in: "../control", name: "a load that is not damped", file: "control/loadmeter.go",
		old: "	sample := ",
		new: "	if mutant(NAME) {\n		weight = 1\n	}\n	sample := ",
	},
	{
		test: "TestLoadsAreMeasured", name: "handlers whose time does not count", file: "runtime/job.go",
		old: "	sl.busy += max(took, 0)\n",
		new: "	if !mutant(NAME) {\n		sl.busy += max(took, 0)\n	}\n",
	},
	{
		test: "TestOrderlyMovesKeepTheMemory", name: "a memory that does not come along", file: "control/commands.go",
		old: "	case PhaseStarting:\n",
		new: "	case PhaseStarting:\n		if mutant(NAME) {\n			memory = nil\n		}\n",
	},
	{
		test: "TestLeavingRegionHandsOrdersBack", in: "../control", name: "a memory that a new home which never began does not hand back", file: "control/host.go",
		old: "			back = append(back, StoppedShard(hs))\n",
		new: "			if mutant(NAME) {\n				hs.Snapshots = nil\n			}\n			back = append(back, StoppedShard(hs))\n",
	},
	{
		test: "TestHandoffsUnderFaults", name: "a memory that two instances have", file: "handoff/buffer.go",
		old: "	data := b.kept[entity]\n	b.drop(entity)\n",
		new: "	data := b.kept[entity]\n	if !mutant(NAME) {\n		b.drop(entity)\n	}\n",
	},
	{
		test: "TestHandoffsUnderFaults", name: "a memory of an earlier hosting", file: "handoff/buffer.go",
		old:  "	b.Clear()\n	b.since = now\n",
		new:  "	if !mutant(NAME) {\n		b.Clear()\n	}\n	b.since = now\n",
		also: []simulationtest.Edit{{File: "handoff/buffer.go", Old: "	b.Clear()\n	return all\n", New: "	if !mutant(NAME) {\n		b.Clear()\n	}\n	return all\n"}},
	},
	{
		test: "TestTheMemoryOfAHomeThatDiedIsGone", in: "../control", name: "a memory of an earlier epoch", file: "control/table.go",
		old: "since: t.control().now.Wall})\n			t.snapshots.drop(id)\n",
		new: "since: t.control().now.Wall})\n			if !mutant(NAME) {\n				t.snapshots.drop(id)\n			}\n",
		also: []simulationtest.Edit{
			{File: "control/table.go", Old: "		s.base, s.positions = epoch, nil\n		t.snapshots.drop(id)\n", New: "		s.base, s.positions = epoch, nil\n		if !mutant(NAME) {\n			t.snapshots.drop(id)\n		}\n"},
		},
	},
	{
		test: "TestHandoffsUnderFaults", name: "a memory that a coordinator keeps", file: "control/table.go",
		old: "	t.snapshots.drop(se.Shard)\n",
		new: "	if !mutant(NAME) {\n		t.snapshots.drop(se.Shard)\n	}\n",
	},
	{
		test: "TestHandoffsUnderFaults", name: "a memory that an old home keeps", file: "control/host.go",
		old: "		h.snapshots.drop(home.Shard)\n",
		new: "		if !mutant(NAME) {\n			h.snapshots.drop(home.Shard)\n		}\n",
	},
	{
		test: "TestHandoffsUnderFaults", name: "a snapshot that is asked for beyond its hosting", file: "cell/memory.go",
		old: "	m.asked = nil\n}\n\n// slow",
		new: "	if !mutant(NAME) {\n		m.asked = nil\n	}\n}\n\n// slow",
	},
	{
		test: "TestLiesAboutMemoryHaveNoEffect", name: "a memory that anybody brings", file: "control/table.go",
		old: "s.home == from && s.epoch == epoch {\n",
		new: "(s.home == from || mutant(NAME)) && s.epoch == epoch {\n",
	},
	{
		test: "TestHandoffsUnderFaults", name: "a shard that waits for a snapshot for ever", file: "cell/memory.go",
		old: "	for m.place.stops() &&",
		new: "	for !mutant(NAME) && m.place.stops() &&",
	},
	{
		test: "TestTheMemoryGoesWithTheShard", in: "../..", name: "an instance that is restored after its start", file: "../program.go",
		old: "entity != nil && memory != nil {\n",
		new: "entity != nil && memory != nil && !mutant(NAME) {\n",
		also: []simulationtest.Edit{{
			File: "../program.go", Old: "		return frozen(s.Start(ctx))\n",
			New: "		if err = frozen(s.Start(ctx)); mutant(NAME) && ctx.job.Snapshot() != nil {\n			p.revive(ctx, entity, ctx.job.Snapshot())\n		}\n		return err\n",
		}},
	},
	{
		test: "TestRescalesUnderFaults", name: "a revision that counts while something runs", file: "control/scale.go",
		old: "		done = false\n		if c.table.serves",
		new: "		done = mutant(NAME) && id > 0\n		if c.table.serves",
	},
	{
		test: "TestRescalesUnderFaults", name: "homes while shards stop for the next revision", file: "control/coordinator_moves.go",
		old: "	if !c.decides() || c.scaling.isBusy() || c.table.isFormer(id) {\n		return false\n	}\n",
		new: "	if !c.decides() || c.scaling.isBusy() && !mutant(NAME) || c.table.isFormer(id) {\n		return false\n	}\n",
		also: []simulationtest.Edit{{
			File: "control/scale.go", Old: "	if c.scaling.stops() && !c.stopAll() {\n		return true\n",
			New: "	if c.scaling.stops() && !c.stopAll() {\n		return !mutant(NAME)\n",
		}},
	},
	{
		test: "TestNothingRunsUntilEveryRegionKnows", in: "../control", name: "homes before all regions know the revision", file: "control/scale.go",
		old: "	if len(behind) > 0 {\n",
		new: "	if len(behind) > 0 && !mutant(NAME) {\n",
	},
	{
		test: "TestRescalesUnderFaults", name: "a coordinator that begins with the first revision", file: "control/scale.go",
		old: "		s.current, s.telling = told, true\n",
		new: "		if s.current, s.telling = told, true; mutant(NAME) {\n			s.current.Revision = 1\n		}\n",
	},
	{
		test: "TestRescalesUnderFaults", name: "a region that is not told the revision with what it hosts", file: "control/host.go",
		old: "	h.learnScale(m.Scale)\n",
		new: "	if !mutant(NAME) {\n		h.learnScale(m.Scale)\n	}\n",
		also: []simulationtest.Edit{{
			File: "control/scale.go", Old: "	if !c.scaling.isScaled() || !c.decides() {\n", New: "	if !c.scaling.isScaled() || !c.decides() || mutant(NAME) && c.scaling.current.Revision == 1 {\n",
		}},
	},
	{
		test: "TestANodeLeavesAfterAShrink", in: "../control", name: "a shard that is not in use and keeps its node", file: "control/scale.go",
		old: "		if s.Index() >= told.Count && entry.state == Halted {\n",
		new: "		if s.Index() >= told.Count && entry.state == Halted && !mutant(NAME) {\n",
	},
	{
		test: "TestAChangeIsCalledOffWhenAnInstanceDoesNotStop", in: "../control", name: "a change that waits for ever", file: "control/coordinator_moves.go",
		old: "next == PhaseResuming && c.scaling.stops() {\n",
		new: "next == PhaseResuming && c.scaling.stops() && !mutant(NAME) {\n",
	},
	{
		test: "TestLeasesUnderFaults", name: "a shard that does not wait for its lease", file: "control/lease.go",
		old: "	g.all[s] = &gate{order: order}\n",
		new: "	g.all[s] = &gate{order: order}\n	if mutant(NAME) {\n		g.held(LeaseHeld{Kind: g.host.cfg.Name, Shard: s, Epoch: order.Epoch})\n	}\n",
	},
	{
		test: "TestLeasesUnderFaults", name: "a lease that is lost and of no consequence", file: "control/lease.go",
		old: "	of.phase = gateLost\n	g.host.kind",
		new: "	if mutant(NAME) {\n		return\n	}\n	of.phase = gateLost\n	g.host.kind",
	},
	{
		test: "TestALeaseEndsWhileItsNodeStandsStill", name: "messages begin by a lease of which nobody said that it is over", file: "runtime/permit.go",
		old: "	return held == nil || (*held)()\n", new: "	return held == nil || mutant(NAME) || (*held)()\n",
	},
	{
		test: "TestALeaseIsLost", in: "../control", name: "a lost lease of which the coordinator hears once", file: "control/host.go",
		old: "		if entry.state == Halted && h.homes",
		new: "		if !mutant(NAME) && entry.state == Halted && h.homes",
	},
	{
		test: "TestATickLooksAtNoShardThatServes", in: "../control", name: "a tick that looks at all shards", file: "control/table.go",
		old: "	if t.in(which...) == 0 {\n",
		new: "	if t.in(which...) == 0 && !mutant(NAME) {\n",
	},
	{
		test: "TestLeavingHandsShardsOver", in: "../control", name: "a phase that is not counted", file: "control/table.go",
		old: "	t.phases[by.phase]++\n",
		new: "	if !mutant(NAME) {\n		t.phases[by.phase]++\n	}\n",
	},
	{
		test: "TestNodesLeaveWithAndWithoutLeases", in: "../control", name: "a lease that a shard keeps when it has stopped", file: "control/lease.go",
		old: "of.phase != gateLost {\n		g.release(s)\n",
		new: "of.phase != gateLost && !mutant(NAME) {\n		g.release(s)\n",
	},
	{
		test: "TestNodesLeaveWithAndWithoutLeases", in: "../control", name: "a shard that waits for its lease and cannot move", file: "control/host.go",
		old: "		case h.gates.waits(se.Shard):\n",
		new: "		case h.gates.waits(se.Shard) && mutant(NAME):\n			continue\n		case h.gates.waits(se.Shard):\n",
	},
	{
		test: "TestARunEndsWhenTheStandingEnds", name: "a run that goes on without standing", file: "runtime/job.go",
		old: "	return held && now.To",
		new: "	return (held || mutant(NAME)) && now.To",
	},
}

// Each of the defects makes the test fail whose seeds must find it.
func TestMutantsAreCaught(t *testing.T) { lookFor(t, mutants) }

// lookFor requires that each of some defects makes its test fail.
func lookFor(t *testing.T, mutants []mutant) {
	t.Helper()
	var all []simulationtest.Mutant
	for _, m := range mutants {
		looked := simulationtest.Mutant{
			Name: m.name, Tests: []string{m.test}, Package: m.in,
			Env: []string{"QUORATE_SEEDS=60", "QUORATE_SEED=", "QUORATE_FIRST_SEED=" + m.first},
		}
		if m.file != "" {
			looked.Edits = append([]simulationtest.Edit{{File: m.file, Old: m.old, New: m.new}}, m.also...)
		}
		all = append(all, looked)
	}
	simulationtest.RequireFound(t, "..", all)
}
