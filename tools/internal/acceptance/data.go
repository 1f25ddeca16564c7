// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
)

// Programs over replicated data: [counters], which count what was acknowledged, and [sets], of which a read has what
// was acknowledged before it began. The keys lie in a group in memory, in one with three replicas, and on disks.

const (
	counterKeys = 6 // Of each prefix.
	users       = 4
)

// prefix draws where a key lies: in memory everywhere, on three nodes, on disks.
func prefix(r *rand.Rand) string { return []string{"all-", "near-", "kept-"}[r.IntN(3)] }

// nothing reports whether an error says that nothing has changed (table of the errors of package ddata).
func nothing(err error) bool {
	var stored *ddata.NotStoredError
	var function *ddata.FunctionError
	var typed *ddata.TypeError
	return errors.As(err, &stored) || errors.As(err, &function) || errors.As(err, &typed)
}

// A tally is what the users of one counter were told.
type tally struct{ begun, acknowledged, unknown int64 }

// counters are counters that users add 1 to, and read.
type counters struct {
	*world

	guard sync.Mutex
	of    map[string]*tally
}

func newCounters(w *world) *counters { return &counters{world: w, of: map[string]*tally{}} }

func (p *counters) join(*clustertest.Node) error { return nil }

func (p *counters) work(ctx context.Context) {
	p.users(ctx, "counters", users, 200*time.Millisecond, func(r *rand.Rand, _, _ int) { p.step(r) })
}

// step adds 1 to a counter, or reads one.
func (p *counters) step(r *rand.Rand) {
	n := p.any(r)
	if n == nil {
		return
	}
	name := prefix(r) + fmt.Sprint("count-", r.IntN(counterKeys))
	level := []ddata.Consistency{ddata.Majority(), ddata.Majority(), ddata.All()}[r.IntN(3)]
	limit := []time.Duration{50 * time.Millisecond, time.Second, 10 * time.Second}[r.IntN(3)]
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if r.IntN(4) == 0 {
		p.read(ctx, n, name)
		return
	}
	p.tell(name, tally{begun: 1})
	_, err := ddata.Update(ctx, n, ddata.NewKey[crdt.GCounter](name), level, func(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v.Add(at, 1), nil })
	switch {
	case err == nil:
		p.tell(name, tally{acknowledged: 1})
	case !nothing(err):
		p.tell(name, tally{unknown: 1})
	default:
		p.tell(name, tally{begun: -1})
	}
}

// tell adds to what is known of a counter, and returns it as it is then.
func (p *counters) tell(name string, t tally) tally {
	p.guard.Lock()
	defer p.guard.Unlock()
	if p.of[name] == nil {
		p.of[name] = &tally{}
	}
	at := p.of[name]
	at.begun, at.acknowledged, at.unknown = at.begun+t.begun, at.acknowledged+t.acknowledged, at.unknown+t.unknown
	return *at
}

// read reads a counter by a majority: it has what was acknowledged before, and nothing that was not begun.
func (p *counters) read(ctx context.Context, n *clustertest.Node, name string) bool {
	before := p.tell(name, tally{})
	v, err := ddata.Get(ctx, n, ddata.NewKey[crdt.GCounter](name), ddata.Majority())
	if err != nil && !errors.Is(err, ddata.ErrNotFound) {
		return false
	}
	sum := int64(v.Value())
	// What ends as not stored while the read is under way was begun before it ended.
	if sum < before.acknowledged {
		p.violation("counter %s at %s: a majority read has %d, and %d were acknowledged before it", name, n.Address(), sum, before.acknowledged)
	}
	if after := p.tell(name, tally{}); sum > max(before.begun, after.begun) {
		p.violation("counter %s at %s: a majority read has %d, and %d were ever added", name, n.Address(), sum, after.begun)
	}
	return true
}

// inMemory reports whether a key lies in memory alone.
func inMemory(name string) bool { return !strings.HasPrefix(name, "kept-") }

func (p *counters) ended() {
	p.guard.Lock()
	defer p.guard.Unlock()
	for name, t := range p.of {
		if inMemory(name) {
			t.acknowledged = 0
		}
	}
}

