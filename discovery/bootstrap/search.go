// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/discovery"
)

// A lookup answers ([Search.LookedUp]) or fails ([Search.LookupFailed]). The node asks the
// contact points ([Search.Points]), dials those that stay silent, and tells the search the
// outcome ([Search.Dialled]). From the answers the search makes [Observations], and says what
// is missing before a cluster may be formed ([Search.Missing]).

// Search is what a node without a cluster knows of the contact points.
type Search struct {
	cfg  Config
	self discovery.Target

	// answer is what the last lookup that answered has named, sorted by Compare, without duplicates. found is what
	// any lookup has named within the margin, or nothing if answer is nothing: some sources name another part of
	// all with each answer. asked is the last such set that was not empty.
	answer, found, asked []discovery.Target

	// named is when each point of found was named last, in the order of found.
	named []time.Time

	// changes is when the last answers came that differed from the one before, of the last minute, maxChanges at most.
	changes []time.Time

	// began is when the margin began: when found became what it is, or when a lookup answered
	// again after a failure. at is when a lookup answered last. Both are zero while no lookup
	// has answered.
	began, at time.Time

	// fault is why the last lookup failed, empty if that lookup answered. idle counts the
	// last lookups in a row that failed or found nothing.
	fault string
	idle  int

	// more says that more contact points were found than MaxPoints.
	more bool

	// known holds the outcome of dialling contact points, sorted by Compare.
	known []dialResult
}

// dialResult is the outcome of dialling a contact point.
type dialResult struct {
	point discovery.Target
	node  discovery.Target // The address by which the node there calls itself; zero if it did not answer.
	why   string           // Why the node did not answer; empty if it did.
}

// NewSearch returns the search of a node whose own address is self.
func NewSearch(cfg Config, self discovery.Target) *Search {
	if cfg.DefaultPort == 0 {
		cfg.DefaultPort = int(self.Port)
	}
	return &Search{cfg: cfg, self: self}
}

// Query returns the query of every lookup.
func (s *Search) Query() discovery.Query {
	return discovery.Query{Service: s.cfg.Service, Port: s.cfg.PortName, Protocol: s.cfg.Protocol}
}

// LookedUp takes the answer of a lookup. It reports whether the set of contact points has
// changed.
func (s *Search) LookedUp(now time.Time, list []discovery.Target) bool {
	answer := s.distinct(list)
	s.count(now, answer)
	found, named, more := s.union(now, answer)
	changed := !slices.Equal(found, s.found)
	if changed || s.at.IsZero() || s.fault != "" {
		s.began = now
	}
	s.answer, s.found, s.named, s.more, s.at, s.fault = answer, found, named, more, now, ""
	if len(found) == 0 {
		s.idle++
		return changed
	}
	s.asked, s.idle = found, 0
	s.known = slices.DeleteFunc(s.known, func(d dialResult) bool { return !slices.Contains(found, d.point) })
	return changed
}

// LookupFailed takes the reason why a lookup failed. The contact points that were found before
// are asked on.
func (s *Search) LookupFailed(why string) { s.fault, s.idle = why, s.idle+1 }

// maxChanges bounds how many changes of a minute are counted.
const maxChanges = 100

// count notes that an answer differs from the one before.
func (s *Search) count(now time.Time, answer []discovery.Target) {
	s.changes = slices.DeleteFunc(s.changes, func(at time.Time) bool { return now.Sub(at) > time.Minute })
	if !s.at.IsZero() && !slices.Equal(answer, s.answer) && len(s.changes) < maxChanges {
		s.changes = append(s.changes, now)
	}
}

// union returns what an answer names, and what answers within the margin have named.
func (s *Search) union(now time.Time, answer []discovery.Target) (found []discovery.Target, named []time.Time, more bool) {
	found = slices.Clone(answer)
	if len(found) > 0 {
		for i, t := range s.found {
			if now.Sub(s.named[i]) < s.cfg.StableMargin {
				found = append(found, t)
			}
		}
		slices.SortFunc(found, Compare)
		found = slices.Compact(found)
	}
	if more = len(found) > MaxPoints; more {
		found = found[:MaxPoints]
	}
	for _, t := range found {
		at := now
		if _, again := slices.BinarySearchFunc(answer, t, Compare); !again {
			at = s.named[slices.Index(s.found, t)]
		}
		named = append(named, at)
	}
	return found, named, more
}

