// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
)

// A strategy is loaded ([strategies.load]), announced in this node's record, and released
// ([strategies.keep]); the leader makes it the cluster's ([strategies.next]). In between
// are the questions of other parts: which strategies decide, and whether they keep only
// majorities. The settings by which a joiner is judged come last.

// Strategy is a downing strategy that a node can decide with.
type Strategy struct {
	gossip.DowningStrategy

	// Decide decides at once and is a pure function of the view, like DecideNow of
	// [downing.Immediate]. If it is nil the strategy is asked by a [machine.Call] to the
	// port [CallDowning] with a [DowningRequest]; the answer is a [downing.Decision].
	Decide func(downing.View) (downing.Decision, error)

	// Misfit says what is wrong with the parameters for a cluster with these members, see
	// [downing.Fitted]. Nil: they fit every cluster.
	Misfit func(members []*gossip.Member) string

	// Keeps is how long no other side is kept after a question by which a side was, see
	// [downing.Holder]. Zero: for ever, or the strategy decides by the view.
	Keeps time.Duration

	// Load is a number that tells this strategy from another that this node loads later
	// under the same identity. It is part of [DowningRequest] and of [Unloaded].
	Load uint64
}

// strategies holds the downing strategies of this node, and the one that the cluster
// uses.
//
//	LoadDowning -> loaded, and said so -> all have said so -> the leader changes
//	the register -> who knows it decides by both -> all have seen it -> by the new one
//	alone -> the old one is not said to be loaded any more -> all have seen that ->
//	Unloaded
//
// A strategy goes in two steps, because the leader may choose it at the moment at which
// this node stops announcing it. Only when all members have seen that it is no longer
// announced, and the register does not name it, can no member choose it.
type strategies struct {
	*core

	loaded []loadedStrategy // In the order of loading.
	wanted gossip.StrategyID

	register          gossip.DowningRegister // Register of the state that was surveyed last.
	current, previous gossip.StrategyID      // Ids of the strategies in the register.

	// converged is the last register that all members are known to have seen.
	converged gossip.DowningRegister

	unfit   bool   // Whether this node has last said that the strategy does not fit the cluster.
	lacking string // The members that the leader last said it waits for.
}

type loadedStrategy struct {
	Strategy
	id gossip.StrategyID
}

func newStrategies(c *core, first Strategy) *strategies {
	id := first.ID()
	return &strategies{core: c, wanted: id, loaded: []loadedStrategy{{first, id}}}
}

// find returns a loaded strategy, or nil.
func (s *strategies) find(id gossip.StrategyID) *loadedStrategy {
	i := slices.IndexFunc(s.loaded, func(l loadedStrategy) bool { return l.id == id })
	if i < 0 {
		return nil
	}
	return &s.loaded[i]
}

// active returns the strategy of the cluster, or this node's own before the cluster has
// one.
func (s *strategies) active() gossip.DowningStrategy {
	if s.register.Gen == 0 {
		return s.find(s.wanted).DowningStrategy
	}
	return s.register.DowningStrategy
}

// switched tells whether all members are known to use the strategy that the register
// names.
func (s *strategies) switched(r gossip.DowningRegister) bool {
	return s.converged == r || r.Previous == gossip.DowningStrategy{}
}

// inForce returns the strategies by each of which a side must survive. Until a change of
// the register is known to have converged, another side may not have heard of it and
// survive by the strategy before. If both strategies need a majority, two sides cannot
// both survive, whatever else the strategies demand: then the new one decides alone. A
// strategy that needs a majority is asked first, since other nodes may have only one vote
// to give: a side that cannot use that vote must not take it.
func (s *strategies) inForce() []gossip.DowningStrategy {
	r := s.register
	if s.register.Gen == 0 || s.switched(r) || r.MajorityOnly && r.Previous.MajorityOnly {
		return []gossip.DowningStrategy{s.active()}
	}
	if r.Previous.MajorityOnly {
		return []gossip.DowningStrategy{r.Previous, r.DowningStrategy}
	}
	return []gossip.DowningStrategy{r.DowningStrategy, r.Previous}
}

// majorityOnlyBy tells whether, by a register, only majorities survive.
func (s *strategies) majorityOnlyBy(r gossip.DowningRegister) bool {
	if r.Gen == 0 {
		return s.find(s.wanted).MajorityOnly
	}
	return r.MajorityOnly && (s.switched(r) || r.Previous.MajorityOnly)
}