func (p *counters) copied() func() {
	p.guard.Lock()
	defer p.guard.Unlock()
	then := map[string]int64{}
	for name, t := range p.of {
		then[name] = t.acknowledged
	}
	return func() {
		p.guard.Lock()
		defer p.guard.Unlock()
		for name, t := range p.of {
			t.acknowledged = min(t.acknowledged, then[name])
		}
	}
}

func (p *counters) judge(ctx context.Context) {
	for name, t := range p.of {
		n := p.any(p.rand)
		if !p.read(ctx, n, name) {
			p.violation("counter %s: a majority read fails though nothing is wrong any more", name)
		}
		if t.acknowledged == 0 {
			p.note("counter %s: nothing was acknowledged", name)
		}
	}
}

// sets are sets to which users add elements.
type sets struct {
	*world

	guard sync.Mutex
	of    map[string]*elements
}

// elements are what the users of one set were told of theirs.
type elements struct{ acknowledged, nowhere map[string]bool }

func newSets(w *world) *sets { return &sets{world: w, of: map[string]*elements{}} }

func (p *sets) join(*clustertest.Node) error { return nil }

func (p *sets) work(ctx context.Context) {
	p.users(ctx, "sets", users, 400*time.Millisecond, func(r *rand.Rand, user, k int) { p.step(r, fmt.Sprintf("%d.%d", user, k)) })
}

// step adds an element, and reads.
func (p *sets) step(r *rand.Rand, element string) {
	n := p.any(r)
	if n == nil {
		return
	}
	name := prefix(r) + "set"
	ctx, cancel := context.WithTimeout(context.Background(), []time.Duration{50 * time.Millisecond, 5 * time.Second}[r.IntN(2)])
	defer cancel()
	_, err := ddata.Update(ctx, n, ddata.NewKey[crdt.ORSet[string]](name), ddata.Majority(), func(at crdt.Origin, v crdt.ORSet[string]) (crdt.ORSet[string], error) {
		return v.Add(at, element), nil
	})
	p.guard.Lock()
	of := p.of[name]
	if of == nil {
		of = &elements{acknowledged: map[string]bool{}, nowhere: map[string]bool{}}
		p.of[name] = of
	}
	if err == nil {
		of.acknowledged[element] = true
	} else if nothing(err) {
		of.nowhere[element] = true
	}
	p.guard.Unlock()
	if r.IntN(3) == 0 {
		p.read(ctx, n, name)
	}
}

// read reads a set by a majority: it has what was acknowledged before, and nothing that is stored nowhere.
func (p *sets) read(ctx context.Context, n *clustertest.Node, name string) bool {
	p.guard.Lock()
	var before []string
	for e := range p.of[name].acknowledged {
		before = append(before, e)
	}
	p.guard.Unlock()
	v, err := ddata.Get(ctx, n, ddata.NewKey[crdt.ORSet[string]](name), ddata.Majority())
	if err != nil && !errors.Is(err, ddata.ErrNotFound) {
		return false
	}
	for _, e := range before {
		if !v.Has(e) {
			p.violation("set %s at %s: a majority read lacks %s, which was acknowledged before it", name, n.Address(), e)
		}
	}
	p.guard.Lock()
	defer p.guard.Unlock()
	for e := range p.of[name].nowhere {
		if v.Has(e) {
			p.violation("set %s at %s: a majority read has %s, of which it was said that it is stored nowhere", name, n.Address(), e)
		}
	}
	return true
}

func (p *sets) judge(ctx context.Context) {
	for name := range p.of {
		if !p.read(ctx, p.any(p.rand), name) {
			p.violation("set %s: a majority read fails though nothing is wrong any more", name)
		}
	}
}

func (p *sets) ended() {
	p.guard.Lock()
	defer p.guard.Unlock()
	for name, of := range p.of {
		if inMemory(name) {
			clear(of.acknowledged)
		}
	}
}

func (p *sets) copied() func() {
	p.guard.Lock()
	defer p.guard.Unlock()
	then := map[string]map[string]bool{}
	for name, of := range p.of {
		then[name] = maps.Clone(of.acknowledged)
	}
	return func() {
		p.guard.Lock()
		defer p.guard.Unlock()
		for name, of := range p.of {
			maps.DeleteFunc(of.acknowledged, func(e string, _ bool) bool { return !then[name][e] })
		}
	}
}
