// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster/clustertest"
)

// What an operator does, and what happens to a cluster: one [event] after the other. Each is bound to what
// the operator sees, as that a node is ready, so that the next step falls into the seam behind it. An event never takes
// more than what the documentation says is survived, one node of a whole cluster at a time; those that take all are in
// outages.go.

// An operator acts upon a world.
type operator struct{ *world }

// anyKind draws one of the kinds of entities of all programs.
func anyKind(r *rand.Rand) string { return []string{accountKind, receiverKind, meterKind}[r.IntN(3)] }

// An event is one thing that is done.
type event struct {
	name string
	do   func(o operator)
}

// table are the events. One that is there twice is drawn twice as often.
func table() []event {
	return []event{
		{"a crash", operator.crash},
		{"a crash", operator.crash},
		{"a crash while another node joins", operator.crashBesideJoin},
		{"a crash as soon as another node is ready", operator.crashWhenReady},
		{"a crash as soon as another node is ready", operator.crashWhenReady},
		{"a rolling restart", operator.rolling},
		{"a node that is cut off for a moment", operator.blink},
		{"a node that is cut off", operator.cutOff},
		{"a link that is cut one way", operator.oneWay},
		{"a change of the number of shards", operator.reshard},
		{"a slow network", operator.slow},
		{"a list with an error in it", operator.mistype},
		{"more machines, with a longer list", operator.scaleOut},
		{"two operators at once", operator.beside},
		{"a cluster of others at a listed address", operator.foreign},
		{"a stop of all", operator.outage},
		{"a backup that is put back", operator.restore},
		{"a disk that comes back older", operator.olderDisk},
	}
}

// event does one thing, and waits until the cluster is whole again.
func (o operator) event() {
	all := table()
	e := all[o.rand.IntN(len(all))]
	o.pause(2*time.Second, 8*time.Second)
	o.note("== %s", e.name)
	e.do(o)
	o.c.Heal()
	o.restart()
	o.whole(e.name)
}

// pause lets time pass.
func (o operator) pause(least, most time.Duration) {
	o.c.Advance(least + time.Duration(o.rand.Int64N(int64(most-least)+1)))
}

// one draws a machine.
func (o operator) one() *machine { return o.machines[o.rand.IntN(len(o.machines))] }

// two draws two machines.
func (o operator) two() (*machine, *machine) {
	order := o.rand.Perm(len(o.machines))
	return o.machines[order[0]], o.machines[order[1]]
}

// moment is a time that falls into the steps of a change: mostly short.
func (o operator) moment() {
	most := []time.Duration{0, 50 * time.Millisecond, time.Second, 5 * time.Second}[o.rand.IntN(4)]
	o.pause(0, most)
}

// restart starts the nodes that the operator has ended or cut off, as a supervisor does.
func (o operator) restart() {
	for _, m := range o.machines {
		if !m.runs() {
			o.start(m)
		}
	}
}

// again starts a machine anew, sometimes without its disk.
func (o operator) again(m *machine) {
	if o.rand.IntN(3) == 0 {
		o.note("%s has lost its disk", m.address)
		o.wipe(m)
	}
	o.start(m)
}

// ready waits until a node says that it is ready.
func (o operator) ready(m *machine) {
	err := o.c.Wait(m.address+" is ready", func() error {
		if why := m.node.Ready(); len(why) > 0 {
			return fmt.Errorf("it is not: %v", why)
		}
		return nil
	})
	if err != nil {
		o.violation("%v", err)
		o.FailNow()
	}
	o.note("%s is ready", m.address)
}

func (o operator) crash() {
	m := o.one()
	o.kill(m)
	o.pause(0, 20*time.Second)
	o.again(m)
}

// A newcomer that dies, or dies beside one that is there, is the loss of one node; the next loss waits
// until the cluster is whole.
func (o operator) crashBesideJoin() {
	m := o.one()
	o.kill(m)
	o.pause(10*time.Second, 20*time.Second)
	o.again(m)
	o.moment()
	o.kill(m)
	o.pause(0, 15*time.Second)
	o.again(m)
}

// Who restarts nodes one by one waits until each is ready. The loss of any one node is survived from then on
// (docs/operations.md).
func (o operator) crashWhenReady() {
	first, second := o.two()
	o.leave(first)
	o.start(first)
	o.ready(first)
	o.kill(second)
	o.pause(0, 15*time.Second)
	o.again(second)
}

func (o operator) rolling() {
	for _, i := range o.rand.Perm(len(o.machines)) {
		o.leave(o.machines[i])
		o.start(o.machines[i])
		o.ready(o.machines[i])
	}
}

