// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
)

// additions is how many elements are added, one after the other, to the large set.
const additions = 100

// measureElement measures what all nodes send when one element is added to a large set: the
// element to each replica, its answer, and what else is sent meanwhile.
func measureElement(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	t, err := startTrio(ctx, s, k, 1)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer t.end()
	if err := t.insert(ctx, 0, s.Entities); err != nil {
		return figure.Outcome{}, err
	}
	if missing, _, err := everywhere(ctx, uint64(s.Entities), t.node.size, t.more, requestSize); err != nil || missing > 0 {
		return figure.Outcome{Lost: missing}, err
	}
	if err := rig.Pause(ctx, s.Time/2); err != nil { // What was sent of the large set is acknowledged.
		return figure.Outcome{}, err
	}
	before, err := t.looks(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	for i := range additions {
		if err := t.insert(ctx, s.Entities+i, 1); err != nil {
			return figure.Outcome{}, err
		}
	}
	after, err := t.looks(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	out := figure.Outcome{
		Values: map[string]float64{"bytes": float64(bytesOf(after)-bytesOf(before)) / float64(additions*len(t.more))},
		CPU:    rig.Microseconds(cpuOf(after)-cpuOf(before)) / additions,
	}
	out.Lost, out.Duplicated, err = everywhere(ctx, uint64(s.Entities+additions), t.node.size, t.more, requestSize)
	return out, err
}

// insert adds n elements in one update, and waits until all replicas have them.
func (t *trio) insert(ctx context.Context, from, n int) error {
	_, err := ddata.Update(ctx, t.node, elements(), ddata.All(), func(at crdt.Origin, v crdt.ORSet[string]) (crdt.ORSet[string], error) {
		for i := range n {
			v = v.Add(at, fmt.Sprintf("element-%08d", from+i))
		}
		return v, nil
	})
	return err
}