// needed tells whether this node may have to decide by a strategy.
func (s *strategies) needed(id gossip.StrategyID) bool {
	return id == s.wanted || id == s.current || id == s.previous && !s.switched(s.register)
}

// said returns the strategies that this node announces as loaded, sorted.
func (s *strategies) said() []gossip.StrategyID {
	var ids []gossip.StrategyID
	for _, l := range s.loaded {
		if s.needed(l.id) {
			ids = append(ids, l.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// majorityOnly tells whether the cluster's strategy lets only majorities survive.
func (s *strategies) majorityOnly() bool { return s.majorityOnlyBy(s.register) }

// handsOff tells whether the strategy of the cluster leaves it to an operator to down
// members: it only reports, or is manual.
func (s *strategies) handsOff() bool {
	active := s.active()
	return downing.OnlyReports(active.Parameters) || active.Name == downing.ManualName
}

// takeOver takes over the register of the state.
func (s *strategies) takeOver() {
	if r := s.state.Downing(); r != s.register {
		s.register, s.current, s.previous = r, r.ID(), r.Previous.ID()
		if r.Gen > 0 && s.find(s.current) == nil {
			s.out.Decide("downing", "strategy", "not loaded", describeStrategy(r.DowningStrategy)+" decides in the cluster; others are asked in its place")
		}
	}
	if s.surveyed.converged {
		s.converged = s.register
	}
}

// load adds a strategy to those of this node, and makes it the one that this node wants
// for the cluster. It returns false if the strategy is refused.
func (s *strategies) load(in LoadDowning) bool {
	id := in.Strategy.ID()
	known := s.find(id)
	err := in.Strategy.Validate()
	switch {
	case err != nil || in.Strategy.Name == "":
		s.refuse(s.self, "LoadDowning", RefusedMalformed, fmt.Sprintf("the strategy has no valid identity: %v", err))
	case known == nil && len(s.loaded) >= gossip.MaxLoaded:
		s.refuse(s.self, "LoadDowning", RefusedBusy, fmt.Sprintf("%d strategies are loaded, of which none can be let go yet", len(s.loaded)))
	default:
		if known != nil {
			s.out.Publish(Unloaded{Strategy: known.DowningStrategy, Load: known.Load})
			known.Strategy = in.Strategy
		} else {
			s.loaded = append(s.loaded, loadedStrategy{in.Strategy, id})
		}
		s.wanted = id
		s.me.Loaded = gossip.Loaded{Version: 1, Strategies: s.said()}
		s.out.Decide("downing", "strategy", "loaded", describeStrategy(in.Strategy.DowningStrategy)+" was given to this node")
		return true
	}
	s.out.Publish(Unloaded{Strategy: in.Strategy.DowningStrategy, Load: in.Strategy.Load})
	return false
}

// keep announces what this node has loaded, and releases what neither this node nor the
// cluster needs.
func (s *strategies) keep() {
	s.lookAtFit()
	me := s.state.Member(s.self)
	switch {
	case me == nil:
		return
	case me.Status < gossip.Up && s.register.Gen > 0 && s.find(s.current) == nil:
		// The cluster's strategy was changed while this node joined: as a voter it could
		// not decide.
		s.stop(component.StopRefused, fmt.Sprintf("the downing strategy of the cluster is %s, which is not loaded here: load it and join again",
			describeStrategy(s.register.DowningStrategy)))
		return
	case !slices.Equal(me.Loaded.Strategies, s.said()):
		s.edit(func(e *gossip.Edit) { e.SetLoaded(s.said()) })
		return
	case s.surveyed.of != s.state || !s.seenByAll():
		return
	}
	s.loaded = slices.DeleteFunc(s.loaded, func(l loadedStrategy) bool {
		gone := !s.needed(l.id)
		if gone {
			s.out.Decide("downing", "strategy", "unloaded", describeStrategy(l.DowningStrategy)+" is used by nobody any more")
			s.out.Publish(Unloaded{Strategy: l.DowningStrategy, Load: l.Load})
		}
		return gone
	})
}

// lookAtFit has the leader record a decision when the strategy does not fit the cluster, and when it
// fits again.
func (s *strategies) lookAtFit() {
	if s.surveyed.of != s.state || !s.surveyed.converged || s.surveyed.leader != s.self || s.ownStatus() < gossip.Up {
		return
	}
	misfit, active := "", s.find(s.active().ID())
	if active != nil && active.Misfit != nil {
		misfit = active.Misfit(s.state.Members())
	}
	switch {
	case (misfit != "") == s.unfit:
		return
	case misfit == "":
		s.out.Decide("downing", "strategy", "fits", describeStrategy(s.active())+" fits the cluster now")
	default:
		s.out.Decide("downing", "strategy", "unfit", cutText(misfit))
	}
	s.unfit = !s.unfit
}

// seenByAll tells whether every member that is not down has seen the state. That is more
// than convergence, which does not wait for members that have finished leaving: one of
// these may still lead.
func (s *strategies) seenByAll() bool {
	return !slices.ContainsFunc(s.state.Members(), func(member *gossip.Member) bool {
		return member.Status != gossip.Down && !s.state.Seen(member.Node)
	})
}

// next returns the strategy that the leader makes the cluster's, under convergence: its
// own, once all members have loaded it. It waits for joining members too, which would
// otherwise have to end.
func (s *strategies) next() (gossip.DowningStrategy, bool) {
	if s.wanted == s.current {
		s.lacking = ""
		return gossip.DowningStrategy{}, false
	}
	var lacking []string
	for _, member := range s.state.Members() {
		if member.Status <= gossip.Leaving && !member.Loaded.Has(s.wanted) {
			lacking = append(lacking, member.Node.String())
		}
	}
	wanted := s.find(s.wanted).DowningStrategy
	if len(lacking) == 0 {
		s.lacking = ""
		return wanted, true
	}
	if text := cutText(strings.Join(lacking, ", ")); text != s.lacking {
		s.lacking = text
		s.out.Decide("downing", "strategy", "waiting", describeStrategy(wanted)+" is not loaded by "+text)
	}
	return gossip.DowningStrategy{}, false
}

// canDecide tells whether a member has the strategy that the cluster uses after p.
func (s *strategies) canDecide(member *gossip.Member, p *leaderPlan) bool {
	if p.downing {
		return member.Loaded.Has(p.strategy.ID())
	}
	return s.register.Gen == 0 || member.Loaded.Has(s.current)
}

// describeStrategy names a strategy for people.
func describeStrategy(s gossip.DowningStrategy) string {
	text := s.Name
	if s.Version != "" {
		text += " " + s.Version
	}
	if s.Parameters != "" {
		text += " (" + s.Parameters + ")"
	}
	return cutText(text)
}

// downingSettings are the compared settings of the downing strategy besides the
// strategy itself: two sides of a partition that decide by different rules could
// both survive.
func downingSettings(d Downing) []Setting {
	return []Setting{
		{"downing.stable-after", d.Config.StableAfter.String(), MustEqual},
		{"downing.down-own-side-after", d.Config.DownOwnSideAfter.String(), MustEqual},
		{"downing.call-limit", d.Limit.String(), MustEqual},
	}
}

// strategySettings returns what a node says about a strategy when it joins, so that a
// refusal can name the difference. These settings need not be equal: a node may join with
// another strategy that it wants for the cluster, if it has that of the cluster as well.
func strategySettings(s gossip.DowningStrategy) []Setting {
	return []Setting{
		{"downing.strategy", s.Name, ShouldEqual},
		{"downing.version", s.Version, ShouldEqual},
		{"downing.parameters", cutText(s.Parameters), ShouldEqual},
		{"downing.class", fmt.Sprintf("pure=%t majority-only=%t", s.Pure, s.MajorityOnly), ShouldEqual},
	}
}

// lacksStrategy returns the differences for which a joiner without the cluster's strategy
// is refused.
func (s *strategies) lacksStrategy(joiner gossip.Member, settings []Setting) []Difference {
	active := s.active()
	if joiner.Loaded.Has(active.ID()) {
		return nil
	}
	var differences []Difference
	for _, mine := range strategySettings(active) { // The name is first.
		i := slices.IndexFunc(settings, func(s Setting) bool { return s.Key == mine.Key })
		if d := (Difference{Key: mine.Key, Member: mine.Value}); i < 0 || settings[i].Value != mine.Value {
			if i >= 0 {
				d.Joiner = settings[i].Value
			}
			differences = append(differences, d)
		}
	}
	if len(differences) == 0 {
		differences = []Difference{{Key: "downing.strategy", Member: active.ID().String()}}
	}
	return differences
}
