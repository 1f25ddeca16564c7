// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
	"time"

	lookup "github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Contact points are looked up ([contactSearch.lookUp]) and asked like seed nodes, by the
// messages of joining. A contact point that stays silent is dialled ([contactSearch.round]),
// which shows the reason, or that the node there calls itself by another address. In each round
// the decider is asked too, if there is one. Before this node stands for a cluster among the
// contact points, [contactSearch.allows] says whether it may.

// Ports of the calls about contact points.
const (
	// CallLookup is the port of the calls that look contact points up. The request is a
	// discovery.Query, the answer lookup.Targets.
	CallLookup = "discovery"
	// CallJoinDecider is the port of the calls that decide what the node does next. The
	// request is bootstrap.Observations, the answer a bootstrap.Decision.
	CallJoinDecider = "join-decider"
)

const (
	// deciderTimeout is how long the decider may take to answer.
	deciderTimeout = 5 * time.Second

	// lookupAsMember is the least time between two lookups of a member, which needs contact
	// points only to find other clusters of its name.
	lookupAsMember = time.Minute

	// lookupForAsker is the least time between two lookups of a member because of nodes that
	// ask it.
	lookupForAsker = 5 * time.Second

	// maxDials bounds how many silent contact points are dialled at a time.
	maxDials = 16
)

// Bootstrap says how contact points are found.
type Bootstrap struct {
	Config bootstrap.Config

	// Limit is the longest time for which the answer of a lookup is waited for.
	Limit time.Duration

	// Asked says that calls to the port [CallJoinDecider] decide what to do, in place of the
	// built-in rule.
	Asked bool
}

// contactSearch looks contact points up, and dials those that do not answer. Without a [Bootstrap]
// it does nothing.
type contactSearch struct {
	*core

	inquiry *inquiry
	search  *bootstrap.Search
	limit   time.Duration

	// runs says that the node was told to look contact points up.
	runs bool

	// lookup and question number the calls under way to [CallLookup] and [CallJoinDecider],
	// one to each; zero: none.
	lookup, question machine.CallID

	// decides says that there is a decider. asked are the observations of the last question to the
	// decider, which was asked at askedAt, and verdict is the decider's last decision.
	asked   bootstrap.Observations
	askedAt machine.Instant
	verdict bootstrap.Decision
	decides bool

	// dialling holds the contact points that are being dialled, each with the time at which
	// it may be dialled again; next is the index of the silent contact point with which the
	// next round begins.
	dialling map[gossip.Address]machine.Instant
	next     int

	// soonest is the earliest moment at which a member looks up again because a node asked it.
	soonest machine.Instant

	// told is what was missing to form a cluster when that was last recorded as a decision.
	told string
}

// SearchProgress is published after each lookup and each round of questions to contact points: what
// the node has found, and what it waits for.
type SearchProgress struct {
	// Line says in one sentence what the node waits for.
	Line string
	// Observations is what the node knows of the contact points.
	Observations bootstrap.Observations
	// Fault is why the last lookup failed, empty if that lookup answered.
	Fault string
	// LookedUp says that a lookup has just ended, with an answer or a fault.
	LookedUp bool
}

func newContactSearch(c *core, d *inquiry) *contactSearch {
	b := &contactSearch{core: c, inquiry: d, dialling: map[gossip.Address]machine.Instant{}}
	if with := c.deps.Bootstrap; with != nil {
		b.search = bootstrap.NewSearch(with.Config, targetAt(c.self.Address))
		b.limit, b.decides = with.Limit, with.Asked
		d.required = with.Config.RequiredContactPoints
	}
	return b
}

func targetAt(a gossip.Address) lookup.Target { return lookup.Target{Host: a.Host, Port: a.Port} }

func addressAt(t lookup.Target) gossip.Address { return gossip.Address{Host: t.Host, Port: t.Port} }

// begin begins to look contact points up. It returns false if there is no [Bootstrap].
func (b *contactSearch) begin() bool {
	if b.search == nil {
		b.refuse(b.self, "Discover", RefusedMalformed, "nothing was given that finds contact points")
		return false
	}
	b.runs, b.inquiry.found = true, true
	b.lookUp()
	return true
}

// addresses returns the addresses of the contact points to ask.
func (b *contactSearch) addresses() []gossip.Address {
	var all []gossip.Address
	for _, t := range b.search.Points() {
		all = append(all, addressAt(t))
	}
	return all
}

// lookUp calls for a lookup, unless one is under way.
func (b *contactSearch) lookUp() {
	if !b.runs || b.lookup != 0 {
		return
	}
	b.lookup = b.nextCall()
	b.out.Add(machine.Call{ID: b.lookup, Port: CallLookup, Request: b.search.Query(), Limit: b.limit})
	b.out.Arm(timerLooked, b.now.Mono.Add(b.limit))
}

