// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package passivation

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects makes a policy another one than its model, or one of the rules one by one fail.
func TestMutantsAreCaught(t *testing.T) {
	const order, recency, segmented, frequency = "order.go", "recency.go", "segmented.go", "frequency.go"
	const window, sketch, climber = "window.go", "sketch.go", "climber.go"
	const models, busy, changed, hold = "TestPoliciesAreTheirModels", "TestWhoWasBusyComesBack", "TestAChangedLimitChangesTheParts", "TestOrdersHoldTogether"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, test, file, old, to string }{
		{"those who were busy come back in the wrong order", busy, order, "	for s := o.lists[o.aside].last; s != 0; s = o.lists[o.aside].last {\n", "	for s := o.lists[o.aside].last; s != 0; s = o.lists[o.aside].last {\n		if mutant(NAME) {\n			s = o.lists[o.aside].first\n		}\n"},
		{"a victim is named again while it is aside", hold, order, "		o.push(o.aside, s)\n", "		if mutant(NAME) {\n			o.policy.back(s)\n			return s\n		}\n		o.push(o.aside, s)\n"},
		{"a changed limit of which the policy does not hear", changed, order, "	o.cfg.Limit = limit\n	o.policy.resize(o.cfg.Limit)\n", "	if o.cfg.Limit = limit; mutant(NAME) {\n		return\n	}\n	o.policy.resize(o.cfg.Limit)\n"},
		{"what has just come goes first of the most recent", models, recency, "	if l.n > 1 &&", "	if !mutant(NAME) && l.n > 1 &&"},
		{"what is used twice goes before what is used once", models, segmented, "	if s := p.o.lists[p.probation].last; s != 0 {\n", "	if s := p.o.lists[p.protected].last; s != 0 && mutant(NAME) {\n		return s\n	}\n	if s := p.o.lists[p.probation].last; s != 0 {\n"},
		{"who is protected stays so under a lower limit", changed, order, "	if o.segmented != nil {\n", "	if o.segmented != nil && !mutant(NAME) {\n"},
		{"any number are protected", models, segmented, "	if p.o.lists[p.protected].n > p.most {\n", "	if p.o.lists[p.protected].n > p.most && !mutant(NAME) {\n"},
		{"what was used last is protected no more", models, segmented, "	p.o.lead(p.probation, p.o.lists[p.protected].last)\n", "	if mutant(NAME) {\n			p.o.lead(p.probation, p.o.lists[p.protected].first)\n			return\n		}\n		p.o.lead(p.probation, p.o.lists[p.protected].last)\n"},
		{"nobody is left on probation", models, segmented, "	p.most = min(share(limit, p.o.cfg.Protected), limit-1)\n", "	if p.most = min(share(limit, p.o.cfg.Protected), limit-1); mutant(NAME) {\n		p.most = share(limit, p.o.cfg.Protected)\n	}\n"},
		{"who was busy is protected", busy, segmented, "func (p *segmentedPolicy) back(s Handle) { p.o.push(p.probation, s) }", "func (p *segmentedPolicy) back(s Handle) {\n	if mutant(NAME) {\n		p.o.push(p.protected, s)\n		return\n	}\n	p.o.push(p.probation, s)\n}"},
		{"old fame is never outlived", models, frequency, "p.o.cfg.Aging { // A victim", "p.o.cfg.Aging && !mutant(NAME) { // A victim"},
		{"whoever is named and stays is outlived", "TestOnlyWhoGoesIsOutlived", frequency, "	if from == p.o.aside &&", "	if (from == p.o.aside || mutant(NAME)) &&"},
		{"what has just come goes first of the least frequent", models, frequency, "	if s == p.newest &&", "	if !mutant(NAME) && s == p.newest &&"},
		{"of those of one frequency the one that was used last goes", models, frequency, "	s := l.last\n", "	s := l.last\n	if mutant(NAME) {\n		s = l.first\n	}\n"},
		{"not to be stopped is a use", busy, frequency, "func (p *frequencyPolicy) back(s Handle) { p.place(s, 0) }", "func (p *frequencyPolicy) back(s Handle) {\n	if mutant(NAME) {\n		p.o.entries[s].count++\n	}\n	p.place(s, 0)\n}"},
		{"a frequency that nobody has is kept", hold, frequency, "	if l.n > 0 || l.count == 0 {", "	if l.n > 0 || l.count == 0 || mutant(NAME) {"},
		{"at a draw the one from the window stays", models, window, "	case p.sketch.frequency(p.o.entries[candidate].key) <= p.sketch.frequency(p.o.entries[victim].key):\n", "	case p.sketch.frequency(p.o.entries[candidate].key) < p.sketch.frequency(p.o.entries[victim].key),\n		p.sketch.frequency(p.o.entries[candidate].key) == p.sketch.frequency(p.o.entries[victim].key) && !mutant(NAME):\n"},
		{"a window that is not full contends", models, window, "	case candidate == 0 || p.o.lists[p.list].n <= p.most:\n", "	case candidate == 0 || p.o.lists[p.list].n <= p.most && !mutant(NAME):\n"},
		{"whoever starts is not counted", models, window, "	p.sketch.add(p.o.entries[s].key)\n	p.observe(false)\n", "	if !mutant(NAME) {\n		p.sketch.add(p.o.entries[s].key)\n	}\n	p.observe(false)\n"},
		{"who was busy leaves the window", busy, window, "	if p.o.entries[s].window {\n		p.o.push(p.list, s)\n", "	if p.o.entries[s].window && !mutant(NAME) {\n		p.o.push(p.list, s)\n"},
		{"who has left the window comes back with a use", models, window, "	p.o.entries[s].window = false\n", "	p.o.entries[s].window = mutant(NAME)\n"},
		{"where no window is wanted there is one", models, window, "	if window > 0 {\n", "	if window > 0 || mutant(NAME) {\n"},
		{"a share that has changed divides nothing", models, window, "p.climb.observe(hit, p.o.cfg.Limit) {\n", "p.climb.observe(hit, p.o.cfg.Limit) && !mutant(NAME) {\n"},
		{"a changed limit brings the first share of the window back", "TestTheWindowFollowsTheHitRate", window, "	if p.climb != nil {\n		return p.climb.share\n", "	if p.climb != nil && !mutant(NAME) {\n		return p.climb.share\n"},
		{"nothing fades", models, sketch, "	for k.debt += len(k.words); k.debt >= k.period;", "	for k.debt += len(k.words); k.debt >= k.period && !mutant(NAME);"},
		{"what is halved runs over into its neighbour", models, sketch, "	k.words[k.hand] = k.words[k.hand] >> 1 & halfMask\n", "	if k.words[k.hand] >>= 1; !mutant(NAME) {\n			k.words[k.hand] &= halfMask\n		}\n"},
		{"a counter that is full runs over into its neighbour", models, sketch, "countMask < maxCount {\n", "countMask < maxCount || mutant(NAME) {\n"},
		{"the estimate is that of whom a key shares a counter with", models, sketch, "		least = min(least, k.words[word]>>shift&countMask)\n", "		if least = min(least, k.words[word]>>shift&countMask); mutant(NAME) {\n			return least\n		}\n"},
		{"a sketch that grows has forgotten everything", "TestTheSketchGrowsWithItsEstimates", sketch, "		k.words = append(k.words, k.words...)\n", "		if mutant(NAME) {\n			clear(k.words)\n		}\n		k.words = append(k.words, k.words...)\n"},
		{"a sketch fades by the limit that there was at first", "TestTheSketchFadesByThePresentLimit", sketch, "	k.period = sketchFades * limit\n", "	if !mutant(NAME) || k.period == 0 {\n		k.period = sketchFades * limit\n	}\n"},
		{"the share goes on while the hit rate falls", models, climber, "c.step < 0 && change < -noise {\n", "c.step < 0 && change < -noise && !mutant(NAME) {\n"},
		{"a rise by chance makes the window larger", models, climber, "	if c.step > 0 && change < noise ||", "	if mutant(NAME) {\n		noise = 0\n	}\n	if c.step > 0 && change < noise ||"},
		{"a window that has just become smaller is judged at once", models, climber, "	if hit && c.uses > climbSettle*limit {\n", "	if hit && (c.uses > climbSettle*limit || mutant(NAME)) {\n"},
		{"small steps stay small whatever changes", models, climber, "change >= climbRestart {\n", "change >= climbRestart && !mutant(NAME) {\n"},
		{"the window takes everything", "TestTheWindowFollowsTheHitRate", climber, "max(maxWindow, c.least))\n", "max(maxWindow, c.least))\n	if mutant(NAME) {\n		c.share = min(max(before+c.step, c.least), 1)\n	}\n"},
		{"a changed limit goes on with the sample of the former one", "TestAChangedLimitBeginsASample", climber, "func (c *climber) begin() { c.hits, c.uses, c.rate = 0, 0, -1 }", "func (c *climber) begin() {\n	if !mutant(NAME) {\n		c.hits, c.uses, c.rate = 0, 0, -1\n	}\n}"},
		{"the first rate under a new limit is compared with that under the former one", "TestAChangedLimitBeginsASample", climber, "	first := c.rate < 0\n", "	first := c.rate < 0 && !mutant(NAME)\n"},
	} {
		all = append(all, simulationtest.Mutant{Name: m.name, Package: ".", Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}})
	}
	simulationtest.RequireFound(t, ".", all)
}
