// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// measureActivation measures how many entities start in a second: it sends the first
// message to each of many ids.
func measureActivation(ctx context.Context, s rig.Spec, _ *rig.Link) (figure.Outcome, error) {
	settled, node, census, err := crowd(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer dropNode(node)
	cpu, began := rig.CPUTime(), time.Now()
	if err := settled.activate(ctx, s.Senders, s.Entities); err != nil {
		return figure.Outcome{}, err
	}
	elapsed, cpu := time.Since(began), rig.CPUTime()-cpu
	return figure.Outcome{
		Values:     map[string]float64{"rate": float64(s.Entities) / elapsed.Seconds()},
		CPU:        rig.Microseconds(cpu) / float64(s.Entities),
		Duplicated: census.repeated.Load(),
	}, nil
}
