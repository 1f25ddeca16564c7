// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/machine"
)

// decisionsMax is how many decisions of each kind a node remembers.
const decisionsMax = 1000

// Decision is one decision that a node took, with its reason.
type Decision struct {
	At        time.Time
	Component string // Who decided: "membership", "sharding".
	Kind      string // What sort of decision.
	Subject   string // What it was about.
	Verdict   string // What was decided.
	Reason    string // Why.
}

// decisionLog keeps the last decisions of each kind. The zero value is ready.
type decisionLog struct {
	mu    sync.Mutex
	kinds map[string]*ring
}

// ring holds the last decisionsMax decisions of a kind.
type ring struct {
	items []Decision
	next  int
	total uint64 // How many there have been.
}

// add remembers a decision in place of the oldest of its kind.
func (l *decisionLog) add(component string, at time.Time, d machine.Decide) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kinds == nil {
		l.kinds = make(map[string]*ring)
	}
	r := l.kinds[d.Kind]
	if r == nil {
		r = new(ring)
		l.kinds[d.Kind] = r
	}
	r.total++
	item := Decision{At: at, Component: component, Kind: d.Kind, Subject: d.Subject, Verdict: d.Verdict, Reason: d.Reason}
	if len(r.items) < decisionsMax {
		r.items = append(r.items, item)
		return
	}
	r.items[r.next] = item
	r.next = (r.next + 1) % decisionsMax
}

// list returns the decisions of a kind, oldest first.
func (l *decisionLog) list(kind string) []Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.kinds[kind]
	if r == nil {
		return nil
	}
	return append(append([]Decision(nil), r.items[r.next:]...), r.items[:r.next]...)
}

// total is how many decisions of a kind a component has taken.
type total struct {
	component, kind string
	n               uint64
}

// totals returns how many decisions of each kind there have been.
func (l *decisionLog) totals() []total {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]total, 0, len(l.kinds))
	for kind, r := range l.kinds {
		all = append(all, total{r.items[0].Component, kind, r.total}) // A kind belongs to one component.
	}
	return all
}

// names returns the kinds of which there are decisions, sorted.
func (l *decisionLog) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.kinds))
}
