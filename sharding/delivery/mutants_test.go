// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package delivery_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects of the two machines makes a seed fail, and each of the driver a test.
func TestMutantsAreCaught(t *testing.T) {
	const outbox, queue, inbox, producer = "internal/producer/producer.go", "internal/producer/queue.go", "inbox.go", "producer.go"
	const driver = "driver.go"
	const seeds = "TestDeliveryUnderFaults"
	var all []simulationtest.Mutant
	for _, m := range []struct {
		name, test string
		edit       simulationtest.Edit
	}{
		{"an answer confirms the whole frame", seeds, simulationtest.Edit{
			File: queue, Old: "			return i + 1, nil\n", New: "			if mutant(NAME) {\n				return q.size, nil\n			}\n			return i + 1, nil\n",
		}},
		{"a number beyond the frame confirms it", seeds, simulationtest.Edit{
			File: queue, Old: "		if m.Number == a.Confirmed {\n", New: "		if m.Number == a.Confirmed || mutant(NAME) && i == q.size-1 && m.Number < a.Confirmed {\n",
		}},
		{"the session of an answer means nothing", seeds, simulationtest.Edit{
			File: queue, Old: "	if a.Session != q.messages[0].Session {\n", New: "	if mutant(NAME) && a.Session != q.messages[0].Session {\n		return q.size, nil\n	}\n	if a.Session != q.messages[0].Session {\n",
		}},
		{"a frame is as large as it may be, whatever the entity allows", seeds, simulationtest.Edit{
			File: queue, Old: "	bytes := 0\n", New: "	bytes := 0\n	if mutant(NAME) {\n		q.credit = cfg.Frame\n	}\n",
		}},
		{"a frame has messages of two sessions", seeds, simulationtest.Edit{
			File: queue, Old: "m.Session != f.Session ||", New: "m.Session != f.Session && !mutant(NAME) ||",
		}},
		{"what goes on while a frame is under way", seeds, simulationtest.Edit{
			File: outbox, Old: "	if q.stage == idle && len(q.messages) > 0 {\n", New: "	if (q.stage == idle || mutant(NAME) && q.stage == underWay) && len(q.messages) > 0 {\n",
		}},
		{"a frame without an answer is given up", seeds, simulationtest.Edit{
			File: outbox, Old: "	q.credit = min(q.credit, 1)\n", New: "	q.credit = min(q.credit, 1)\n	if mutant(NAME) && len(q.messages) > 1 {\n		o.hold(-1, -q.messages[0].Bytes)\n		q.messages = q.messages[1:]\n	}\n",
		}},
		{"an entity that was paused is never served again", seeds, simulationtest.Edit{
			File: outbox, Old: "	heap.Push(&o.paused, q)\n", New: "	if !mutant(NAME) || q.pauses < 6 {\n		heap.Push(&o.paused, q)\n	}\n",
		}},
		{"there is always room", seeds, simulationtest.Edit{
			File: outbox, Old: "	case o.messages >= o.cfg.Messages,\n", New: "	case mutant(NAME):\n	case o.messages >= o.cfg.Messages,\n",
		}},
		{"nothing is remembered", seeds, simulationtest.Edit{
			File: inbox, Old: "	in.Seen = append(in.Seen, Seen{s, number})\n", New: "	if !mutant(NAME) {\n		in.Seen = append(in.Seen, Seen{s, number})\n	}\n",
		}},
		{"any other number is new", seeds, simulationtest.Edit{
			File: inbox, Old: "		if i.number > last {\n", New: "		if i.number > last || mutant(NAME) && i.number < last {\n",
		}},
		{"sessions are not told apart", seeds, simulationtest.Edit{
			File: inbox, Old: "return seen.Session == s })", New: "return seen.Session == s || mutant(NAME) })",
		}},
		{"what is beyond the window is acknowledged", seeds, simulationtest.Edit{
			File: inbox, Old: "				break\n", New: "				if mutant(NAME) {\n					confirmed = i.number\n				}\n				break\n",
		}},
		{"a message counts as handled though it failed", "TestAMessageThatFails", simulationtest.Edit{
			File: inbox, Old: "				if _, refused := errors.AsType[*sharding.RefusalError](err); refused {\n",
			New: "				if mutant(NAME) {\n					in.note(f.session, i.number)\n				}\n				if _, refused := errors.AsType[*sharding.RefusalError](err); refused {\n",
		}},
		{"a message is confirmed before the queue has removed it", "TestAQueueOutlivesItsProducer", simulationtest.Edit{
			File: driver, Old: "	if err := d.cfg.Queue.Remove(ctx, ids); err != nil {\n", New: "	if err := d.cfg.Queue.Remove(ctx, ids); err != nil && !mutant(NAME) {\n",
		}},
		{"the room of a message that the queue refused is kept", "TestAQueueOutlivesItsProducer", simulationtest.Edit{
			File: producer, Old: "		p.outbox.Cancel(id, len(m.encoded))\n", New: "		if !mutant(NAME) {\n			p.outbox.Cancel(id, len(m.encoded))\n		}\n",
		}},
		{"nobody who waits for room is told", "TestAFullProducer", simulationtest.Edit{
			File: producer, Old: "	p.freed()\n	p.rouse()\n", New: "	if !mutant(NAME) {\n		p.freed()\n	}\n	p.rouse()\n",
		}},
		{"the end of the node is not noticed", "TestAProducerEndsWithItsNode", simulationtest.Edit{
			File: driver, Old: "		case <-d.region.Done(): //", New: "		case <-func() <-chan struct{} {\n			if mutant(NAME) {\n				return nil\n			}\n			return d.region.Done()\n		}(): //",
		}},
	} {
		of := ""
		if m.test == seeds {
			of = "internal/simulation"
		}
		all = append(all, simulationtest.Mutant{
			Name: m.name, Package: of, Tests: []string{m.test}, Edits: []simulationtest.Edit{m.edit},
			Env: []string{"QUORATE_SEEDS=60", "QUORATE_SEED=", "QUORATE_FIRST_SEED="},
		})
	}
	all = append(all, workpoolMutants()...)
	all = append(all, simulationtest.Mutant{
		Name: "pauses grow without end", Package: "internal/retry", Tests: []string{"TestPauses"},
		Edits: []simulationtest.Edit{{
			File: "internal/retry/retry.go", Old: "pause < most-pause; failures",
			New: "(mutant(NAME) || pause < most/2); failures",
		}},
	})
	simulationtest.RequireFound(t, ".", all)
}

