// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/singleton"
)

// The program [writer]: a singleton that writes to a register outside of the cluster, with its epoch. Who looks at
// its context and finds it open is the only one, and has the highest epoch that was ever written with.

type writer struct {
	*world

	guard   sync.Mutex
	highest sharding.Epoch
	holder  context.Context //nolint:containedctx // Of the run that has written last: whether it is open is what is asked.
	writes  int
}

func newWriter(w *world) *writer { return &writer{world: w} }

func (p *writer) join(n *clustertest.Node) error {
	return singleton.Start(n, singleton.Config{
		Name: "writer", Log: slog.New(slog.DiscardHandler),
		Run: func(ctx context.Context, epoch sharding.Epoch) error {
			r := p.source(epoch.String())
			for sleep(ctx, r, 200*time.Millisecond) {
				p.write(ctx, n, epoch)
			}
			return ctx.Err()
		},
	})
}

// write writes to the register, if the context is open.
func (p *writer) write(ctx context.Context, n *clustertest.Node, epoch sharding.Epoch) {
	p.guard.Lock()
	defer p.guard.Unlock()
	if ctx.Err() != nil {
		return
	}
	if p.holder != nil && p.holder != ctx && p.holder.Err() == nil {
		p.violation("the writer at %s begins while the context of another one is open", n.Address())
	}
	if epoch.Less(p.highest) {
		p.violation("the writer at %s has epoch %v, and its context is open, though %v has written", n.Address(), epoch, p.highest)
	}
	p.highest, p.holder = epoch, ctx
	p.writes++
}

func (p *writer) work(context.Context) {}

func (p *writer) judge(context.Context) {
	p.guard.Lock()
	before := p.writes
	p.guard.Unlock()
	p.c.Advance(time.Second)
	p.guard.Lock()
	defer p.guard.Unlock()
	if p.writes == before {
		p.violation("the writer does not write though nothing is wrong any more")
	}
}
