// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/shardlog"
)

// The programs [remembered] and [reminders]: entities that run without a message wherever their shard lives, once
// each, and deliveries that come at their time or later.

const meterKind = "meter"

// remembered are entities that were acknowledged to be remembered.
type remembered struct {
	*world

	guard   sync.Mutex
	ids     *faultyStore
	regions map[*clustertest.Node]*sharding.Region[text]
	runs    map[string]map[*clustertest.Node]int // How many instances of an entity run, and where.
	told    map[string]bool
}

func newRemembered(w *world) *remembered {
	return &remembered{
		world: w, ids: newFaultyStore(w.source("ids")), regions: map[*clustertest.Node]*sharding.Region[text]{},
		runs: map[string]map[*clustertest.Node]int{}, told: map[string]bool{},
	}
}

// meter is an entity of the kind.
type meter struct {
	in *remembered
	on *clustertest.Node
}

func (m meter) Start(c *sharding.Context) error { return m.count(c.ID(), 1) }
func (m meter) Stop(c *sharding.Context)        { _ = m.count(c.ID(), -1) }

func (m meter) count(id string, n int) error {
	m.in.guard.Lock()
	defer m.in.guard.Unlock()
	if m.in.runs[id] == nil {
		m.in.runs[id] = map[*clustertest.Node]int{}
	}
	m.in.runs[id][m.on] += n
	return nil
}

// Receive answers.
func (m meter) Receive(c *sharding.Context, message text) error { return c.Reply(message) }

func (p *remembered) join(n *clustertest.Node) error {
	ids, err := shardlog.New(p.ids, shardlog.Default(), state.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	region, err := sharding.Start(n, sharding.Kind[text]{
		Name: meterKind, Shards: 8, Remember: ids, RememberFirst: true,
		New: func(*sharding.Context) sharding.Entity[text] { return meter{p, n} },
	})
	p.guard.Lock()
	defer p.guard.Unlock()
	p.regions[n] = region
	return err
}

func (p *remembered) work(ctx context.Context) {
	r := p.source("remembered")
	for k := 0; sleep(ctx, r, 4*time.Second); k++ {
		n, id := p.any(r), fmt.Sprint("m", k)
		p.guard.Lock()
		region := p.regions[n]
		p.guard.Unlock()
		if region == nil {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		_, err := sharding.Ask[text](limited, region, id, wrapperspb.String("begin"))
		cancel()
		if err == nil {
			p.guard.Lock()
			p.told[id] = true
			p.guard.Unlock()
		}
	}
}

// The ids are in a store: nothing ends with the nodes.
func (p *remembered) ended() {}

func (p *remembered) copied() func() {
	p.guard.Lock()
	defer p.guard.Unlock()
	ids, then := p.ids.backUp(), maps.Clone(p.told)
	return func() {
		p.guard.Lock()
		defer p.guard.Unlock()
		ids()
		maps.DeleteFunc(p.told, func(id string, _ bool) bool { return !then[id] })
	}
}

// An entity whose shard moves just now does not run for a moment: a strategy without sense moves shards for ever.
func (p *remembered) judge(context.Context) {
	for id := range p.told {
		running := p.running(id)
		for tries := 0; running == 0 && tries < 50; tries++ {
			p.c.Advance(100 * time.Millisecond)
			running = p.running(id)
		}
		if running != 1 {
			p.violation("remembered entity %s runs %d times", id, running)
		}
	}
}

// running returns how many instances of an entity run.
func (p *remembered) running(id string) (sum int) {
	p.guard.Lock()
	defer p.guard.Unlock()
	for n, count := range p.runs[id] {
		if n.Running() {
			sum += count
		}
	}
	return sum
}

// reminders are deliveries that were asked for.
type reminders struct {
	*world

	guard sync.Mutex
	due   map[string]time.Time // Of what was acknowledged.
	began map[string]time.Time // When it was asked for what may be there.
	fired map[string]time.Time
}

func newReminders(w *world) *reminders {
	return &reminders{world: w, due: map[string]time.Time{}, began: map[string]time.Time{}, fired: map[string]time.Time{}}
}

func (p *reminders) join(n *clustertest.Node) error {
	service, err := n.Reminders()
	if err != nil {
		return err
	}
	return service.Target(accountKind, func(_ context.Context, f reminder.Fired) error {
		p.guard.Lock()
		defer p.guard.Unlock()
		if time.Now().Before(p.began[f.Name]) {
			p.violation("reminder %s came %v before its time", f.Name, time.Until(p.began[f.Name]))
		}
		p.fired[f.Name] = time.Now()
		return nil
	})
}

func (p *reminders) work(ctx context.Context) {
	r := p.source("reminders")
	for k := 0; sleep(ctx, r, 2*time.Second); k++ {
		n := p.any(r)
		if n == nil {
			continue
		}
		service, err := n.Reminders()
		if err != nil {
			continue
		}
		name, due := fmt.Sprint("r", k), time.Now().Add(time.Duration(r.IntN(60))*time.Second)
		p.guard.Lock()
		p.began[name] = due
		p.guard.Unlock()
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		err = service.Set(limited, reminder.Reminder{Kind: accountKind, ID: fmt.Sprint("a", k%maxAccounts), Name: name, Due: due})
		cancel()
		if err == nil {
			p.guard.Lock()
			p.due[name] = due
			p.guard.Unlock()
		}
	}
}

// The reminders are in the store of states: nothing ends with the nodes.
func (p *reminders) ended() {}

func (p *reminders) copied() func() {
	p.guard.Lock()
	defer p.guard.Unlock()
	then := maps.Clone(p.due)
	return func() {
		p.guard.Lock()
		defer p.guard.Unlock()
		maps.DeleteFunc(p.due, func(name string, _ time.Time) bool { return then[name].IsZero() })
	}
}

func (p *reminders) judge(context.Context) {
	p.guard.Lock()
	defer p.guard.Unlock()
	for name, due := range p.due {
		if p.fired[name].IsZero() {
			p.violation("reminder %s, which was due %v ago, has not come", name, time.Since(due))
		}
	}
}