// lookUpFor looks contact points up at once when a member was asked by an address that it has
// not found: what the node there is told rests on what this node has found.
func (b *contactSearch) lookUpFor(asker gossip.Address) {
	if b.phase != phaseMember || slices.Contains(b.inquiry.seeds, asker) || b.now.Mono < b.soonest {
		return
	}
	b.soonest = b.now.Mono.Add(lookupForAsker)
	b.lookUp()
}

// returned takes the answer of a call, if it is the lookup or the question to the decider that
// is under way, and reports whether there may be other nodes to ask than before.
func (b *contactSearch) returned(in machine.Called) (others bool) {
	switch in.ID {
	case 0:
	case b.lookup:
		return b.lookedUp(in)
	case b.question:
		return b.decided(in)
	}
	return false
}

// lookedUp takes the answer of a lookup, and reports whether the set of contact points changed.
func (b *contactSearch) lookedUp(in machine.Called) (others bool) {
	found, known := in.Result.(lookup.Targets)
	switch err := in.Err; {
	case err != nil:
		b.lookupFailed(oneLine(err.Error()))
		return false
	case !known:
		b.refuseSilently(RefusedAnswer)
		b.lookupFailed(fmt.Sprintf("the answer is no list of contact points: %T", in.Result))
		return false
	}
	for _, t := range found.List {
		if err := t.Validate(); err != nil {
			b.refuseSilently(RefusedAnswer)
			b.lookupFailed(oneLine(err.Error()))
			return false
		}
	}
	others = b.search.LookedUp(b.now.Mono.Time(), found.List)
	if others {
		b.verdict = bootstrap.Decision{}
	}
	b.inquiry.seeds = b.addresses()
	b.waitForLookup()
	b.tell(true)
	return others
}

// lookupFailed goes on after a lookup without an answer.
func (b *contactSearch) lookupFailed(why string) {
	b.search.LookupFailed(why)
	b.verdict = bootstrap.Decision{}
	b.waitForLookup()
	b.tell(true)
}

// waitForLookup arms the timer for the next lookup.
func (b *contactSearch) waitForLookup() {
	b.lookup = 0
	b.out.Disarm(timerLooked)
	pause := b.search.Pause(b.deps.Rand)
	if b.phase == phaseMember {
		pause = max(pause, lookupAsMember)
	}
	b.out.Arm(timerLookup, b.now.Mono.Add(pause))
}

// observe returns what the node knows of the contact points now.
func (b *contactSearch) observe() bootstrap.Observations {
	var answers []bootstrap.Answer
	for _, a := range b.inquiry.fresh() {
		answers = append(answers, bootstrap.Answer{
			From: targetAt(a.from.Address), Age: b.now.Mono.Sub(a.at), Member: a.claim.Standing && !a.claim.Leaving && b.inquiry.mayJoin(a),
		})
	}
	return b.search.Observe(b.now.Mono.Time(), answers)
}

// tell publishes the state of the search, and records a decision when its cause has changed.
func (b *contactSearch) tell(lookedUp bool) {
	o := b.observe()
	missing := b.search.Missing(o)
	if missing != b.told && b.phase == phaseJoining {
		b.told = missing
		b.out.DecideOften("bootstrap", b.self.String(), bootstrap.Probe.String(), b.search.Explain(o))
	}
	b.out.Publish(SearchProgress{Line: b.search.Explain(o), Observations: o, Fault: b.search.Fault(), LookedUp: lookedUp})
}

// round dials contact points that do not answer, and asks the decider.
func (b *contactSearch) round() {
	if !b.runs {
		return
	}
	o := b.observe()
	silent := b.search.Silent(o)
	for a, until := range b.dialling { //quorate:unordered each is looked at by itself
		if b.now.Mono > until {
			delete(b.dialling, a)
		}
	}
	for tries := len(silent); tries > 0 && len(b.dialling) < maxDials; tries-- {
		a := addressAt(silent[b.next%len(silent)])
		b.next = (b.next + 1) % len(silent)
		if _, under := b.dialling[a]; !under {
			b.dialling[a] = b.now.Mono.Add(2 * b.cfg.ProbeTimeout)
			b.out.Add(Probe{Address: a, Limit: b.cfg.ProbeTimeout})
		}
	}
	b.ask(o)
	b.tell(false)
}

// dialled takes the outcome of dialling a contact point. It reports whether the addresses to ask
// have changed.
func (b *contactSearch) dialled(in Probed) (others bool) {
	if _, under := b.dialling[in.Address]; !under {
		return false
	}
	delete(b.dialling, in.Address)
	if in.Err != nil {
		b.search.Dialled(targetAt(in.Address), lookup.Target{}, oneLine(in.Err.Error()))
		return false
	}
	b.search.Dialled(targetAt(in.Address), targetAt(in.Node.Address), "")
	before := b.inquiry.seeds
	b.inquiry.seeds = b.addresses()
	return !slices.Equal(before, b.inquiry.seeds)
}

