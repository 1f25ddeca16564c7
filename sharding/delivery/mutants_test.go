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
	const courier, destination, inbox, producer = "internal/courier/courier.go", "internal/courier/destination.go", "delivery/inbox.go", "delivery/producer.go"
	const seeds = "TestDeliveryUnderFaults"
	var all []simulationtest.Mutant
	for _, m := range []struct {
		name, test string
		edit       simulationtest.Edit
	}{
		{"an answer confirms the whole frame", seeds, simulationtest.Edit{
			File: destination, Old: "			return i + 1, nil\n", New: "			if mutant(NAME) {\n				return d.size, nil\n			}\n			return i + 1, nil\n",
		}},
		{"a number beyond the frame confirms it", seeds, simulationtest.Edit{
			File: destination, Old: "		if l.Number == a.Confirmed {\n", New: "		if l.Number == a.Confirmed || mutant(NAME) && i == d.size-1 && l.Number < a.Confirmed {\n",
		}},
		{"the session of an answer means nothing", seeds, simulationtest.Edit{
			File: destination, Old: "	if a.Session != d.letters[0].Session {\n", New: "	if mutant(NAME) && a.Session != d.letters[0].Session {\n		return d.size, nil\n	}\n	if a.Session != d.letters[0].Session {\n",
		}},
		{"a frame is as large as it may be, whatever the entity allows", seeds, simulationtest.Edit{
			File: destination, Old: "	bytes := 0\n", New: "	bytes := 0\n	if mutant(NAME) {\n		d.credit = cfg.Frame\n	}\n",
		}},
		{"a frame has letters of two sessions", seeds, simulationtest.Edit{
			File: destination, Old: "l.Session != f.Session ||", New: "l.Session != f.Session && !mutant(NAME) ||",
		}},
		{"what goes on while a frame is under way", seeds, simulationtest.Edit{
			File: courier, Old: "	if d.stage == idle && len(d.letters) > 0 {\n", New: "	if (d.stage == idle || mutant(NAME) && d.stage == underWay) && len(d.letters) > 0 {\n",
		}},
		{"a frame without an answer is given up", seeds, simulationtest.Edit{
			File: courier, Old: "	d.credit = min(d.credit, 1)\n", New: "	d.credit = min(d.credit, 1)\n	if mutant(NAME) && len(d.letters) > 1 {\n		c.hold(-1, -d.letters[0].Bytes)\n		d.letters = d.letters[1:]\n	}\n",
		}},
		{"an entity that was paused is never served again", seeds, simulationtest.Edit{
			File: courier, Old: "	heap.Push(&c.paused, d)\n", New: "	if !mutant(NAME) || d.pauses < 6 {\n		heap.Push(&c.paused, d)\n	}\n",
		}},
		{"there is always room", seeds, simulationtest.Edit{
			File: courier, Old: "	case c.letters >= c.cfg.Letters,\n", New: "	case mutant(NAME):\n	case c.letters >= c.cfg.Letters,\n",
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
			File: inbox, Old: "			if err := handle(i.message); err != nil {\n				return err\n			}\n			in.note",
			New: "			if err := handle(i.message); err != nil {\n				if mutant(NAME) {\n					in.note(f.session, i.number)\n				}\n				return err\n			}\n			in.note",
		}},
		{"a message is confirmed before the queue has removed it", "TestAQueueOutlivesItsProducer", simulationtest.Edit{
			File: producer, Old: "	if err := p.cfg.Queue.Remove(ctx, ids); err != nil {\n", New: "	if err := p.cfg.Queue.Remove(ctx, ids); err != nil && !mutant(NAME) {\n",
		}},
		{"the room of a message that the queue refused is kept", "TestAQueueOutlivesItsProducer", simulationtest.Edit{
			File: producer, Old: "		p.courier.Cancel(id, len(m.encoded))\n", New: "		if !mutant(NAME) {\n			p.courier.Cancel(id, len(m.encoded))\n		}\n",
		}},
		{"nobody who waits for room is told", "TestAFullProducer", simulationtest.Edit{
			File: producer, Old: "	p.freed()\n	p.rouse()\n", New: "	if !mutant(NAME) {\n		p.freed()\n	}\n	p.rouse()\n",
		}},
		{"the end of the node is not noticed", "TestTheEndOfAProducer", simulationtest.Edit{
			File: producer, Old: "	if errors.Is(err, sharding.ErrClosed) {\n", New: "	if errors.Is(err, sharding.ErrClosed) && !mutant(NAME) {\n",
		}},
	} {
		of := ""
		if m.test == seeds {
			of = "../internal/deliverysim"
		}
		all = append(all, simulationtest.Mutant{
			Name: m.name, Package: of, Tests: []string{m.test}, Edits: []simulationtest.Edit{m.edit},
			Env: []string{"QUORATE_SEEDS=60", "QUORATE_SEED=", "QUORATE_FIRST_SEED="},
		})
	}
	all = append(all, simulationtest.Mutant{
		Name: "pauses grow without end", Package: "../internal/courier", Tests: []string{"TestPauses"},
		Edits: []simulationtest.Edit{{
			File: courier, Old: "		pause = min(pause, c.cfg.RetryMin<<d.pauses)\n",
			New: "		if pause = min(pause, c.cfg.RetryMin<<d.pauses); mutant(NAME) {\n			pause = c.cfg.RetryMin << d.pauses\n		}\n",
		}},
	})
	simulationtest.RequireFound(t, "..", all)
}