// Less than what a heartbeat may take costs nobody.
func (o operator) blink() {
	m := o.one()
	o.c.Isolate(m.node)
	o.pause(100*time.Millisecond, time.Second)
	o.c.Heal()
	o.pause(time.Second, 10*time.Second)
	if !m.runs() {
		o.violation("%s has ended after a cut of a second at most: %v", m.address, m.node.Err())
	}
}

func (o operator) cutOff() {
	m := o.one()
	o.note("%s is cut off", m.address)
	o.c.Isolate(m.node)
	o.pause(5*time.Second, 30*time.Second)
	o.c.Heal()
	if o.rand.IntN(2) == 0 { // Its supervisor is in no hurry: the node is downed, or it comes back.
		o.pause(0, 20*time.Second)
	}
	o.settle()
}

func (o operator) oneWay() {
	m, n := o.two()
	o.note("%s does not hear %s", n.address, m.address)
	o.c.CutOneWay([]*clustertest.Node{m.node}, []*clustertest.Node{n.node})
	o.pause(time.Second, 20*time.Second)
	o.c.Heal()
	o.settle()
}

// settle waits until what a cut has begun is over: a node that was accused has ended, or is a member for all.
func (o operator) settle() { o.c.Advance(15 * time.Second) }

func (o operator) reshard() {
	o.resharded(o.one().node, o.rand)
	if o.rand.IntN(2) == 0 {
		o.crash()
	}
}

// resharded asks a node for another number of shards of a kind.
func (w *world) resharded(n *clustertest.Node, r *rand.Rand) {
	kind, shards := anyKind(r), 1+r.IntN(24)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := n.Sharding().Reshard(ctx, kind, shards)
	w.note("%s has %d shards: %v", kind, shards, err)
}

// One operator restarts a node in order while another one changes the number of shards, drains a node, moves shards,
// and gives commands for which there is no reason.
func (o operator) beside() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var second sync.WaitGroup
	r := o.source(fmt.Sprint("second operator", time.Since(o.began)))
	second.Go(func() { // Owner: beside, which waits. Ends with ctx.
		for sleep(ctx, r, 4*time.Second) {
			if n := o.any(r); n != nil {
				o.meddle(ctx, n, r)
			}
		}
	})
	m := o.one()
	o.leave(m)
	o.start(m)
	o.ready(m)
	o.pause(0, 20*time.Second)
	stop()
	second.Wait()
}

// meddle gives one command at a node.
func (w *world) meddle(ctx context.Context, n *clustertest.Node, r *rand.Rand) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	switch r.IntN(5) {
	case 0:
		w.resharded(n, r)
	case 1:
		w.note("%s is drained: %v", n.Address(), n.Sharding().Drain(limited))
		_ = n.Sharding().Undrain(context.Background()) // It has ended otherwise, and is drained no more.
	case 2:
		kind, to := anyKind(r), w.any(r)
		if to != nil {
			w.note("a shard of %s moves to %s: %v", kind, to.Address(), n.Sharding().Move(limited, kind, r.IntN(8), to.Address()))
		}
	case 3:
		if _, err := n.Membership().Form(limited); err == nil && n.Membership().View().Member() != nil {
			w.violation("%s, which is a member, was told to form a cluster, and did", n.Address())
		}
	default:
		group := []string{"", "near-", "kept-*"}[r.IntN(3)]
		if err := n.Data().AcceptLoss(limited, group); err == nil {
			w.violation("%s has accepted the loss of the keys %q, and nothing was lost", n.Address(), group)
		}
	}
}

func (o operator) slow() {
	o.c.SetLatency(50*time.Millisecond, 300*time.Millisecond)
	o.moment()
	if o.rand.IntN(2) == 0 {
		o.crash()
	}
	o.pause(5*time.Second, 20*time.Second)
	o.c.SetLatency(0, 2*time.Millisecond)
}

// mistype starts a listed machine anew with a list of itself alone, and without its disk. Nobody else may end for
// that, and it joins, since those who run list it (docs/bootstrap.md).
func (o operator) mistype() {
	m := o.machines[o.rand.IntN(seedsListed)]
	o.kill(m)
	o.pause(0, 30*time.Second)
	o.wipe(m)
	m.seeds = []string{m.address}
	o.start(m)
	o.pause(20*time.Second, 40*time.Second)
	for _, other := range o.machines {
		if !other.runs() {
			o.violation("%s has ended, since %s was started with a list of itself: %v", other.address, m.address, other.node.Err())
			o.start(other)
		}
	}
	m.seeds = o.listed(seedsListed)
}

// scaleOut starts machines with a list that names them too, before anybody else has that list.
func (o operator) scaleOut() {
	if len(o.machines) > MaxNodes {
		return
	}
	added := []*machine{o.next()}
	if o.rand.IntN(2) == 0 {
		added = append(added, o.next())
	}
	for _, m := range added {
		m.seeds = o.listed(len(o.machines))
		o.start(m)
	}
}
