// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
)

// progress counts updates, and makes marks of them with the processor time of the peers.
type progress struct {
	trio  *trio
	began time.Time
	done  atomic.Uint64
}

// mark returns how many updates have returned.
func (p *progress) mark(ctx context.Context) (m rig.Mark, err error) {
	m.At, m.Totals.Received = time.Since(p.began), p.done.Load()
	for _, peer := range p.trio.more {
		var l look
		if err := peer.Call(ctx, requestLook, &l); err != nil {
			return m, err
		}
		m.CPU += l.CPU
	}
	return m, nil
}

// keysOf returns the counters of an experiment.
func keysOf(s rig.Spec) (all []ddata.Key[crdt.GCounter]) {
	for i := range s.Entities {
		all = append(all, counter(prefixOf(s), i))
	}
	return all
}

// countEvery is how many updates a sender makes between two looks at whether to stop.
const countEvery = 64

// measureLocalUpdates measures updates that wait for nobody, while they spread.
func measureLocalUpdates(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	t, err := startTrio(ctx, s, k, 1)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer t.end()
	keys, done := keysOf(t.spec), &progress{trio: t, began: time.Now()}
	out, err := rig.Flood{Senders: s.Senders, Time: s.Time, Mark: done.mark, Send: func(ctx context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
		for i := int(sender); !stop.Load(); {
			for range countEvery {
				if err := t.node.add(ctx, keys[i%len(keys)], ddata.Local()); err != nil {
					return n, err
				}
				i += s.Senders
			}
			n += countEvery
			done.done.Add(countEvery)
		}
		return n, nil
	}}.Run(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	err = t.check(ctx, done.done.Load(), &out)
	return out, err
}

// measureMajority measures updates that wait for a majority, and for its disks if the keys
// are durable.
func measureMajority(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	t, err := startTrio(ctx, s, k, 1)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer t.end()
	keys, done := keysOf(t.spec), &progress{trio: t, began: time.Now()}
	out, err := rig.Asking{Askers: s.Senders, Time: s.Time, Mark: done.mark, Ask: func(ctx context.Context, asker uint32, _ uint64) error {
		defer done.done.Add(1)
		return t.node.add(ctx, keys[int(asker)%len(keys)], ddata.Majority())
	}}.Run(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	err = t.check(ctx, done.done.Load(), &out)
	return out, err
}
