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
	// skewMax is how far the clocks of two users are apart.
	skewMax = time.Minute
)

// An access is what a user has done with a register.
type access struct {
	write bool
	value string
}

type registers struct {
	*world

	guard   sync.Mutex
	moments int64
	of      map[string][]porcupine.Operation
}

func newRegisters(w *world) *registers {
	return &registers{world: w, of: map[string][]porcupine.Operation{}}
}

func (p *registers) join(*clustertest.Node) error { return nil }

func (p *registers) work(ctx context.Context) {
	var working sync.WaitGroup
	for i := range registerUsers {
		r := p.source(fmt.Sprint("registers", i))
		skew := time.Duration(r.Int64N(int64(skewMax)))
		working.Go(func() { // Owner: work, which waits. Ends with ctx.
			for k := 0; k < registerOps && sleep(ctx, r, 4*time.Second); k++ {
				p.step(r, i, fmt.Sprintf("%d.%d", i, k), skew)
			}
		})
	}
	working.Wait()
}

// step writes a register, or reads one.
func (p *registers) step(r *rand.Rand, user int, value string, skew time.Duration) {
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
			return v.Set(at, time.Now().Add(skew).UnixNano(), value), nil
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
	p.of[name] = append(p.of[name], porcupine.Operation{ClientId: user, Input: a, Call: began, Output: output, Return: ended})
}

func (p *registers) judge(ctx context.Context) {
	model := porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			if a := input.(access); a.write {
				return true, a.value
			}
			return state == output, state
		},
	}
	for name := range p.of {
		if !p.read(ctx, p.any(p.rand), registerUsers, name) {
			p.violation("register %s: a majority read fails though nothing is wrong any more", name)
		}
		if !porcupine.CheckOperations(model, p.of[name]) {
			p.violation("register %s is not linearizable: %s", name, history(p.of[name]))
		}
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
