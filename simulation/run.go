// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The loop of the world: Run takes events off the heap in the order of time, and
// handle passes each to the script, the checkers, the network or the node that it is
// for. An event of a frozen node waits there; an event of a node that is gone is
// dropped.

// At calls f at a world time, or at once when that time has passed.
func (w *World) At(at time.Duration, f func()) {
	w.push(event{at: max(int64(at), w.now), typ: eventFunc, ref: w.funcs.put(f)})
}

// After calls f when d has passed.
func (w *World) After(d time.Duration, f func()) { w.At(w.Now()+d, f) }

// Run advances the world by d. It returns the first violation of the run, a
// [*Failure], after which the world does nothing more. A panic of a machine is a
// violation.
func (w *World) Run(d time.Duration) (err error) {
	defer func() {
		if v := recover(); v != nil {
			w.Fail(fmt.Errorf("panic: %v\n%s", v, stack()))
			err = w.failure
		}
	}()
	end := w.now + int64(d)
	for w.failure == nil && len(w.heap) > 0 && w.heap[0].at <= end {
		e := w.heap.pop()
		w.now = e.at
		w.stats.Events++
		w.count()
		w.handle(e)
	}
	if w.failure != nil {
		return w.failure
	}
	w.now = end
	return nil
}

// RunUntil advances the world until done returns true, for at most limit. It calls
// done ten times a second, and returns the time that passed.
func (w *World) RunUntil(limit time.Duration, done func() bool) (time.Duration, error) {
	begin := w.Now()
	for !done() {
		if w.Now()-begin >= limit {
			return w.Now() - begin, fmt.Errorf("simulation: not done after %v", limit)
		}
		if err := w.Run(100 * time.Millisecond); err != nil {
			return w.Now() - begin, err
		}
	}
	return w.Now() - begin, nil
}

// maxEventsPerNode is how many events a node may have in a second of the world, on average
// over all nodes: hundreds of times the number in the busiest second of a healthy
// cluster. A higher number means that nodes answer each other without end.
const maxEventsPerNode = 20_000

// count fails the run when there are too many events in a second.
func (w *World) count() {
	if second := w.now / int64(time.Second); second != w.second {
		w.second, w.inSecond = second, 0
	}
	if w.inSecond++; w.inSecond > maxEventsPerNode*max(len(w.places), 1) {
		w.Fail(fmt.Errorf("a storm: %d events in less than a second, of %d nodes", w.inSecond, len(w.places)))
	}
}

// stack returns the stack of a panic, without the calls above the panic.
func stack() string {
	s := string(debug.Stack())
	if _, below, ok := strings.Cut(s, "panic("); ok {
		return below
	}
	return s
}

// input is an input from the script, or the answer of a call.
type input struct {
	to     machine.ID
	in     machine.Input
	answer *pendingCall // The call that in answers; nil if in is no answer.
}

// Input feeds an input to a component of the node at an address, as soon as the node
// is not frozen. If there is no such node or component, it does nothing.
func (w *World) Input(a gossip.Address, s machine.Service, in machine.Input) {
	n := w.Node(a)
	if n == nil {
		return
	}
	if id, ok := n.component(s); ok {
		w.push(event{
			at: w.now, typ: eventInput, place: n.place.index, incarnation: n.incarnation,
			ref: w.inputs.put(input{to: id, in: in}),
		})
	}
}

func (w *World) push(e event) uint64 {
	w.seq++
	e.seq = w.seq
	w.heap.push(e)
	return e.seq
}

func (w *World) handle(e event) {
	switch e.typ {
	case eventFunc:
		w.funcs.take(e.ref)()
	case eventSecond:
		w.push(event{at: e.at + int64(time.Second), typ: eventSecond})
		if err := w.checkpoint(); err != nil {
			w.Fail(err)
			return
		}
		for _, c := range w.checkers {
			if err := c.Second(w); err != nil {
				w.Fail(err)
			}
		}
	case eventPacket:
		w.network.arrive(e)
	default:
		n := w.places[e.place].node
		if n == nil || n.incarnation != e.incarnation {
			w.discard(e)
			return
		}
		if n.frozen && e.typ != eventThaw {
			n.waiting = append(n.waiting, e)
			return
		}
		w.handleNodeEvent(n, e)
	}
}

// handleNodeEvent handles an event of a node that is not frozen.
func (w *World) handleNodeEvent(n *Node, e event) {
	w.stats.Steps++
	switch e.typ {
	case eventTimer:
		n.timerEvent(e)
	case eventPacket:
		w.network.deliver(n, w.network.packets.take(e.ref))
	case eventInput:
		in := w.inputs.take(e.ref)
		if in.answer != nil {
			w.strategies.answered(n, in)
			return
		}
		w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbFed, note: in.in})
		n.step(in.to, in.in)
	case eventThaw:
		w.thaw(n)
	case eventFunc, eventSecond:
	}
}

// discard drops an event whose node is gone.
func (w *World) discard(e event) {
	switch e.typ {
	case eventPacket:
		w.network.packets.take(e.ref)
	case eventInput:
		w.inputs.take(e.ref)
	case eventTimer, eventThaw, eventFunc, eventSecond:
	}
}

// pool holds the values to which events of the heap refer.
type pool[T any] struct {
	values []T
	free   []int32
}

func (p *pool[T]) put(v T) int32 {
	if last := len(p.free) - 1; last >= 0 {
		i := p.free[last]
		p.free = p.free[:last]
		p.values[i] = v
		return i
	}
	p.values = append(p.values, v)
	return int32(len(p.values) - 1)
}

func (p *pool[T]) take(i int32) T {
	var none T
	v := p.values[i]
	p.values[i] = none
	p.free = append(p.free, i)
	return v
}
