// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
)

// The program [registers]: users whose clocks differ write to registers and read them, all at the level of a majority.
// Each register is linearizable: what was acknowledged is in each later read, and what one read has returned later
// ones have too (docs/ddata.md, level Majority). A write whose outcome is unknown may take place at any time after it
// began.

const (
	registerUsers = 3
	registerOps   = 60 // Of a user, at most: what a history costs to judge grows fast.
	// skew is how far the clock of a user is ahead of that of the one before.
	skew = 20 * time.Second
)

// An access is what a user has done with a register.
type access struct {
	write bool
	value string
}

// registerHistory names a part of the history of a register: from its begin, or from a stop of all nodes that it did
// not outlive, to the next such stop.
type registerHistory struct {
	register string
	number   int
}

// A restored register begins its life with a value that a copy had: any one that was ever written.
type restoredValue struct{}

type registers struct {
	*world

	guard   sync.Mutex
	moments int64
	lives   map[string]int          // The number of the present life of a register.
	begins  map[registerHistory]any // What a life begins with, if it is not empty.
	written map[string]map[string]bool
	of      map[registerHistory][]porcupine.Operation
}

func newRegisters(w *world) *registers {
	return &registers{
		world: w, lives: map[string]int{}, begins: map[registerHistory]any{}, written: map[string]map[string]bool{},
		of: map[registerHistory][]porcupine.Operation{},
	}
}

func (p *registers) join(*clustertest.Node) error { return nil }

func (p *registers) work(ctx context.Context) {
	p.users(ctx, "registers", registerUsers, 4*time.Second, func(r *rand.Rand, user, k int) {
		if k < registerOps {
			p.step(r, user, fmt.Sprintf("%d.%d", user, k))
		}
	})
}

// step writes a register, or reads one.
func (p *registers) step(r *rand.Rand, user int, value string) {
	n := p.any(r)
	if n == nil {
		return
	}
	name := prefix(r) + "register"
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if r.IntN(2) == 0 {
		p.read(ctx, n, user, name)
		return
	}
	began := p.moment()
	_, err := ddata.Update(ctx, n, ddata.NewKey[crdt.LWWRegister[string]](name), ddata.Majority(),
		func(at crdt.Origin, v crdt.LWWRegister[string]) (crdt.LWWRegister[string], error) {
			return v.Set(at, time.Now().Add(time.Duration(user)*skew).UnixNano(), value), nil
		})
	switch {
	case err == nil:
		p.happened(user, name, access{true, value}, nil, began, p.moment())
	case !nothing(err):
		p.happened(user, name, access{true, value}, nil, began, math.MaxInt64)
	}
}

func (p *registers) read(ctx context.Context, n *clustertest.Node, user int, name string) bool {
	began := p.moment()
	v, err := ddata.Get(ctx, n, ddata.NewKey[crdt.LWWRegister[string]](name), ddata.Majority())
	if err != nil && !errors.Is(err, ddata.ErrNotFound) {
		return false
	}
	value, _ := v.Value()
	p.happened(user, name, access{}, value, began, p.moment())
	return true
}

// moment numbers what happens.
func (p *registers) moment() int64 {
	p.guard.Lock()
	defer p.guard.Unlock()
	p.moments++
	return p.moments
}

func (p *registers) happened(user int, name string, a access, output any, began, ended int64) {
	p.guard.Lock()
	defer p.guard.Unlock()
	at := registerHistory{name, p.lives[name]}
	p.of[at] = append(p.of[at], porcupine.Operation{ClientId: user, Input: a, Call: began, Output: output, Return: ended})
	if p.written[name] == nil {
		p.written[name] = map[string]bool{"": true}
	}
	if a.write {
		p.written[name][a.value] = true
	}
}

func (p *registers) ended() {
	p.guard.Lock()
	defer p.guard.Unlock()
	for name := range p.written {
		if inMemory(name) {
			p.lives[name]++
		}
	}
}

func (p *registers) copied() func() {
	return func() {
		p.guard.Lock()
		defer p.guard.Unlock()
		for name := range p.written {
			if !inMemory(name) {
				p.lives[name]++
				p.begins[registerHistory{name, p.lives[name]}] = restoredValue{}
			}
		}
	}
}

func (p *registers) judge(ctx context.Context) {
	for name := range p.written {
		if !p.read(ctx, p.any(p.rand), registerUsers, name) {
			p.violation("register %s: a majority read fails though nothing is wrong any more", name)
		}
	}
	for at, operations := range p.of {
		if !porcupine.CheckOperations(p.model(at), operations) {
			p.violation("register %s is not linearizable: %s", at.register, history(operations))
		}
	}
}

// model is a register from the beginning of a life on.
func (p *registers) model(at registerHistory) porcupine.Model {
	return porcupine.Model{
		Init: func() any {
			if value, is := p.begins[at]; is {
				return value
			}
			return ""
		},
		Step: func(state, input, output any) (bool, any) {
			a := input.(access)
			switch _, whatever := state.(restoredValue); {
			case a.write:
				return true, a.value
			case whatever:
				return p.written[at.register][output.(string)], output
			}
			return state == output, state
		},
	}
}

// history is a history in lines.
func history(all []porcupine.Operation) (text string) {
	for _, o := range all {
		if a := o.Input.(access); a.write {
			text += fmt.Sprintf("\n  user %d, %d to %d: writes %s", o.ClientId, o.Call, o.Return, a.value)
		} else {
			text += fmt.Sprintf("\n  user %d, %d to %d: reads %v", o.ClientId, o.Call, o.Return, o.Output)
		}
	}
	return text
}