// distinct sorts contact points, gives those without a port the default one, and takes
// each once: by its address where that is known, since several hosts may share a name.
func (s *Search) distinct(list []discovery.Target) (found []discovery.Target) {
	for _, t := range list {
		if t.Port == 0 {
			t.Port = uint16(s.cfg.DefaultPort)
		}
		if ip := addressOf(t); ip.IsValid() {
			t.Host = ip.String()
		}
		found = append(found, discovery.Target{Host: t.Host, Port: t.Port})
	}
	slices.SortFunc(found, Compare)
	found = slices.Compact(found)
	if !s.cfg.FilterOnDefaultPort {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(t discovery.Target) bool {
		byDefault := discovery.Target{Host: t.Host, Port: uint16(s.cfg.DefaultPort)}
		_, there := slices.BinarySearchFunc(found, byDefault, Compare)
		return there && t != byDefault
	})
}

// Pause returns the time to the next lookup.
func (s *Search) Pause(r *rand.Rand) time.Duration {
	d := s.cfg.Interval
	for n := s.idle; n > 0 && d < s.cfg.IntervalMax; n-- {
		d *= 2
	}
	d = min(d, s.cfg.IntervalMax)
	return d + time.Duration(r.Int64N(int64(d)/5+1))
}

// Points returns the contact points to ask: those that were found last, this node's own
// among them if it was found. In place of each stands the address by which the node there
// calls itself, where that is known.
func (s *Search) Points() []discovery.Target {
	var points []discovery.Target
	for _, t := range s.asked {
		if t = s.nodeAt(t); !slices.Contains(points, t) {
			points = append(points, t)
		}
	}
	return points
}

// nodeAt returns the address by which the node at a contact point calls itself, or the
// contact point while that address is unknown.
func (s *Search) nodeAt(t discovery.Target) discovery.Target {
	if Compare(t, s.self) == 0 {
		return s.self
	}
	if i, ok := s.find(t); ok && s.known[i].node.Host != "" {
		return s.known[i].node
	}
	return t
}

func (s *Search) find(t discovery.Target) (int, bool) {
	return slices.BinarySearchFunc(s.known, t, func(d dialResult, t discovery.Target) int { return Compare(d.point, t) })
}

// Silent returns the contact points that have not answered: those to dial.
func (s *Search) Silent(o Observations) []discovery.Target {
	var silent []discovery.Target
	for _, t := range s.asked {
		node := s.nodeAt(t)
		answers := func(p Observed) bool { return p.Answered >= 0 && Compare(p.Point, node) == 0 }
		if Compare(node, s.self) != 0 && !slices.ContainsFunc(o.Points, answers) {
			silent = append(silent, t)
		}
	}
	return silent
}

// Dialled takes the outcome of dialling a contact point: the address by which the node there
// calls itself, or why there was no answer. So a node with several addresses counts once.
func (s *Search) Dialled(point, node discovery.Target, why string) {
	i, known := s.find(point)
	if !known {
		s.known = slices.Insert(s.known, i, dialResult{point: point})
	}
	if why != "" {
		node = discovery.Target{} // Another node may be there by now.
	}
	s.known[i].node, s.known[i].why = node, why
}

// Answer is the last answer of a node that was asked.
type Answer struct {
	// From is the address by which the node calls itself.
	From discovery.Target
	// Age is how long ago the answer came.
	Age time.Duration
	// Member says that the node is in a cluster that goes on.
	Member bool
}

