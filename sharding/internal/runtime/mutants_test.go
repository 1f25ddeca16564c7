// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package runtime

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects makes a test fail. Those that show in a cluster are looked for by the seeds of the simulation.
func TestMutantsAreCaught(t *testing.T) {
	const acks, asks, backlog, batch, deadlines, inbox, link = "acks.go", "asks.go", "backlog.go", "batch.go", "deadlines.go", "inbox.go", "link.go"
	const peers, queue, replies, class, send = "peers.go", "queue.go", "replies.go", "class.go", "send.go"
	const inTime, outlives, round, before, lane = "TestAsksEndOnceAndInTime", "TestNoDeadlineOutlivesTheNode", "TestARoundOfAcknowledgementsIsOneEnvelope", "TestARoundBeginsBeforeAWindowIsFull", "TestARoundWaitsForTheLane"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, test, file, old, to string }{
		{"what waits for a lane has no bound", "TestTheBacklogIsBounded", backlog, "		if w.bytes+len(f) > maxBacklogBytes {", "		if w.bytes+len(f) > maxBacklogBytes && !mutant(NAME) {"},
		{"what waits for a lane goes twice", "TestTheBacklogIsBounded", backlog, "	delete(b.nodes, to)\n", "	if !mutant(NAME) {\n		delete(b.nodes, to)\n	}\n"},
		{"what has no place is not counted", "TestWhatWaitsForALane", backlog, "	n.unsent(n.backlog.add(p.node, encode(nil)))\n", "	lost := n.backlog.add(p.node, encode(nil))\n	if !mutant(NAME) {\n		n.unsent(lost)\n	}\n"},
		{"what a lane has no room for again is lost", "TestWhatWaitsForALane", backlog, "			n.unsent(n.backlog.add(to, frames[i:]...))\n", "			if mutant(NAME) {\n				i = len(frames)\n			}\n			n.unsent(n.backlog.add(to, frames[i:]...))\n"},
		{"nobody is asked for room", lane, backlog, "	n.Ports.AwaitRoom(p.node)\n", "	if !mutant(NAME) {\n		n.Ports.AwaitRoom(p.node)\n	}\n"},
		{"nobody is asked for room again", "TestWhatWaitsForALane", backlog, "			n.Ports.AwaitRoom(to)\n", "			if !mutant(NAME) {\n				n.Ports.AwaitRoom(to)\n			}\n"},
		{"a lane that has ended is kept", "TestTheLaneOfAnswersIsLookedUpOnce", backlog, "		n.peers.forget(p.node) //", "		if !mutant(NAME) {\n			n.peers.forget(p.node)\n		} //"},

		{"an ask waits for those after it", inTime, asks, "	if sl.asks.bound(a) {\n", "	if none := sl.asks.limit == 0; sl.asks.bound(a) && (none || !mutant(NAME)) {\n"},
		{"one ask of a slot ends by itself", inTime, asks, "; next != 0 {\n", "; next != 0 && !mutant(NAME) {\n"},
		{"an ask that ends leaves its message", inTime, asks, "			a.Asker.End(sl.takeBack(a), cause)\n", "			a.Asker.End(!mutant(NAME) && sl.takeBack(a), cause)\n"},
		{"an ask is looked for at each deadline", "TestAsksThatEndOneAfterTheOtherEndTogether", asks, "		t.limit = max(t.limit, now.Add(deadlinesApart))\n", "		if !mutant(NAME) {\n			t.limit = max(t.limit, now.Add(deadlinesApart))\n		}\n"},
		{"early replies have no bound", "TestEarlyRepliesAreBounded", asks, "	if len(a.earlyReplies) < maxEarlyReplies {", "	if len(a.earlyReplies) < maxEarlyReplies || mutant(NAME) {"},
		{"a reply of a node that is no home counts", "TestEarlyRepliesAreBounded", asks, "	if c.Went(from, a.homes) {\n", "	if c.Went(from, a.homes) || mutant(NAME) {\n"},
		{"an early reply never counts", "TestEarlyRepliesAreBounded", asks, "		if i >= 0 {\n", "		if i >= 0 && !mutant(NAME) {\n"},
		{"the timer is that of the ask that came first", inTime, deadlines, "	if i == len(d.slots)-1 {\n", "	if i == len(d.slots)-1 && (!mutant(NAME) || i == 0) {\n"},
		{"a timer rings for a node that has ended", outlives, deadlines, "	if d.ended {\n", "	if d.ended && !mutant(NAME) {\n"},
		{"the timer of a node that ends goes on", outlives, deadlines, "		d.timer.Stop()\n", "		if !mutant(NAME) {\n			d.timer.Stop()\n		}\n"},

		{"acknowledgements of two kinds in one list", round, acks, "l.to == to && l.kind == kind {\n			return l\n		}\n	}\n	for", "l.to == to && (l.kind == kind || mutant(NAME)) {\n			return l\n		}\n	}\n	for"},
		{"lists for nodes that know none", round, acks, "n.peer(a.To).version.Load() < protocol.VersionFrames {", "n.peer(a.To).version.Load() < protocol.VersionFrames && !mutant(NAME) {"},
		{"acknowledgements are sent again", round, acks, "		l.acks.Reset()\n", "		if !mutant(NAME) {\n			l.acks.Reset()\n		}\n"},
		{"a cell is acknowledged once", before, acks, "		sl.due.Store(false)\n", "		sl.due.Store(mutant(NAME))\n"},
		{"rounds are asked for once", before, acks, "	n.acks.asked = false\n", "	n.acks.asked = mutant(NAME)\n"},
		{"rounds are asked for again and again", before, acks, "	if first {\n", "	if first || mutant(NAME) {\n"},
		{"no round begins before its time", before, acks, "	if n.acks.pressing.Load() &&", "	if !mutant(NAME) && n.acks.pressing.Load() &&"},
		{"a list is larger than a frame", "TestALongRoundHasSeveralEnvelopes", acks, "l.acks.Bytes() >= maxAckListBytes {", "l.acks.Bytes() >= maxAckListBytes && !mutant(NAME) {"},

		{"a batch that was refused has left", "TestABatchThatIsRefusedIsSentLater", link, "	case err != nil:\n		h.TakenBack()", "	case err != nil && mutant(NAME):\n		h.Placed(at.place)\n	case err != nil:\n		h.TakenBack()"},
		{"a batch that was refused has told of its streams", "TestABatchThatIsRefusedDefinesNothing", link, "		sl.link.encoder.Forget()\n", "		if !mutant(NAME) {\n			sl.link.encoder.Forget()\n		}\n"},
		{"nobody is asked for room for a batch", "TestABatchThatIsRefusedIsSentLater", batch, "	if errors.Is(err, transport.ErrFull) {", "	if errors.Is(err, transport.ErrFull) && !mutant(NAME) {"},
		{"what goes on while a batch is under way overtakes it", "TestNothingOvertakesABatch", link, "	if !l.collecting {\n", "	if !l.collecting || mutant(NAME) {\n"},
		{"what a batch has no room for is forgotten", "TestALargeMessageGoesBehindTheBatch", link, "		c.Outbound().Unsent(unsent)\n", "		if !mutant(NAME) {\n			c.Outbound().Unsent(unsent)\n		}\n"},
		{"batches for nodes that know none", "TestCellsShareAnEnvelope", batch, "p.version.Load() >= protocol.VersionFrames {", "(p.version.Load() >= protocol.VersionFrames || mutant(NAME)) {"},
		{"a batch of a former home has a place here", "TestABatchMeetsANewHome", link, "	here := sl.link.peer == p\n", "	here := sl.link.peer == p || mutant(NAME)\n"},
		{"numbers for nodes that know none", "TestStreamsAreSpelledOutOnceASession", batch, "	case p.version.Load() < protocol.VersionNumbers ||", "	case p.version.Load() < protocol.VersionNumbers && !mutant(NAME) ||"},
		{"numbers end", "TestNumbersBeginAgain", batch, "|| b.numbers.Exhausted():", "|| b.numbers.Exhausted() && !mutant(NAME):"},
		{"messages of unknown numbers are not counted", "TestAHostRefusesNumbersThatItDoesNotKnow", inbox, "	for range refused {\n", "	for range refused {\n		if mutant(NAME) {\n			break\n		}\n"},
		{"numbers of who is gone are kept", "TestNumbersOfWhoIsGoneAreForgotten", peers, "		if !members.IsMember(", "		if !mutant(NAME) && !members.IsMember("},
		{"the lane is asked once for all that wait", "TestManyCellsWaitForALane", peers, "	if len(p.line) >= p.calls*maxDrain {", "	if len(p.line) >= p.calls*maxDrain && (p.calls == 0 || !mutant(NAME)) {"},
		{"all that wait go at once", "TestManyCellsWaitForALane", peers, "	n := min(len(p.line), maxDrain)\n", "	n := min(len(p.line), maxDrain)\n	if mutant(NAME) {\n		n = len(p.line)\n	}\n"},

		{"a reply that a list has no room for is lost", "TestFullListsOfRepliesLeave", replies, "	return added\n", "	return added || mutant(NAME)\n"},
		{"a full list waits", "TestFullListsOfRepliesLeave", replies, "	if !added {\n", "	if !added && !mutant(NAME) {\n"},
		{"replies that could not be sent are not counted", "TestAListOfRepliesWaitsForTheLane", replies, "		p.of.unsent(list.Len())\n", "		if !mutant(NAME) {\n			p.of.unsent(list.Len())\n		}\n"},
		{"lists of replies for nodes that know none", "TestRepliesOfEarlierVersionsTravelAlone", replies, "	if p.version.Load() < protocol.VersionReplies {", "	if p.version.Load() < protocol.VersionReplies && !mutant(NAME) {"},

		{"workers that nobody needs stay", "TestWorkersEndThatNoJobNeeds", queue, "	return q.end(q.unused)\n", "	if mutant(NAME) {\n		return nil\n	}\n	return q.end(q.unused)\n"},
		{"all workers take their turn", "TestWorkersEndThatNoJobNeeds", queue, "	q.idle = append(q.idle, w)\n", "	if q.idle = append(q.idle, w); mutant(NAME) {\n		q.idle = append([]*Worker[W]{w}, q.idle[:len(q.idle)-1]...)\n	}\n"},
		{"workers wait in a queue that has ended", "TestWorkersEndThatNoJobNeeds", queue, "	if q.closed || len(q.idle)", "	if q.closed && !mutant(NAME) || len(q.idle)"},
		{"any number of workers wait", "TestWorkersThatWaitAreBounded", queue, "len(q.idle) >= maxIdleWorkers {", "len(q.idle) >= maxIdleWorkers && !mutant(NAME) {"},
		{"a worker that is gone keeps its place", "TestQueueLaws", queue, "func (q *Queue[J, W]) Leave(w *Worker[W]) {\n	q.release(w)\n", "func (q *Queue[J, W]) Leave(w *Worker[W]) {\n	if !mutant(NAME) {\n		q.release(w)\n	}\n"},
		{"a job that is put back goes first", "TestAJobThatIsPutBackGoesLast", queue, "	c.push(j)\n	return c.pop()\n", "	if mutant(NAME) {\n		return j\n	}\n	c.push(j)\n	return c.pop()\n"},
		{"additional places stay", "TestAKeptWorkerIsReplaced", class, "max(0, c.limit-c.least)*3/4 }", "max(0, c.limit-c.least)*map[bool]int{false: 3, true: 4}[mutant(NAME)]/4 }"},
		{"the memory of a burst stays", "TestABurstOfJobsLeavesNoMemory", class, "	if len(r.ring) > minJobRing &&", "	if !mutant(NAME) && len(r.ring) > minJobRing &&"},
		{"an ask that was not accepted stays in the table", "TestWhoFindsNoRoomLeavesNothingBehind", send, "	default:\n		delete(sl.asks.open, a.Correlation)\n", "	case mutant(NAME):\n	default:\n		delete(sl.asks.open, a.Correlation)\n"},
		{"a sender that gave up is told of room", "TestWhoFindsNoRoomLeavesNothingBehind", send, "	delete(sl.waiters, m)\n", "	if !mutant(NAME) {\n		delete(sl.waiters, m)\n	}\n"},
	} {
		all = append(all, simulationtest.Mutant{Name: m.name, Package: ".", Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}})
	}
	simulationtest.RequireFound(t, ".", all)
}
