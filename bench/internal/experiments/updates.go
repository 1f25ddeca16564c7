// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
)

// Updates of counters ([updating]) and of a large set ([measureElement]), and the floors of those that
// wait for nobody ([measureMap]) and of those that wait for a disk ([measureDisk]).

// An update measures updates of counters, each of which it adds to done.
type update func(ctx context.Context, t *dataCluster, keys []ddata.Key[crdt.GCounter], done *atomic.Uint64) (figure.Outcome, error)

// updating measures updates on three nodes, and compares what all of them read then.
func updating(measure update) harness.MeasureFunction {
	return func(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
		t, err := startDataCluster(ctx, s, k, 1)
		if err != nil {
			return out, err
		}
		defer t.end()
		var done atomic.Uint64
		if out, err = measure(ctx, t, keysOf(t.spec), &done); err != nil {
			return out, err
		}
		return out, t.check(ctx, done.Load(), &out)
	}
}

// marks makes marks of a count, with the processor time of the peers.
func (t *dataCluster) marks(done *atomic.Uint64) harness.MarkFunction {
	own := harness.Marks(func() harness.Totals { return harness.Totals{Received: done.Load()} }, harness.NoCPU)
	return func(ctx context.Context) (harness.Mark, error) {
		m, err := own(ctx)
		if err != nil {
			return m, err
		}
		others, err := harness.AskAll[replicaReport](ctx, t.more, requestLook)
		m.CPU = total(others).CPU
		return m, err
	}
}

// keysOf returns the counters of an experiment.
func keysOf(s harness.Spec) (all []ddata.Key[crdt.GCounter]) {
	for i := range s.Entities {
		all = append(all, counter(prefixOf(s), i))
	}
	return all
}

// countEvery is how many updates a sender makes between two looks at whether to stop.
const countEvery = 64

// local updates wait for nobody, and spread meanwhile.
func local(ctx context.Context, t *dataCluster, keys []ddata.Key[crdt.GCounter], done *atomic.Uint64) (figure.Outcome, error) {
	return harness.Flood{Senders: t.spec.Senders, Time: t.spec.Time, Mark: t.marks(done), Send: func(ctx context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
		for i := int(sender); !stop.Load(); {
			for range countEvery {
				if err := t.node.add(ctx, keys[i%len(keys)], ddata.Local()); err != nil {
					return n, err
				}
				i += t.spec.Senders
			}
			n += countEvery
			done.Add(countEvery)
		}
		return n, nil
	}}.Run(ctx)
}

// majority updates wait for a majority, and for its disks if the keys are durable.
func majority(ctx context.Context, t *dataCluster, keys []ddata.Key[crdt.GCounter], done *atomic.Uint64) (figure.Outcome, error) {
	return harness.Asking{Askers: t.spec.Senders, Time: t.spec.Time, Mark: t.marks(done), Ask: func(ctx context.Context, asker uint32, _ uint64) error {
		defer done.Add(1)
		return t.node.add(ctx, keys[int(asker)%len(keys)], ddata.Majority())
	}}.Run(ctx)
}

// additions is how many elements are added, one after the other, to the large set.
const additions = 100

// measureElement measures what all nodes send when one element is added to a large set: the
// element to each replica, its answer, and what else is sent meanwhile.
func measureElement(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	t, err := startDataCluster(ctx, s, k, 1)
	if err != nil {
		return out, err
	}
	defer t.end()
	if err := t.insert(ctx, 0, s.Entities); err != nil {
		return out, err
	}
	out.Lost, _, err = everywhere(ctx, uint64(s.Entities), t.node.size, t.more, requestSize)
	if err != nil || out.Lost > 0 {
		return out, err
	}
	if err := harness.Pause(ctx, s.Time/2); err != nil { // What was sent of the large set is acknowledged.
		return out, err
	}
	before, err := t.total(ctx)
	for i := 0; i < additions && err == nil; i++ {
		err = t.insert(ctx, s.Entities+i, 1)
	}
	if err != nil {
		return out, err
	}
	after, err := t.total(ctx)
	if err != nil {
		return out, err
	}
	out.Values = map[string]float64{"bytes": float64(after.Bytes-before.Bytes) / float64(additions*t.more.Len())}
	out.CPU = harness.Microseconds(after.CPU-before.CPU) / additions
	out.Lost, out.Duplicated, err = everywhere(ctx, uint64(s.Entities+additions), t.node.size, t.more, requestSize)
	return out, err
}

// insert adds n elements in one update, and waits until all replicas have them.
func (t *dataCluster) insert(ctx context.Context, from, n int) error {
	_, err := ddata.Update(ctx, t.node, elements(), ddata.All(), func(at crdt.Origin, v crdt.ORSet[string]) (crdt.ORSet[string], error) {
		for i := range n {
			v = v.Add(at, fmt.Sprintf("element-%08d", from+i))
		}
		return v, nil
	})
	return err
}

// measureMap measures how often the counters of a map behind a lock are raised.
func measureMap(ctx context.Context, s harness.Spec, _ *harness.Link) (figure.Outcome, error) {
	var mu sync.Mutex // Guards counters.
	counters := map[string]uint64{}
	keys := keysOf(s)
	sum := func() (sum harness.Totals) {
		mu.Lock()
		defer mu.Unlock()
		for _, n := range counters {
			sum.Received += n
		}
		return sum
	}
	return harness.Flood{Senders: s.Senders, Time: s.Time, Mark: harness.Marks(sum, harness.NoCPU), Send: func(_ context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
		for i := int(sender); !stop.Load(); i += s.Senders {
			name := keys[i%len(keys)].Name()
			mu.Lock()
			counters[name]++
			mu.Unlock()
			n++
		}
		return n, nil
	}}.Run(ctx)
}

// measureDisk measures how many records of one size a file takes that has a batch of them
// on the disk before the next begins.
func measureDisk(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
	dir, err := os.MkdirTemp("", "bench-data-")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var written atomic.Uint64
	batch := make([]byte, s.Size*s.Senders)
	marks := harness.Marks(func() harness.Totals { return harness.Totals{Received: written.Load()} }, harness.NoCPU)
	return harness.Flood{Senders: 1, Time: s.Time, Mark: marks, Send: func(_ context.Context, _ uint32, stop *atomic.Bool) (n uint64, err error) {
		for !stop.Load() {
			if _, err := file.Write(batch); err != nil {
				return n, err
			}
			if err := file.Sync(); err != nil {
				return n, err
			}
			n += uint64(s.Senders)
			written.Store(n)
		}
		return n, nil
	}}.Run(ctx)
}
