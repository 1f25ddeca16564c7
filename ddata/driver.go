// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"context"
	"fmt"
	"strings"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/ddata/internal/wire"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The driver of the machine: what it is built of, what its effects lead to, and what is done
// on its goroutine beside the machine, since tables are asked for lists there only.

// drive starts the driver of a machine.
func (r *Replicator) drive(m *protocol.Machine) error {
	r.driver = machine.NewDriver(machine.Ports{
		Clock: r.node.Clock(), Send: r.link.send, Call: r.disk.call, Other: r.other, Decide: r.decided,
		Publish: r.feed.say,
	}, 0)
	handle, err := r.driver.Attach(machine.Component{
		Name: protocol.ComponentName, Service: protocol.Service, Codec: wire.Codec{Types: r.types}, Machine: &inspectedMachine{r, m},
	})
	if err != nil {
		return err
	}
	r.handle = handle
	r.driver.Start()
	return nil
}

// inspectedMachine is the machine, together with the queries that are answered between two of its steps.
type inspectedMachine struct {
	r *Replicator
	m *protocol.Machine
}

// countsQuery asks for the counters of the machine.
type countsQuery struct{ id uint64 }

// scanQuery asks for the keys of a group that begin with a prefix, from a bucket on; the answer goes into the channel.
type scanQuery struct {
	group  *group
	prefix string
	from   int
	answer chan<- scanResult
}

// scanResult has the keys of some buckets, and the bucket to go on with; 0 after the last.
type scanResult struct {
	keys []string
	next int
}

const (
	scanKeys    = 1024 // A scan ends with the bucket in which it has seen so many keys,
	scanBuckets = 256  // or after so many buckets, so that it delays the machine by a moment only.
)

// Step hands an input to the machine, or answers a question.
func (s *inspectedMachine) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	switch in := in.(type) {
	case countsQuery:
		s.r.metrics.inquiry.Answer(in.id, s.m.Counts())
		return
	case scanQuery:
		in.answer <- scanOf(in.group.table, in.prefix, in.from)
		return
	case machine.Fired:
		// The timer may be the one that sends local changes. From here on the next of them
		// tells the machine again; those that did not are in the tables already.
		for _, g := range s.r.groups {
			g.spreading.Store(false)
			if g.owed.Load() && g.owed.Swap(false) {
				s.m.Step(now, protocol.SendDeltas{Group: g.index}, out)
			}
		}
	}
	s.m.Step(now, in, out)
}

// scan asks for keys, and waits for them until ctx ends or the replicator has.
func (r *Replicator) scan(ctx context.Context, q scanQuery) (scanResult, error) {
	answer := make(chan scanResult, 1) // With room for the answer, for which the driver does not wait.
	q.answer = answer
	if err := r.handle.PostWait(ctx, q); err != nil {
		return scanResult{}, r.over(ctx)
	}
	select {
	case s := <-answer:
		return s, nil
	case <-ctx.Done():
		return scanResult{}, context.Cause(ctx)
	case <-r.ctx.Done():
		return scanResult{}, r.closed()
	}
}

// scanOf lists keys of some buckets of a table.
func scanOf(t *table.Table, prefix string, from int) (s scanResult) {
	s.next = from
	seen := 0
	for range scanBuckets {
		for _, of := range t.Summaries(s.next) {
			if seen++; strings.HasPrefix(of.Key, prefix) {
				s.keys = append(s.keys, of.Key)
			}
		}
		if s.next++; s.next == table.Buckets {
			s.next = 0
			return s
		}
		if seen >= scanKeys {
			return s
		}
	}
	return s
}

// other carries out the effects of the machine on the driver's goroutine.
func (r *Replicator) other(_ *machine.Component, e machine.Effect) {
	switch e := e.(type) {
	case protocol.Done:
		r.calls.answer(e.Op, e)
	case protocol.FetchResult:
		r.calls.answer(e.Op, e)
	case protocol.Explanation:
		r.calls.answer(e.Op, e)
	case protocol.SurveyResult:
		r.calls.answer(e.Op, e)
	case protocol.KeysChanged:
		r.hub.changed(e.Keys)
	case protocol.DroppedAll:
		r.hub.wiped(e.N, func(prefix string) bool { return r.keys.within(e.Group, prefix) }, func(key string) bool { return r.keys.of(key) == e.Group })
	case protocol.Routed:
		before := r.groups[e.Group].route.Swap(&currentRoute{e.Route, make(chan struct{})})
		if close(before.over); e.Route.Settled {
			r.groups[e.Group].settled.Store(true)
		}
	case protocol.Alarm:
		r.alarmed(r.groups[e.Group], e)
	case protocol.ContinuedWithoutMajority:
		r.wentOn(r.groups[e.Group], e)
	default:
		machine.Assert(false, "the machine's effects are known", "effect", fmt.Sprintf("%T", e))
	}
}

// decided logs a decision.
func (r *Replicator) decided(_ string, _ machine.Now, d machine.Decide) {
	r.log.Info(gossip.Escape(d.Topic+": "+d.Subject+": "+d.Verdict), "reason", d.Reason)
}

// spreadSoon has the local changes of a group sent soon. Most calls find that it was said.
func (r *Replicator) spreadSoon(g *group) {
	if g.spreading.Load() || g.spreading.Swap(true) {
		return
	}
	if r.handle.Post(protocol.SendDeltas{Group: g.index}) != nil {
		g.owed.Store(true) // The inbox is full: the next timer says it.
	}
}
