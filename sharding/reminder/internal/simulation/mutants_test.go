// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package simulation_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects of a bucket makes a seed fail.
func TestMutantsAreCaught(t *testing.T) {
	const fires, pages, page, reminder = "bucket_deliveries.go", "bucket_pages.go", "page.go", "reminder.go"
	var all []simulationtest.Mutant
	for _, m := range []struct {
		name  string
		edits []simulationtest.Edit
	}{
		{"a reminder fires before its time", []simulationtest.Edit{
			{File: fires, Old: "		if e == nil || e.Due > wall {\n", New: "		if e == nil || e.Due > wall && !(mutant(NAME) && e.Due < wall+50) {\n"},
		}},
		{"a repetition does not look at the wall clock", []simulationtest.Edit{
			{File: fires, Old: "if e.Due > wall { // The wall", New: "if e.Due > wall && !mutant(NAME) { // The wall"},
		}},
		{"a change is acknowledged before it is saved", []simulationtest.Edit{
			{File: pages, Old: "	p.coming += size\n", New: "	p.coming += size\n	if mutant(NAME) {\n		out.Answers = append(out.Answers, Answer{ID: a.ID, Code: OK})\n	}\n"},
		}},
		{"a reminder that is being canceled fires again", []simulationtest.Edit{
			{File: pages, Old: "	case opRemove:\n		b.drop(e)\n", New: "	case opRemove:\n		if mutant(NAME) && e != nil && c.of == nil {\n			b.insert(p, e.Reminder, e.size)\n			break\n		}\n		b.drop(e)\n"},
		}},
		{"a cancel that finds nothing is not saved", []simulationtest.Edit{
			{File: pages, Old: "	b.replace(e)\n	p.asked++\n", New: "	if mutant(NAME) && !found {\n		out.Answers = append(out.Answers, Answer{ID: a.ID, Code: OK})\n		return\n	}\n	b.replace(e)\n	p.asked++\n"},
			{File: pages, Old: "func (b *Bucket) cancel(p *page, a Ask) {", New: "func (b *Bucket) cancel(p *page, a Ask, out *Outbox) {"},
			{File: pages, Old: "		b.cancel(p, a)\n", New: "		b.cancel(p, a, out)\n"},
		}},
		{"what was delivered stays in the store", []simulationtest.Edit{
			{File: fires, Old: "		p.queued = append(p.queued, change{op: opRemove, key: e.Key, of: e})\n", New: "		if mutant(NAME) {\n			b.settling--\n			b.drop(e)\n			break\n		}\n		p.queued = append(p.queued, change{op: opRemove, key: e.Key, of: e})\n"},
		}},
		{"a delivery that was replaced ends what took its place", []simulationtest.Edit{
			{File: fires, Old: "	case e.replaced:\n", New: "	case e.replaced && !mutant(NAME):\n"},
		}},
		{"what was not acknowledged is forgotten", []simulationtest.Edit{
			{File: fires, Old: "		b.retries.put(e)\n", New: "		if !mutant(NAME) {\n			b.retries.put(e)\n		}\n"},
		}},
		{"a page that could not be read is not read again", []simulationtest.Edit{
			{File: "bucket.go", Old: "p.reopenAt <= now.Mono:", New: "p.reopenAt <= now.Mono && !(mutant(NAME) && p.failed > 0):"},
		}},
		{"a save that failed changes memory", []simulationtest.Edit{
			{File: pages, Old: "	if in.Err != nil {\n		b.closePage(now, p, in.Err, out)\n		return\n	}\n	p.saving = false\n", New: "	if in.Err != nil && (!mutant(NAME) || in.Fenced) {\n		b.closePage(now, p, in.Err, out)\n		return\n	}\n	p.saving = false\n"},
		}},
		{"a snapshot is taken for the changes that wait", []simulationtest.Edit{
			{File: page, Old: "		p.snapshot = true\n", New: "		p.snapshot = true\n		if mutant(NAME) {\n			p.snapshot, p.inFlight, p.queued, p.tail.Events, p.tail.Bytes = false, p.queued, nil, 0, 0\n		}\n"},
			{File: page, Old: "	return p.tail.Due(p.bytes)\n", New: "	return (mutant(NAME) || mutant(\"events are read without their snapshot\")) && p.tail.Events >= 5 || p.tail.Due(p.bytes)\n"},
		}},
		{"events are read without their snapshot", []simulationtest.Edit{
			{File: page, Old: "	if err := eventlog.Fold(r,", New: "	if mutant(NAME) && len(r.Events) > 0 {\n		r.Snapshot = store.Value{}\n	}\n	if err := eventlog.Fold(r,"},
		}},
		{"the next time is counted from the delivery", []simulationtest.Edit{
			{File: reminder, Old: "	last := r.Due + int64(missed)*r.Every\n", New: "	last := r.Due + int64(missed)*r.Every\n	if mutant(NAME) {\n		last = max(wall, r.Due)\n	}\n"},
		}},
		{"occurrences that have passed come one by one", []simulationtest.Edit{
			{File: reminder, Old: "	missed = uint64(max(0, wall-r.Due) / r.Every)\n", New: "	missed = uint64(max(0, wall-r.Due) / r.Every)\n	if mutant(NAME) {\n		return missed, r.Due\n	}\n"},
		}},
		{"more than the bound is under way", []simulationtest.Edit{
			{File: fires, Old: "len(b.flights)+b.settling < b.cfg.InFlight }", New: "mutant(NAME) || len(b.flights)+b.settling < b.cfg.InFlight }"},
		}},
		{"a bucket that closes begins deliveries", []simulationtest.Edit{
			{File: fires, Old: "	if b.closing {\n", New: "	if b.closing && !mutant(NAME) {\n"},
		}},
		{"places of deliveries that ended are not free again", []simulationtest.Edit{
			{File: fires, Old: "	delete(b.flights, in.ID)\n", New: "	if !mutant(NAME) {\n		delete(b.flights, in.ID)\n	}\n"},
		}},
		{"acknowledged deliveries whose page fails keep their places", []simulationtest.Edit{
			{File: pages, Old: "	b.settling -= countSettling(p.inFlight) + countSettling(p.queued)\n", New: "	if !mutant(NAME) {\n		b.settling -= countSettling(p.inFlight) + countSettling(p.queued)\n	}\n"},
		}},
	} {
		all = append(all, simulationtest.Mutant{
			Name: m.name, Edits: m.edits, Tests: []string{"TestRemindersUnderFaults"},
			Env: []string{"QUORATE_SEEDS=200", "QUORATE_SEED=", "QUORATE_FIRST_SEED="},
		})
	}
	simulationtest.RequireFound(t, "../buckets", all)
}
