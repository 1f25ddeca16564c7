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

// maxDecisions is how many decisions of each topic a node remembers.
const maxDecisions = 1000

// Decision is one decision that a node took, with its reason.
type Decision struct {
	At        time.Time
	Component string // Component that decided: "membership", "sharding".
	Topic     string // Subject area of the decision, such as "downing".
	Subject   string // What was decided about, such as a node.
	Verdict   string // What was decided.
	Reason    string // Why.
}

// Decisions are the decisions of a node: the last 1,000 of each topic, what watches for more, and the log of the
// node, which tells of them. A node has one, see [Node.Decisions].
type Decisions struct {
	clock   *machine.SystemClock
	journal journal

	mu       sync.Mutex // Guards all below.
	topics   map[string]*ring
	watchers []*watcher
}

// Record adds a decision that no machine of the node has taken: an operator's, for instance. All decisions of a topic
// are of one component. It does not wait.
func (l *Decisions) Record(component string, d machine.Decide) {
	l.decided(component, l.clock.Now(), d)
}

// decided keeps a decision, and has the log tell of it.
func (l *Decisions) decided(component string, now machine.Now, d machine.Decide) {
	l.add(component, now.Wall, d)
	l.journal.decision(component, d)
}

// Watch has a function told of each decision that is taken from now on, in their order, until stop is called. It is
// called on the goroutine that decides and must not block, nor ask for decisions.
func (l *Decisions) Watch(tell func(Decision)) (stop func()) {
	w := &watcher{tell}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = append(l.watchers, w)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watchers = slices.DeleteFunc(l.watchers, func(other *watcher) bool { return other == w })
	}
}

// watcher is told of decisions. It has an identity, which functions do not.
type watcher struct{ tell func(Decision) }

// ring holds the last maxDecisions decisions of a topic.
type ring struct {
	items []Decision
	next  int
	total uint64 // Number of decisions so far, dropped ones included.
}

// add remembers a decision in place of the oldest of its topic.
func (l *Decisions) add(component string, at time.Time, d machine.Decide) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.topics == nil {
		l.topics = make(map[string]*ring)
	}
	r := l.topics[d.Topic]
	if r == nil {
		r = new(ring)
		l.topics[d.Topic] = r
	}
	r.total++
	item := Decision{At: at, Component: component, Topic: d.Topic, Subject: d.Subject, Verdict: d.Verdict, Reason: d.Reason}
	for _, w := range l.watchers {
		w.tell(item)
	}
	if len(r.items) < maxDecisions {
		r.items = append(r.items, item)
		return
	}
	r.items[r.next] = item
	r.next = (r.next + 1) % maxDecisions
}

// Of returns the last decisions of a topic, oldest first, at most 1,000.
func (l *Decisions) Of(topic string) []Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.topics[topic]
	if r == nil {
		return nil
	}
	return append(append([]Decision(nil), r.items[r.next:]...), r.items[:r.next]...)
}

// topicTotal is the number of decisions of one topic that a component has taken.
type topicTotal struct {
	component, topic string
	n                uint64
}

// totals returns how many decisions of each topic there have been.
func (l *Decisions) totals() []topicTotal {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]topicTotal, 0, len(l.topics))
	for topic, r := range l.topics {
		all = append(all, topicTotal{r.items[0].Component, topic, r.total}) // A topic belongs to one component.
	}
	return all
}

// Topics returns the topics of the decisions that the node has taken so far, sorted, each an argument of
// [Decisions.Of].
func (l *Decisions) Topics() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.topics))
}