// refused notes that a contact point refuses this node.
func (b *contactSearch) refused(in PeerRefused) {
	if slices.Contains(b.inquiry.seeds, in.Peer.Address) {
		b.search.Dialled(targetAt(in.Peer.Address), lookup.Target{}, oneLine(in.Reason))
	}
}

// oneLine makes a text fit for one line: without line feeds, and cut.
func oneLine(text string) string { return cutText(strings.ReplaceAll(text, "\n", "; ")) }

// isNeeded reports whether contact points are looked up and no node remembers a cluster.
func (b *contactSearch) isNeeded() bool { return b.runs && !b.inquiry.basis().Remembers() }

// allows reports whether this node may stand for a cluster where no node remembers one, and if
// not, at what time it may; zero: not before another event.
func (b *contactSearch) allows() (ok bool, at machine.Instant) {
	if !b.runs {
		return true, 0
	}
	o := b.observe()
	if b.search.Missing(o) == "" {
		return !b.decides || b.verdict.Action == bootstrap.Form, 0
	}
	if left := o.Remains(); left > 0 {
		at = b.now.Mono.Add(left)
	}
	return false, at
}

// rank returns how many of the nodes, whose number is of, stand for the cluster before this node
// does. It is zero where a decider decides, or where the built-in rule chooses this node.
func (b *contactSearch) rank(of int) int {
	o := b.observe()
	if b.decides || (bootstrap.LowestAddress{}).DecideNow(o).Action == bootstrap.Form {
		return 0
	}
	before := slices.IndexFunc(o.Points, func(p bootstrap.Observed) bool { return bootstrap.Compare(p.Point, o.Self) == 0 })
	return min(max(before, 1), max(of-1, 1))
}

// mayJoin reports whether the decider lets this node join the cluster of a contact point.
func (b *contactSearch) mayJoin(a gossip.Address) bool {
	return !b.runs || !b.decides || b.verdict.Action == bootstrap.Join && slices.Contains(b.verdict.SeedNodes, targetAt(a))
}

// explain says what the node waits for, and adds what the vote lacks where discovery lacks
// nothing. The cause stays the same while only time passes.
func (b *contactSearch) explain(vote string) (line, cause string) {
	o := b.observe()
	line, cause = b.search.Explain(o), b.search.Missing(o)
	if cause == "" {
		line, cause = cutText(line+"; "+vote), vote
	}
	return line, cause
}

// ask asks the decider, if there is one and no question to it is under way, once in a join-interval at most: its
// answer has the node ask others, which has it ask the decider again.
func (b *contactSearch) ask(o bootstrap.Observations) {
	if !b.decides || b.question != 0 || b.askedAt != 0 && b.now.Mono < b.askedAt.Add(b.cfg.JoinInterval) {
		return
	}
	b.question, b.asked, b.askedAt = b.nextCall(), o, b.now.Mono
	b.out.Add(machine.Call{ID: b.question, Port: CallJoinDecider, Request: o, Limit: deciderTimeout})
	b.out.Arm(timerDecider, b.now.Mono.Add(deciderTimeout))
}

// decided takes the answer of the decider, which is checked against what it was asked, and reports whether it is
// another one than before by which the node is to act.
func (b *contactSearch) decided(in machine.Called) (acts bool) {
	decision, known := in.Result.(bootstrap.Decision)
	err := in.Err
	if err == nil && !known {
		err = fmt.Errorf("the answer is no decision: %T", in.Result)
	}
	if err == nil {
		err = decision.Check(b.asked)
	}
	if err != nil {
		if in.Err == nil {
			b.refuseSilently(RefusedAnswer)
		}
		b.deciderFailed(err)
		return false
	}
	b.endQuestion()
	before := b.verdict
	if decision.Action != before.Action || decision.Reason != before.Reason {
		b.out.DecideOften("bootstrap", b.self.String(), decision.Action.String(), cutText(decision.Reason))
	}
	b.verdict = decision
	return decision.Action != bootstrap.Probe && (decision.Action != before.Action || !slices.Equal(decision.SeedNodes, before.SeedNodes))
}

// deciderFailed goes on without an answer: no cluster is joined, and none is formed.
func (b *contactSearch) deciderFailed(err error) {
	b.endQuestion()
	b.verdict = bootstrap.Decision{}
	b.out.DecideOften("bootstrap", b.self.String(), bootstrap.Probe.String(), cutText(fmt.Sprintf("the decider did not answer: %v", err)))
}

func (b *contactSearch) endQuestion() {
	b.question = 0
	b.out.Disarm(timerDecider)
}
