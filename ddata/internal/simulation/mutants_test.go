// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package simulation_test

import (
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Defects that the tests must find: first the table of the defects, then the test that has
// each of them looked for, package simulationtest says how.

// mutant is a defect that is put into the replicas, and the test that must find it.
type mutant struct {
	name  string
	test  string
	in    string // The package of the test, beside this one; empty: this one.
	first string // The first seed to run; empty: 0.
	edits []edit

	panics bool // The code panics: nothing else shows the defect.
}

// edit is one place of a defect: old is replaced by new in a file, which is named from the
// package protocol. In new the defect is there when mutant(NAME) is true, where NAME stands
// for the name of the mutant.
type edit struct{ file, old, new string }

var mutants = []mutant{
	{
		name: "a read keeps what others hold from its node", in: "..", test: "TestAConfirmedWriteOfASlowClockIsRead", edits: []edit{{
			"ops.go", "	if v := k.views.bucket(o.bucket); k.holds() && v.has(k.self) {\n		if outcome", "	if v := k.views.bucket(o.bucket); k.holds() && v.has(k.self) && !mutant(NAME) {\n		if outcome",
		}},
	},
	{
		name: "a read of own writes takes the first answer", in: "protocol", test: "TestAReadOfOwnWritesAsksTheHomeThatTookTheLastOne", edits: []edit{{
			"ops.go", "		if awaits || !o.level.reads", "		if awaits && !mutant(NAME) || !o.level.reads",
		}},
	},
	{
		name: "a group goes on before the removed are fenced", in: "protocol", test: "TestAGroupInMemoryGoesOnWithoutItsMajority", edits: []edit{{
			"majorities.go", " && l.m.fenced[gossip.UID(id)]", " && (l.m.fenced[gossip.UID(id)] || mutant(NAME))",
		}},
	},
	{
		name: "who leaves has no claim to go on", in: "protocol", test: "TestAGroupGoesOnWhenTheLastOneLeaves", edits: []edit{{
			"majorities.go", "if of == nil || !l.present(r.ID) {", "if of == nil || !l.present(r.ID) || mutant(NAME) && !of.Status.IsUp() {",
		}},
	},
	{
		name: "a group goes on without what others hold", in: "protocol", test: "TestAGroupGoesOnWithAllThatAreLeft", edits: []edit{{
			"majorities.go", " l.holds() && !l.gathered(left) {", " l.holds() && !l.gathered(left) && !mutant(NAME) {",
		}},
	},
	{
		name: "a group goes on without the word of all", in: "protocol", test: "TestAGroupGoesOnWithAllThatAreLeft", edits: []edit{{
			"majorities.go", "Replica{l.self, \"\"})...), true}", "Replica{l.self, \"\"})...), !mutant(NAME)}",
		}},
	},
	{
		name: "a bucket begins anew whose homes may come back", in: "protocol", test: "TestBucketsWaitForWhoMayComeBack", edits: []edit{{
			"majorities.go", "	return some && all\n", "	return some && (all || mutant(NAME))\n",
		}},
	},
	{
		name: "who is behind keeps its copy when the group has gone on", in: "protocol", test: "TestWhoIsBehindDropsItsCopyWhenTheGroupHasGoneOn", edits: []edit{{
			"majorities.go", " && r.Gen == before.Gen+1", " && (r.Gen == before.Gen+1 || mutant(NAME))",
		}},
	},
	{
		name: "a replica is settled before the change is sealed", in: "protocol", test: "TestAReplicaIsSettledWhenTheChangeIsSealed", edits: []edit{{
			"route.go", "r.Settled = r.Counts && k.sealed;", "r.Settled = r.Counts && (k.sealed || mutant(NAME));",
		}},
	},
	{
		name: "who may not host has a vote", in: "protocol", test: "TestWhoMayNotHostDecidesNothing", edits: []edit{{
			"change.go", "(c.reg == nil || c.m.mayHost())", "(c.reg == nil || c.m.mayHost() || mutant(NAME))",
		}},
	},
	{
		name: "who may not host leads", test: "TestChaos", edits: []edit{{
			"proposer.go", "	if !l.m.mayHost() || l.m.state.EndsTogether() {", "	if !l.m.mayHost() && !mutant(NAME) || l.m.state.EndsTogether() {",
		}, {
			"change.go", " || c.attempt == nil || !c.votes() {", " || c.attempt == nil || !c.votes() && !mutant(NAME) {",
		}},
	},
	{
		name: "who may not host completes majorities", in: "protocol", test: "TestMajoritiesAreOfThoseThatMayHost", edits: []edit{{
			"ops.go", " may && in(id) && k.hosts(id) ", " may && in(id) && (k.hosts(id) || mutant(NAME)) ",
		}},
	},
	{
		name: "a new replica that is gone is waited for", in: "protocol", test: "TestADeathInAJointPhaseReplacesTheNewSet", edits: []edit{{
			"proposer.go", "r.ID != l.self && l.peers[r.ID] == nil })", "r.ID != l.self && l.peers[r.ID] == nil && !mutant(NAME) })",
		}},
	},
	{
		name: "who comes further is not waited for", in: "protocol", test: "TestANewcomerThatIsSilentHoldsNothingUp", edits: []edit{{
			"proposer.go", "|| !l.catching()):", "|| !l.catching() || mutant(NAME)):",
		}},
	},
	{
		name: "a read returns before it has written back", in: "protocol", test: "TestAReadWritesBackBeforeItReturns", edits: []edit{{
			"ops.go", "	return agreed || o.level.writes(", "	return agreed || mutant(NAME) && o.read || o.level.writes(",
		}},
	},
	{
		name: "a late answer counts for a read that has begun anew", in: "protocol", test: "TestALateAnswerCountsForTheReadThatAsked", edits: []edit{{
			"ops.go", "	case b.Same && b.Hash != o.base:\n", "	case b.Same && b.Hash != o.base && !mutant(NAME):\n",
		}},
	},
	{
		name: "operations are looked at while a register is taken over", in: "protocol", test: "TestNothingIsSaidOrDoneBetweenTwoGenerations", edits: []edit{{
			"group.go", "	g.take(r)\n	g.storeCheck", "	if g.take(r); mutant(NAME) || mutant(\"a message says too early that a replica has caught up\") {\n		g.ops.recount()\n	}\n	g.storeCheck",
		}},
	},
	{
		name: "a message says too early that a replica has caught up", test: "TestChaos", first: "89",
	},
	{
		name: "a leaving node creates a register", in: "protocol", test: "TestALeavingNodeCreatesNoRegister", edits: []edit{{
			"proposer.go", "		case l.m.leaving():", "		case l.m.leaving() && !mutant(NAME):",
		}},
	},
	{
		name: "a late message brings a former node back", in: "protocol", test: "TestAReplicaStaysThatOfItsNode", edits: []edit{{
			"received.go", "	if !g.startedAgain(p) {", "	if !g.startedAgain(p) || mutant(NAME) {",
		}},
	},
	{
		name: "a replica that nobody is is not asked again", in: "protocol", test: "TestAReplicaStaysThatOfItsNode", edits: []edit{{
			"group.go", "		if g.peers[p.id] == nil {", "		if g.peers[p.id] == nil && !mutant(NAME) {",
		}},
	},
	{
		name: "a silent replica is told by its generation alone", in: "protocol", test: "TestASilentReplicaIsToldOfTheLineage", edits: []edit{{
			"known.go", "	return p.turn < turn || ", "	return p.turn < turn && !mutant(NAME) || mutant(NAME) && p.gen < k.reg.Gen || ",
		}},
	},
	{
		name: "a refused write waits for its deadline", in: "protocol", test: "TestAWriteEndsWhenTooManyHaveRefused", edits: []edit{{
			"ops.go", "	case len(o.refusers) > 0 && ", "	case !mutant(NAME) && len(o.refusers) > 0 && ",
		}},
	},
	{
		name: "what a read has found is stamped when it is sent", test: "TestChaos", edits: []edit{{
			"ops.go", "	case o.holds(s.known):\n		return true\n", "	case o.holds(s.known) || mutant(NAME) && o.read:\n		return true\n",
		}},
	},
	{
		name: "a change that was dropped is made again", test: "TestSeedsThatWereRed", edits: []edit{{
			"ops.go", "	case !o.makes() && !o.deletes():\n", "	case !o.makes() && !o.deletes() || mutant(NAME):\n",
		}},
	},
	{
		name: "a change is judged by what stood beside it", in: "protocol", test: "TestASweepThatRetiresAnOriginEndsNoWrite", edits: []edit{{
			"ops.go", "	if !ok || !o.makes() {\n", "	if !ok || !o.makes() || mutant(NAME) {\n",
		}},
	},
	{
		name: "what was kept aside comes back over a sweep", in: "protocol", test: "TestWhatIsKeptAsideComesBackOverNoSweep", edits: []edit{{
			"ops.go", " && o.stamp >= reg.fence()", " && (o.stamp >= reg.fence() || mutant(NAME))",
		}},
	},
	{
		name: "what was kept aside is never merged", in: "protocol", test: "TestWhatIsKeptAsideIsMergedAfterCatchingUp", edits: []edit{{
			"group.go", "	g.ops.transferEnded()\n", "	if !mutant(NAME) {\n		g.ops.transferEnded()\n	}\n",
		}},
	},
	{
		name: "a delete that was asked for twice is made again", in: "protocol", test: "TestADeleteThatTwoHomesWereAskedForMayBeDone", edits: []edit{{
			"remote.go", " && !e.commit && e.asks > 1 {", " && !e.commit && e.asks > 1 && !mutant(NAME) {",
		}},
	},
	{
		name: "no stamp", test: "TestChaos", edits: []edit{{
			"ops.go", "	if !k.holds() || b.Stamp < k.reg.fence() {", "	if !k.holds() || b.Stamp < k.reg.fence() && !mutant(NAME) {",
		}, {
			"propagation.go", "	if !s.holds() || b.Stamp < s.reg.fence() {", "	if !s.holds() || b.Stamp < s.reg.fence() && !mutant(NAME) {",
		}},
	},
	{
		name: "a replica in no set keeps its copy", test: "TestChaos", edits: []edit{{
			"group.go", "	case !g.holds() || other:\n", "	case (!g.holds() || other) && mutant(NAME):\n	case !g.holds() || other:\n",
		}},
	},
	{
		name: "the leader decides alone", test: "TestChaos", edits: []edit{{
			"group.go", "	g.post(g.change.propose(", "	if mutant(NAME) {\n		g.adopt(&p.v, g.reg == nil)\n		return\n	}\n	g.post(g.change.propose(",
		}},
	},
	{
		name: "any value is proposed again", in: "protocol", test: "TestAValueThatMayBeDecidedIsProposedAgain", edits: []edit{{
			"change.go", "b.Value != nil && a.best.Less(b.Accepted) {", "b.Value != nil && a.best.Less(b.Accepted) && !mutant(NAME) {",
		}},
	},
	{
		name: "a promise is not kept", in: "protocol", test: "TestAnAcceptorKeepsItsPromise", edits: []edit{{
			"change.go", "	if b.Ballot.Less(c.promised) {", "	if b.Ballot.Less(c.promised) && !mutant(NAME) {",
		}},
	},
	{
		name: "a commit is asked for once", in: "protocol", test: "TestALostCommitIsAskedForAgain", edits: []edit{{
			"remote.go", "		if !asked {\n", "		if !asked || mutant(NAME) {\n",
		}},
	},
	{
		name: "an answer to a commit is not repeated", in: "protocol", test: "TestALostCommitIsAskedForAgain", edits: []edit{{
			"remote.go", "		if answer != nil {\n", "		if answer != nil && !mutant(NAME) {\n",
		}},
	},
	{
		name: "a commit that comes twice is made again", in: "protocol", test: "TestADoubledCommitIsMadeOnce", edits: []edit{{
			"remote.go", "answer, known := r.commits[of]; known {", "answer, known := r.commits[of]; known && !mutant(NAME) {",
		}},
	},
	{
		name: "a forgotten answer is a conflict", in: "protocol", test: "TestAForgottenAnswerIsNoConflict", edits: []edit{{
			"remote.go", "	if b.Again {\n", "	if b.Again && !mutant(NAME) {\n",
		}},
	},
	{
		name: "an attempt asks once", in: "protocol", test: "TestAnAttemptAsksAgain", edits: []edit{{
			"change.go", "	if c.m.now.Mono.Sub(a.asked) >= ", "	if !mutant(NAME) && c.m.now.Mono.Sub(a.asked) >= ",
		}},
	},
	{
		name: "a ballot is promised to a node that has forgotten its value", in: "protocol", test: "TestAPromiseIsGivenAgainToItsNode", edits: []edit{{
			"change.go", "|| node != c.asker:", "|| node != c.asker && !mutant(NAME):",
		}},
	},
	{
		name: "patience does not grow", in: "protocol", test: "TestSlowStoresDecide", edits: []edit{{
			"change.go", "i < c.stood && ", "i < c.stood && !mutant(NAME) && ",
		}},
	},
	{
		name: "a gap passed over", in: "protocol", test: "TestAGapIsAnswered", edits: []edit{{
			"propagation.go", "		case outcome == table.Gap:\n", "		case outcome == table.Gap && !mutant(NAME):\n",
		}},
	},
	{
		name: "a delta taken out of order", test: "TestChaos", edits: []edit{{
			"../table/image.go", "	case c.From > holds:\n", "	case c.From > holds && !mutant(NAME):\n",
		}},
	},
	{
		name: "sums not kept up where a local update is made", test: "TestChaos", edits: []edit{{
			"../table/update.go", "	d.bucket.addTerm(d.origin,", "	if mutant(NAME) {\n		c.value, c.versions, c.size, c.guesses = next.value, next.versions, sizeOf(next), next.guesses\n		t.touch(c)\n		return\n	}\n	d.bucket.addTerm(d.origin,",
		}},
	},
	{
		name: "sums not kept up where an entry goes", test: "TestChaos", edits: []edit{{
			"../table/table.go", "	b.add(keyHash, &before, -1)\n", "	if next.state != 0 || !mutant(NAME) {\n		b.add(keyHash, &before, -1)\n	}\n",
		}},
	},
	{
		name: "a sweep by those who have answered", in: "protocol", test: "TestASweepNeedsEverybodysWord", // The text of the next mutant contains this one.
	},
	{
		name: "a sweep by a majority", in: "protocol", test: "TestASweepNeedsEverybodysWord", edits: []edit{{
			"sweep.go", "	for _, r := range s.reg.Current {\n		theirs, ok := s.answers[r.ID]\n		if !ok || theirs.Veto {\n",
			"	some := mutant(NAME) && s.reg.Current.Majority(func(id ReplicaID) bool { _, ok := s.answers[id]; return ok })\n" +
				"	for _, r := range s.reg.Current {\n		theirs, ok := s.answers[r.ID]\n" +
				"		if !ok && (some || mutant(\"a sweep by those who have answered\")) {\n			s.answers[r.ID] = own\n			continue\n		}\n" +
				"		if !ok || theirs.Veto && !mutant(\"a veto is not heard\") {\n",
		}},
	},
	{
		name: "a veto is not heard", in: "protocol", test: "TestAnOriginIsRetiredWhenAllHaveSeenTheSame", // The text of the mutant above contains this one.
	},
	{
		name: "a sweep of other tombstones", in: "protocol", test: "TestASweepNeedsEverybodysWord", edits: []edit{{
			"sweep.go", "return x.Tombs == y.Tombs && x.Origins == y.Origins }", "return (x.Tombs == y.Tombs || mutant(NAME)) && (x.Origins == y.Origins || mutant(\"an origin retired before all have seen the same of it\")) }",
		}},
	},
	{
		name: "an origin retired before all have seen the same of it", in: "protocol", test: "TestAnOriginIsRetiredWhenAllHaveSeenTheSame", // The text of the mutant above contains this one.
	},
	{
		name: "a sweep of other tombstones of a bucket", in: "protocol", test: "TestASweepOfBucketsNeedsTheWordOfTheirHomes", edits: []edit{{
			"sweep.go", "bool { return x == y })", "bool { return x == y || mutant(NAME) })",
		}},
	},
	{
		name: "what was not marked is swept", in: "protocol", test: "TestWhoHasNotMarkedWhatFellHoldsNothing", edits: []edit{{
			"sweep.go", "	return s.mark.Gen+1 == r.Swept && ", "	return mutant(NAME) || s.mark.Gen+1 == r.Swept && ",
		}},
	},
	{
		name: "a replica that has not caught up takes part in a sweep", in: "protocol", test: "TestWhoHasNotCaughtUpHasNoSayInASweep", edits: []edit{{
			"sweep.go", "	if b.Gen == s.gen() && s.caught && ", "	if b.Gen == s.gen() && (s.caught || mutant(NAME)) && ",
		}},
	},
	{
		name: "a joining replica counts for a write", test: "TestChaos", edits: []edit{{
			"levels.go", "	case !met(v.current):\n", "	case mutant(NAME) && phase == PhaseJoint:\n		return v.union(in) >= l.enough(len(v.current))\n	case !met(v.current):\n",
		}},
	},
	{
		name: "a joining replica counts for a read", test: "TestChaos", edits: []edit{{
			"levels.go", "		return v.current.Wins(in)\n", "		return v.current.Wins(in) || mutant(NAME) && v.union(in) >= l.enough(len(v.current))\n",
		}},
	},
	{
		name: "an answer leaves before it is written", in: "protocol", test: "TestNothingIsSaidBeforeItIsWritten", edits: []edit{{
			"disk.go", "	case d.dirty():\n", "	case mutant(NAME) && isAnswer(e):\n		d.m.out.Add(e)\n	case d.dirty():\n",
		}, {
			"disk.go", "// hold keeps an effect", "// isAnswer reports whether an effect says that something is stored.\nfunc isAnswer(e machine.Effect) bool {\n	s, ok := e.(machine.Send)\n	if !ok {\n		return false\n	}\n" +
				"	env, _ := s.Message.(Envelope)\n	switch env.Body.(type) {\n	case PutTaken, DeltasTaken:\n		return true\n	}\n	return false\n}\n\n// hold keeps an effect",
		}},
	},
	{
		name: "a delete confirmed by an earlier tombstone", in: "protocol", test: "TestADeleteIsNotConfirmedByAnEarlierTombstone", edits: []edit{{
			"ops.go", "		case o.marked:\n", "		case o.marked && !mutant(NAME):\n",
		}},
	},
	{
		name: "a vote leaves before it is written", in: "protocol", test: "TestNothingIsSaidBeforeItIsWritten", edits: []edit{{
			"change.go", "		c.disk.metaChanged()\n	case ", "		if !mutant(NAME) {\n			c.disk.metaChanged()\n		}\n	case ",
		}, {
			"change.go", "		c.disk.metaChanged()\n	}\n	return Accepted{", "		if !mutant(NAME) {\n			c.disk.metaChanged()\n		}\n	}\n	return Accepted{",
		}},
	},
	{
		name: "a whole copy by what its replica is afterwards", in: "protocol", test: "TestACopyIsWholeByWhatItsReplicaWas", edits: []edit{{
			"transfer.go", "	if x.whole {\n", "	if x.whole || mutant(NAME) && counts(x.peer.caught, b.gen()) {\n",
		}},
	},
	{
		name: "no seal", in: "protocol", test: "TestNoOrderOfEventsLosesAWrite", edits: []edit{{
			"rules.go", "	return phase != PhaseEnded || ", "	return mutant(NAME) || phase != PhaseEnded || ",
		}},
	},
	{
		name: "no fence", in: "protocol", test: "TestNoOrderOfEventsLosesAWrite", edits: []edit{{
			"rules.go", "{ return given == present }", "{ return given == present || mutant(NAME) }",
		}},
	},
	{
		name: "ended before a majority has caught up", in: "protocol", test: "TestNoOrderOfEventsLosesAWrite", edits: []edit{{
			"rules.go", "v.next.Majority(caught)", "(mutant(NAME) || v.next.Majority(caught))",
		}},
	},
	{
		name: "whoever was there has caught up", in: "protocol", test: "TestNoOrderOfEventsLosesAWrite", edits: []edit{{
			"rules.go", "return next && r.Phase != PhaseJoint }", "return next && (r.Phase != PhaseJoint || mutant(NAME)) }",
		}},
	},
	{
		name: "what was acknowledged before the copy was dropped", in: "protocol", test: "TestNoOrderOfEventsLosesAWrite", edits: []edit{{
			"rules.go", "{ return home && next }", "{ return home && next || mutant(NAME) }",
		}},
	},
	{
		name: "whoever has missed a generation has caught up", in: "protocol", test: "TestWhoHasMissedAGenerationCatchesUp", edits: []edit{{
			"group.go", "r.stays(fresh || ", "r.stays(mutant(NAME) || fresh || ",
		}},
	},
	{
		name: "lost homes hold up all buckets", test: "TestHomes", edits: []edit{{
			"held.go", "	return !l.cfg.Durable || ", "	return !mutant(NAME) && !l.cfg.Durable || !mutant(NAME) && ",
		}},
	},
	{
		name: "a bucket without homes is asked at others", test: "TestHomes", edits: []edit{{
			"held.go", "	default:\n		return view{current: h.Homes,", "	case mutant(NAME):\n		return view{current: p.homes(bucket, r.Current), held: true}\n	default:\n		return view{current: h.Homes,",
		}},
	},
	{
		name: "buckets without homes stay so", test: "TestHomes", edits: []edit{{
			"held.go", "	h.Moves = begins && ", "	h.Moves = begins && !mutant(NAME) && ",
		}},
	},
	{
		name: "who is no home is given entries", in: "protocol", test: "TestOnlyHomesAreGivenWhatTheyLack", edits: []edit{{
			"propagation.go", "ok && k.home(p.id, key) {", "ok && (k.home(p.id, key) || mutant(NAME)) {",
		}},
	},
	{
		name: "an entry is given as often as it is named", in: "protocol", test: "TestTheLargestMessagesAreBoundedSteps", edits: []edit{{
			"sender.go", "		return again\n", "		return again && !mutant(NAME)\n",
		}},
	},
	{
		name: "a bucket is pulled as often as it is named", in: "protocol", test: "TestTheLargestMessagesAreBoundedSteps", edits: []edit{{
			"passes.go", "		if named[of.Bucket] {\n", "		if named[of.Bucket] && !mutant(NAME) {\n",
		}},
	},
	{
		name: "a bucket is gone through for each entry that is wanted", in: "protocol", test: "TestTheLargestMessagesAreBoundedSteps", edits: []edit{{
			"passes.go", "	slices.Sort(buckets)\n", "	if !mutant(NAME) {\n		slices.Sort(buckets)\n	}\n",
		}},
	},
	{
		name: "who is no home takes entries in", in: "protocol", test: "TestOnlyHomesTakeIn", edits: []edit{{
			"ops.go", "			if !k.home(k.self, e.Key) {", "			if !k.home(k.self, e.Key) && !mutant(NAME) {",
		}},
	},
	{
		name: "a replica of two nodes", in: "protocol", test: "TestAReplicaIsOfOneNode", edits: []edit{{
			"received.go", "return g.claimed(p.node, e.From) }", "return g.claimed(p.node, e.From) && !mutant(NAME) }",
		}},
	},
	{
		name: "a whole copy of other buckets", in: "protocol", test: "TestNoOrderOfEventsLosesAWrite", edits: []edit{{
			"rules.go", "	return v.each(func(v *view) bool { return v.held || !v.has(self) ||", "	all := v\n	return v.each(func(v *view) bool {\n		if mutant(NAME) && !all.each(func(o *view) bool { return o.union(whole) == 0 }) {\n			return true\n		}\n		return v.held || !v.has(self) ||",
		}, {
			"rules.go", "v.union(whole) > 0 })\n", "v.union(whole) > 0\n	})\n",
		}},
	},
	{
		name: "only the old set is asked to write", in: "protocol", test: "TestNoOrderOfEventsLosesAWrite", edits: []edit{{
			"levels.go", "	case phase == PhaseJoint:\n		return met(v.next)\n", "	case phase == PhaseJoint && !mutant(NAME):\n		return met(v.next)\n",
		}},
	},
	{
		name: "strangers vote", in: "protocol", test: "TestOnlyAcceptorsDecide", edits: []edit{{
			"change.go", "|| c.attempt.accepting || !c.attempt.acceptors.Has(id) {", "|| c.attempt.accepting || !c.attempt.acceptors.Has(id) && !mutant(NAME) {",
		}},
	},
	{
		name: "strangers confirm", in: "protocol", test: "TestOnlyThoseWhoCountConfirm", edits: []edit{{
			"ops.go", "	case o == nil || b.Stale || !o.asks(s.known, p):\n", "	case o == nil || b.Stale || !o.asks(s.known, p) && !mutant(NAME):\n",
		}},
	},
	{
		name: "strangers answer", in: "protocol", test: "TestAReadWritesBackBeforeItReturns", edits: []edit{{
			"ops.go", "|| b.Away || !o.asks(s.known, p) {", "|| b.Away || !o.asks(s.known, p) && !mutant(NAME) {",
		}},
	},
	{
		name: "members speak for others", in: "protocol", test: "TestAMemberDoesNotSpeakForAnother", edits: []edit{{
			"config.go", "	return id != 0 && (g.Durable ||", "	return id != 0 && (mutant(NAME) || g.Durable ||",
		}},
	},
	{
		name: "absurd registers taken over", in: "protocol", test: "TestAbsurdRegistersAreRefused", edits: []edit{{
			"valid.go", "	return !r.Lineage.IsZero() &&", "	return mutant(NAME) || !r.Lineage.IsZero() &&",
		}},
	},
	{
		name: "nonsense handled", in: "protocol", test: "TestNonsenseIsHarmless", panics: true, edits: []edit{{
			"valid.go", "		if of >= groupsOfBuckets ||", "		if mutant(NAME) {\n			continue\n		}\n		if of >= groupsOfBuckets ||",
		}},
	},
	{
		name: "created by those who have answered", in: "protocol", test: "TestCreationNeedsEverybodysWord", edits: []edit{{
			"proposer.go", "			if p == nil || p.id == 0 || p.gen != 0 {\n				return nil\n", "			if p == nil || p.id == 0 || p.gen != 0 {\n				if mutant(NAME) {\n					continue\n				}\n				return nil\n",
		}},
	},
	{
		name: "answers of an older generation count", test: "TestChaos", edits: []edit{{
			"ops.go", "	o.stage, o.gen = asking, k.gen()\n	clear(o.answers)\n", "	o.stage, o.gen = asking, k.gen()\n	if !mutant(NAME) {\n		clear(o.answers)\n	}\n",
		}},
	},
	{
		name: "a read is not begun anew in another generation", test: "TestChaos", edits: []edit{{
			"ops.go", "		if o.stage == asking || o.read && (", "		if o.stage == asking && !reset && mutant(NAME) {\n			o.gen = reg.Gen\n			s.finishIfComplete(o)\n			continue\n		}\n		if o.stage == asking || o.read && (",
		}},
	},
	{
		name: "an older store is not recognised", test: "TestOlder", first: "50", edits: []edit{{
			"storecheck.go", "		beyond = of.Before\n	}\n", "		beyond = of.Before\n	}\n	if mutant(NAME) {\n		beyond = 0\n	}\n",
		}},
	},
	{
		name: "the numbers of a copied disk judge the first one", test: "TestCopied", edits: []edit{{
			"storecheck.go", "	if e.Apart && e.Written == e.Loaded {", "	if e.Apart && e.Written == e.Loaded && !mutant(NAME) {",
		}},
	},
	{
		name: "of two that claim one disk the newcomer is heard", test: "TestCopied", edits: []edit{{
			"stores.go", "	if p == nil || p.node == by || ", "	if p == nil || mutant(NAME) || p.node == by || ",
		}},
	},
	{
		name: "a replica counts before others have compared", test: "TestOlder", first: "35", edits: []edit{{
			"known.go", "bool { return k.storeCheck.participation != takesPart }", "bool {\n	return k.storeCheck.participation != takesPart && !(mutant(NAME) && k.storeCheck.participation == apart && !k.storeCheck.unclean)\n}",
		}},
	},
	{
		name: "batches are numbered while nobody depends on them", in: "protocol", test: "TestWhoIsOlderBeginsAnew", edits: []edit{{
			"disk.go", "	if d.counts() && of.compared() {", "	if d.counts() && (of.compared() || mutant(NAME)) {",
		}},
	},
	{
		name: "what others have shown is not written", in: "protocol", test: "TestWhatWasShownIsWritten", edits: []edit{{
			"stores.go", "		if s.news {\n", "		if s.news && !mutant(NAME) {\n",
		}},
	},
	{
		name: "an older copy is put aside without the others", in: "protocol", test: "TestNothingIsPutAsideWithoutTheOthers", edits: []edit{{
			"stores.go", "	if !k.holds() {\n		return true\n	}\n	in := ", "	if !k.holds() || mutant(NAME) {\n		return true\n	}\n	in := ",
		}},
	},
	{
		name: "a replica that does not count proposes for an operator", in: "protocol", test: "TestWhoIsOlderAcceptsNoLossOfBuckets", edits: []edit{{
			"proposer.go", "		if g.apart() {\n", "		if g.apart() && !mutant(NAME) {\n",
		}},
	},
	{
		name: "two replicas with older stores answer each other", in: "protocol", test: "TestTwoOlderStoresDoNotAnswerEachOther", edits: []edit{{
			"received.go", "				if b, told := e.Body.(OlderStore); told {", "				if b, told := e.Body.(OlderStore); told && !mutant(NAME) {",
		}},
	},
	{
		name: "a late message brings a former replica back", in: "protocol", test: "TestALateMessageBringsNoFormerReplicaBack", edits: []edit{{
			"received.go", "return p.former(e) }", "return p.former(e) && !mutant(NAME) }",
		}},
	},
	{
		name: "who is in no set says so once", in: "protocol", test: "TestWhoIsInNoSetTellsTheLeaderAgain", edits: []edit{{
			"sender.go", "|| s.member() && !s.reg.In(s.self)):", "|| s.member() && !s.reg.In(s.self) && !mutant(NAME)):",
		}},
	},
	{
		name: "a replica with an older store is there", in: "protocol", test: "TestAnOlderReplicaIsNoHomeThatIsBack", edits: []edit{{
			"held.go", "	return (id == k.self || k.peers[id] != nil) && !k.isOlder(id)\n", "	return (id == k.self || k.peers[id] != nil) && (!k.isOlder(id) || mutant(NAME))\n",
		}},
	},
	{
		name: "the word about a former replica counts", in: "protocol", test: "TestWhoIsOlderBeginsAnew", edits: []edit{{
			"stores.go", "b.Of != g.self || ", "b.Of != g.self && !mutant(NAME) || ",
		}},
	},
	{
		name: "an unsure replica answers reads", test: "TestBehind", edits: []edit{{
			"received.go", "				return g.apart() && demands(e.Body) && ", "				_, asks := e.Body.(Ask)\n				return g.apart() && demands(e.Body) && !(mutant(NAME) && g.storeCheck.unclean && asks) && ",
		}},
	},
	{
		name: "an unsure replica counts itself", test: "TestBehind", first: "36", edits: []edit{{
			"ops.go", "	if k.holds() && k.views.bucket(o.bucket).has(k.self) && !k.apart() {", "	if k.holds() && k.views.bucket(o.bucket).has(k.self) && (!k.apart() || mutant(NAME) && k.storeCheck.unclean) {",
		}},
	},
	{
		name: "an unsure replica takes part in sweeps", in: "protocol", test: "TestOneWhoIsUnsureIsLikeOneWhoIsNotThere", edits: []edit{{
			"received.go", "compares(e.Body))\n", "(compares(e.Body) || mutant(NAME) && isSweep(e.Body)))\n",
		}, {
			"sender.go", "// laneOf returns", "func isSweep(body any) bool {\n	_, ok := body.(Sweep)\n	return ok\n}\n\n// laneOf returns",
		}, {
			"received.go", "!(e.Unsure && g.storeCheck.participation == unsure", "!((e.Unsure || mutant(\"an unsure replica is a source\") || mutant(\"an unsure replica takes part in sweeps\")) && g.storeCheck.participation == unsure",
		}},
	},
	{
		name: "an unsure replica is a source", in: "protocol", test: "TestOneWhoIsUnsureIsLikeOneWhoIsNotThere", // The text of the mutant above contains this one.
	},
	{
		name: "a replica is sure again one copy too early", in: "protocol", test: "TestAReplicaIsSureAgain", edits: []edit{{
			"storecheck.go", "	return 2*n > len(s)-1\n", "	return 2*n > len(s)-1 || mutant(NAME) && 2*(n+1) > len(s)-1\n",
		}},
	},
	{
		name: "the copy of an unsure replica counts as a sure one", in: "protocol", test: "TestAMajorityThatIsUnsure", edits: []edit{{
			"passes.go", "e.Restarts >= s.storeCheck.restarts, !e.Unsure", "e.Restarts >= s.storeCheck.restarts, !e.Unsure || mutant(NAME)",
		}},
	},
	{
		name: "the store does not say that it is behind", in: "protocol", test: "TestAcknowledgementsRunAhead", edits: []edit{{
			"stores.go", "bool { return k.storeCheck.unclean || k.cfg.WriteBehind.Interval > 0 }", "bool {\n	return !mutant(NAME) && (k.storeCheck.unclean || k.cfg.WriteBehind.Interval > 0)\n}",
		}},
	},
	{
		name: "a number is heard that is not in the store", test: "TestBehind", edits: []edit{{
			"disk.go", "		e.Written = d.kept\n", "		if !mutant(NAME) {\n			e.Written = d.kept\n		}\n",
		}},
	},
	{
		name: "acknowledgements of former nodes count", in: "protocol", test: "TestAcknowledgementsOfFormerNodesDoNotCount", edits: []edit{{
			"received.go", "return e.Restarts < g.storeCheck.restarts && ", "return e.Restarts < g.storeCheck.restarts && !mutant(NAME) && ",
		}},
	},
	{
		name: "what was acknowledged before an unclean start counts", in: "protocol", test: "TestAcknowledgementsOfFormerNodesDoNotCount", edits: []edit{{
			"received.go", "	g.ops.restartsRaised()\n", "	if !mutant(NAME) {\n		g.ops.restartsRaised()\n	}\n",
		}},
	},
	{
		name: "the number of unclean starts is not written", in: "protocol", test: "TestAcknowledgementsOfFormerNodesDoNotCount", edits: []edit{{
			"received.go", "		g.storeCheck.restarts = e.Restarts\n		g.disk.metaChanged()\n", "		if g.storeCheck.restarts = e.Restarts; !mutant(NAME) {\n			g.disk.metaChanged()\n		}\n",
		}},
	},
	{
		name: "an unclean start has no number", in: "protocol", test: "TestOneWhoIsUnsureIsLikeOneWhoIsNotThere", edits: []edit{{
			"group.go", "	if g.storeCheck.unclean {\n		g.m.counts.Unclean++\n", "	if g.storeCheck.unclean && !mutant(NAME) {\n		g.m.counts.Unclean++\n",
		}},
	},
	{
		name: "copies count of those who have not heard of the start", in: "protocol", test: "TestAReplicaIsSureAgain", edits: []edit{{
			"passes.go", "of.fenced, of.sure = e.Restarts >= s.storeCheck.restarts,", "of.fenced, of.sure = e.Restarts >= s.storeCheck.restarts || mutant(NAME),",
		}},
	},
	{
		name: "an end in order makes an unsure replica sure", in: "protocol", test: "TestTheRestIsWritten", edits: []edit{{
			"sender.go", "	m.Behind = s.storeCheck.unclean\n", "	m.Behind = s.storeCheck.unclean && !mutant(NAME)\n",
		}},
	},
	{
		name: "those who are unsure one after the other are a majority", in: "protocol", test: "TestAMajorityThatIsUnsure", edits: []edit{{
			"storecheck.go", "	return took && !t.sure && t.began > at &&", "	return took && !t.sure && (t.began > at || mutant(NAME)) &&",
		}, {
			"storecheck.go", "	return took && (t.sure || t.began > at)", "	return took && (t.sure || t.began > at || mutant(NAME))",
		}},
	},
	{
		name: "the word for a sweep runs ahead of its entries", in: "protocol", test: "TestAcknowledgementsRunAhead", edits: []edit{{
			"disk.go", "	case SweepReply, Promise, Accepted:\n		return false\n", "	case SweepReply, Promise, Accepted:\n		if !mutant(NAME) {\n			return false\n		}\n",
		}},
	},
}

// Each of the defects makes the test fail that must find it.
func TestMutantsAreCaught(t *testing.T) {
	var all []simulationtest.Mutant
	for _, m := range mutants {
		looked := simulationtest.Mutant{
			Name: m.name, Tests: []string{m.test}, Panics: m.panics,
			Env: []string{"QUORATE_SEEDS=60", "QUORATE_SEED=", "QUORATE_FIRST_SEED=" + m.first},
		}
		if m.in != "" {
			looked.Package = filepath.Join("..", m.in)
		}
		for _, e := range m.edits {
			looked.Edits = append(looked.Edits, simulationtest.Edit{File: e.file, Old: e.old, New: e.new})
		}
		all = append(all, looked)
	}
	simulationtest.RequireFound(t, "../protocol", all)
}
