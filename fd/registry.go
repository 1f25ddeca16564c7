// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd

import (
	"slices"
	"time"
)

// The registry: nodes enter by Expect, answers arrive by Heartbeat, nodes leave by
// Remove. Unavailable and Due are what its owner acts on, one timer for all nodes;
// Status shows everything.

// Registry holds a bounded detector for each monitored node.
//
// K is the full identity of a node, with its incarnation and not the address
// alone: a node that restarted at the same address is another node, and what was
// learnt about the old one says nothing of it.
//
//	Expect ----> unanswered ---- Heartbeat ----> answered ---- Remove ---> forgotten
//	                 |                               ^ |
//	                 | silence counts from           '-' Heartbeat
//	                 | ExpectedResponseAfter on
//	                 v
//	            unavailable at latest ExpectedResponseAfter + MaxSilence after Expect
//
// A node that never answers must become unavailable too, or a node that died
// while joining would be waited for without end. Its silence counts from
// ExpectedResponseAfter after [Registry.Expect]. That presumed answer is held
// apart: when the node does answer, its detector starts anew from the real one,
// so the presumption leaves no trace in what is learnt.
//
// A Registry has one owner and is not safe for concurrent use. Its memory is
// bounded by the nodes that are expected and not removed.
type Registry[K any] struct {
	bounds        Bounds
	expectedAfter time.Duration
	newDetector   Factory
	compare       func(a, b K) int
	entries       []entry[K] // In the order of compare, so that every result has that order.
	judged        bool       // Whether a judge decides about the nodes that have answered.
}

type entry[K any] struct {
	node     K
	detector *Bounded
	answered bool // Whether the node itself has answered; false while the answer is presumed.
}

// Status is the state of one node in a [Registry].
type Status[K any] struct {
	// Node is the monitored node.
	Node K
	// Answered reports whether the node has ever answered.
	Answered bool
	// Available is the verdict.
	Available bool
	// Silence is the time since the latest answer, or since the moment at which the
	// first answer was due. It is negative before that moment.
	Silence time.Duration
	// Phi is the degree of suspicion if the detector is an [Accrual], else 0.
	Phi float64
}

// NewRegistry returns a registry without nodes. It takes the bounds of silence
// and the time of the first answer from the configuration, which must be valid;
// which detector judges is up to newDetector, see [NewFactory]. The order of
// nodes is that of compare, which must be total and equal only for the same
// node.
func NewRegistry[K any](config Config, newDetector Factory, compare func(a, b K) int) (*Registry[K], error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &Registry[K]{
		bounds:        config.Bounds(),
		expectedAfter: config.ExpectedResponseAfter,
		newDetector:   newDetector,
		compare:       compare,
	}, nil
}

// Expect starts to monitor a node to which heartbeats are sent from this time
// on. It changes nothing for a node that is monitored already.
func (r *Registry[K]) Expect(node K, at time.Time) {
	i, found := r.find(node)
	if found {
		return
	}
	e := entry[K]{node: node, detector: r.fresh()}
	e.detector.Heartbeat(at.Add(r.expectedAfter))
	r.entries = slices.Insert(r.entries, i, e)
}

// Heartbeat records an answer of a node, and reports whether it changed the verdict
// from unavailable to available. An answer of a node that is not expected is ignored,
// so that a late answer cannot bring back a removed node.
func (r *Registry[K]) Heartbeat(node K, at time.Time) bool {
	i, found := r.find(node)
	if !found {
		return false
	}
	e := &r.entries[i]
	recovered := !e.detector.Available(at)
	if !e.answered {
		e.detector, e.answered = r.fresh(), true
		e.detector.Judged(r.judged, at)
	}
	e.detector.Heartbeat(at)
	return recovered
}

// Judged says whether a [Judge] decides from this time on about the nodes that have answered,
// in place of their detectors, which go on learning; see [Bounded.Judged]. A node that has not
// answered yet, of which no judge is told, is always left to its detector.
func (r *Registry[K]) Judged(on bool, at time.Time) {
	r.judged = on
	for i := range r.entries {
		if r.entries[i].answered {
			r.entries[i].detector.Judged(on, at)
		}
	}
}