// workpoolMutants are defects of the machine of a pool, which its own world finds.
func workpoolMutants() (all []simulationtest.Mutant) {
	const file = "internal/workpool/workpool.go"
	for _, m := range []struct{ name, test, old, to string }{
		{"an answer confirms the whole frame of jobs", "TestJobsAreDoneUnderFaults", "			return i + 1, nil\n", "			if mutant(NAME) {\n				return len(w.frame), nil\n			}\n			return i + 1, nil\n"},
		{"the jobs of a worker that does not answer are dropped", "TestJobsAreDoneUnderFaults", "	p.queue = slices.Insert(p.queue, 0, w.frame[n:]...)\n", "	if !mutant(NAME) || n > 0 {\n		p.queue = slices.Insert(p.queue, 0, w.frame[n:]...)\n	}\n"},
		{"what is not confirmed stays with its worker too", "TestJobsAreDoneUnderFaults", "	w.frame, w.busy = nil, false\n", "	if !mutant(NAME) {\n		w.frame = nil\n	}\n	w.busy = false\n"},
		{"a job keeps its number when it is sent again", "TestJobsAreDoneUnderFaults", "		w.frame[i].Number = p.number\n", "		if !mutant(NAME) || w.frame[i].Number == 0 {\n			w.frame[i].Number = p.number\n		}\n"},
		{"a worker is given more than it takes", "TestJobsAreDoneUnderFaults", "	n := min(w.credit, p.cfg.Frame,", "	if mutant(NAME) {\n		w.credit = p.cfg.Frame\n	}\n	n := min(w.credit, p.cfg.Frame,"},
		{"a worker has two frames", "TestJobsAreDoneUnderFaults", "		if w.busy || w.gone || w.due > now {\n", "		if w.busy && !mutant(NAME) || w.gone || w.due > now {\n"},
		{"who is no worker any more is given jobs", "TestJobsAreDoneUnderFaults", "		w.gone = !slices.Contains(ids, w.id)\n", "		w.gone = !slices.Contains(ids, w.id) && !mutant(NAME)\n"},
		{"there is always room for a job", "TestJobsAreSpread", "	if p.held >= p.cfg.Jobs ||", "	if p.held >= p.cfg.Jobs && !mutant(NAME) ||"},
		{"the first worker gets everything", "TestJobsAreSpread", "(len(p.queue)+free-1)/free)\n", "(len(p.queue)+free-1)/free)\n	if mutant(NAME) {\n		n = min(w.credit, p.cfg.Frame, len(p.queue))\n	}\n"},
		{"a worker that failed is asked again at once", "TestTheJobsOfALostWorkerGoToAnother", "	w.due = now + retry", "	if mutant(NAME) {\n		w.pauses++\n		return\n	}\n	w.due = now + retry"},
	} {
		all = append(all, simulationtest.Mutant{
			Name: m.name, Package: "internal/workpool", Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: file, Old: m.old, New: m.to}},
		})
	}
	return all
}