// Observe returns what is known of the contact points of the last lookup, given the
// answers that still count.
func (s *Search) Observe(now time.Time, answers []Answer) Observations {
	o := Observations{Service: s.cfg.Service, Self: s.self, Required: s.cfg.RequiredContactPoints, StableMargin: s.cfg.StableMargin}
	if !s.at.IsZero() && s.fault == "" && len(s.found) > 0 {
		o.Stable = now.Sub(s.began)
	}
	for _, t := range s.found {
		p := Observed{Point: s.nodeAt(t), Answered: -1}
		if slices.ContainsFunc(o.Points, func(q Observed) bool { return Compare(q.Point, p.Point) == 0 }) {
			continue // Another address of the same node.
		}
		if Compare(p.Point, s.self) == 0 {
			p.Answered = 0
		}
		for _, a := range answers {
			if Compare(a.From, p.Point) != 0 {
				continue
			}
			p.Answered = a.Age
			if a.Member {
				p.SeedNodes = []discovery.Target{a.From}
			}
		}
		o.Points = append(o.Points, p)
	}
	slices.SortFunc(o.Points, func(a, b Observed) int { return Compare(a.Point, b.Point) })
	return o
}

// marginRuns is what Missing says when nothing is missing but time.
const marginRuns = "the margin has not passed"

// Missing says in one sentence what is missing before a cluster may be formed, empty if
// nothing is. The sentence names no times, so that it changes only with its cause.
func (s *Search) Missing(o Observations) string {
	answering, needed := len(o.answering()), s.needed(o)
	isSelf := func(p Observed) bool { return Compare(p.Point, s.self) == 0 }
	member := slices.IndexFunc(o.Points, func(p Observed) bool { return len(p.SeedNodes) > 0 })
	switch {
	case s.fault != "":
		return "the lookup failed: " + s.fault
	case s.at.IsZero():
		return "no lookup has been answered yet"
	case len(o.Points) == 0:
		return "no contact point was found"
	case s.more:
		return fmt.Sprintf("more than %d contact points were found", MaxPoints)
	case member >= 0:
		return fmt.Sprintf("%v is in a cluster, which is joined", o.Points[member].Point)
	case !slices.ContainsFunc(o.Points, isSelf):
		return fmt.Sprintf("this node, %v, is not among the contact points", s.self)
	case !s.cfg.FormNewCluster:
		return "this node forms no cluster: form-new-cluster is off"
	case len(o.Points) < o.Required:
		return fmt.Sprintf("%d of the %d contact points that are required were found", len(o.Points), o.Required)
	case answering < needed:
		return s.silence(o)
	case o.Stable < o.StableMargin:
		return marginRuns
	}
	return ""
}

// needed is how many contact points have to answer.
func (s *Search) needed(o Observations) int {
	if s.cfg.ContactAll {
		return max(len(o.Points), o.Required)
	}
	return o.Required
}

// silentTold is the largest number of silent contact points that a line names.
const silentTold = 3

// silence names the contact points that do not answer, and the reasons that are known.
func (s *Search) silence(o Observations) string {
	var told []string
	for _, t := range s.Silent(o) {
		why := ""
		if i, ok := s.find(t); ok && s.known[i].why != "" {
			why = ": " + s.known[i].why
		}
		told = append(told, fmt.Sprintf("%v does not answer%s", t, why))
	}
	if more := len(told) - silentTold; more > 0 {
		told = append(told[:silentTold], fmt.Sprintf("%d more do not answer", more))
	}
	return strings.Join(told, "; ")
}

// Explain says in one line what the node waits for.
func (s *Search) Explain(o Observations) string {
	stable := min(o.Stable, o.StableMargin)
	if s := stable.Truncate(time.Second); s > 0 {
		stable = s
	}
	line := fmt.Sprintf("%d of %d contact points, unchanged for %s of %s", len(o.answering()), s.needed(o), seconds(stable), seconds(o.StableMargin))
	if n := len(s.changes); n >= changesTold {
		line += fmt.Sprintf("; the answers change, %d times in the last minute", n)
	}
	if missing := s.Missing(o); missing != "" && missing != marginRuns {
		return line + "; " + missing
	}
	return line
}

// changesTold is how many changes within a minute are worth a word: a first start of a few nodes has fewer.
const changesTold = 10

// seconds writes a time for people: whole seconds, or less than one to the millisecond.
func seconds(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// Remains is the time until the margin has passed.
func (o Observations) Remains() time.Duration { return max(o.StableMargin-o.Stable, 0) }

// Fault returns why the last lookup failed, empty if that lookup answered.
func (s *Search) Fault() string { return s.fault }