// Accuse makes a node unavailable from this time on, within the bounds, because the judge says
// so; see [Bounded.Accuse].
func (r *Registry[K]) Accuse(node K, asOf, at time.Time) bool {
	i, found := r.find(node)
	return found && r.entries[i].answered && r.entries[i].detector.Accuse(asOf, at)
}

// Available is the verdict about a node. A node that is not monitored counts as
// available.
func (r *Registry[K]) Available(node K, at time.Time) bool {
	i, found := r.find(node)
	return !found || r.entries[i].detector.Available(at)
}

// Expected reports whether a node is monitored, whether it has answered or not.
func (r *Registry[K]) Expected(node K) bool {
	_, found := r.find(node)
	return found
}

// Monitoring reports whether a node is monitored and has answered.
func (r *Registry[K]) Monitoring(node K) bool {
	i, found := r.find(node)
	return found && r.entries[i].answered
}

// Remove forgets a node and what was learnt about it.
func (r *Registry[K]) Remove(node K) {
	if i, found := r.find(node); found {
		r.entries = slices.Delete(r.entries, i, i+1)
	}
}

// Reset forgets all nodes.
func (r *Registry[K]) Reset() { r.entries = nil }

// Len is the number of nodes that are monitored.
func (r *Registry[K]) Len() int { return len(r.entries) }

// Nodes returns the monitored nodes in their order.
func (r *Registry[K]) Nodes() []K {
	nodes := make([]K, len(r.entries))
	for i := range r.entries {
		nodes[i] = r.entries[i].node
	}
	return nodes
}

// Unavailable returns the nodes that are unavailable at this time, in their
// order. The result is nil when there is none.
func (r *Registry[K]) Unavailable(at time.Time) []K {
	var nodes []K
	for i := range r.entries {
		if !r.entries[i].detector.Available(at) {
			nodes = append(nodes, r.entries[i].node)
		}
	}
	return nodes
}

// Due returns the earliest [Registry.Limit] of the monitored nodes, except for the
// nodes that the caller holds unavailable already, for which held returns true; a nil
// held excludes none. The result is false when no node is left.
//
// A caller arms one timer for that moment, acts on [Registry.Unavailable] when it
// fires, and calls Due again. It also calls Due after each Expect and Heartbeat: an
// answer mostly moves the moment to later, but an answer that makes the history more
// regular can move it to earlier.
//
// If the moment has passed, the caller must act at once. The moment depends on what
// the caller holds, not on when it calls: a caller that slept through a limit, or did
// not act on it for another reason, gets that limit again until it has acted.
func (r *Registry[K]) Due(held func(K) bool) (time.Time, bool) {
	var due time.Time
	found := false
	for i := range r.entries {
		e := &r.entries[i]
		limit, ok := e.detector.Limit()
		if !ok || found && limit.Sub(due) >= 0 || held != nil && held(e.node) {
			continue
		}
		due, found = limit, true
	}
	return due, found
}

// Limit returns the moment from which a node is unavailable unless it answers before,
// as [Bounded.Limit]. The result is false for a node that is not monitored.
func (r *Registry[K]) Limit(node K) (time.Time, bool) {
	i, found := r.find(node)
	if !found {
		return time.Time{}, false
	}
	return r.entries[i].detector.Limit()
}

// Status returns the state of each node, in their order.
func (r *Registry[K]) Status(at time.Time) []Status[K] {
	all := make([]Status[K], len(r.entries))
	for i := range r.entries {
		e := &r.entries[i]
		all[i] = Status[K]{
			Node:      e.node,
			Answered:  e.answered,
			Available: e.detector.Available(at),
			Silence:   at.Sub(e.detector.last),
		}
		if accrual, ok := e.detector.Unwrap().(Accrual); ok {
			all[i].Phi = accrual.Phi(at)
		}
	}
	return all
}

func (r *Registry[K]) fresh() *Bounded {
	return NewBounded(r.newDetector(), r.bounds)
}

func (r *Registry[K]) find(node K) (int, bool) {
	return slices.BinarySearchFunc(r.entries, node, func(e entry[K], node K) int {
		return r.compare(e.node, node)
	})
}
