// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/state/memory"
)

const (
	dueSoon   = 10_000           // Reminders that fall due while a million others wait.
	dueWithin = 10 * time.Second // Over which they are spread.
	dueFirst  = 5 * time.Second  // Until the first of them: all are set by then.
	dueNever  = 24 * time.Hour   // Until those that wait are due.
	setters   = 256              // Callers that set at once.
)

// measureReminders has a node keep very many reminders, then another one, as after a restart of all, and has some fall
// due there. The store is in memory: what a database takes comes on top.
func measureReminders(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
	store := memory.New()
	values := map[string]float64{}
	set, err := fillReminders(ctx, store, s.Entities)
	if err != nil {
		return out, err
	}
	values["set"] = float64(s.Entities) / set.Seconds()
	empty := memoryUsageNow()
	k, err := keepReminders(ctx, store)
	if err != nil {
		return out, err
	}
	defer dropNode(k.node)
	kept, err := harness.Poll(ctx, 5*time.Millisecond, func(time.Duration) (bool, error) {
		return k.service.Stats().Reminders >= s.Entities, nil
	})
	if err != nil {
		return out, fmt.Errorf("%d of %d reminders are kept: %w", k.service.Stats().Reminders, s.Entities, err)
	}
	values["recovery"] = kept.Seconds()
	values["bytes"] = memoryUsageNow().each(empty, s.Entities).all()
	late, err := k.fallDue(ctx, s.Entities)
	values["p50"] = harness.Milliseconds(figure.Percentile(late, 0.5))
	values["p99"] = harness.Milliseconds(figure.Percentile(late, 0.99))
	return figure.Outcome{Values: values, Lost: uint64(dueSoon - len(late))}, err
}

// fillReminders sets many reminders that are not due for long, by a node that is dropped then.
func fillReminders(ctx context.Context, store *memory.Store, n int) (time.Duration, error) {
	k, err := keepReminders(ctx, store)
	if err != nil {
		return 0, err
	}
	defer dropNode(k.node)
	began := time.Now()
	err = k.set(ctx, 0, n, func(int) time.Time { return began.Add(dueNever) })
	return time.Since(began), err
}

// keeper is a node that keeps reminders.
type keeper struct {
	node    *cluster.Node
	service *reminder.Service

	mu   sync.Mutex
	late []time.Duration // How late each delivery began.
}

// keepReminders starts a node that keeps what a store has.
func keepReminders(ctx context.Context, store *memory.Store) (*keeper, error) {
	node, err := startNode(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	k := &keeper{node: node}
	k.service, err = reminder.Start(node, store, reminder.Default())
	if err == nil {
		err = k.service.Target("account", k.deliver)
	}
	if err != nil {
		dropNode(node)
		return nil, err
	}
	return k, nil
}

// deliver notes how late a reminder is.
func (k *keeper) deliver(_ context.Context, f reminder.Fired) error {
	late := time.Since(f.Due)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.late = append(k.late, late)
	return nil
}

// set sets the reminders from one number on, each for an entity of its own.
func (k *keeper) set(ctx context.Context, from, n int, due func(i int) time.Time) error {
	var next atomic.Int64
	return harness.Together(setters, func(int) error {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			err := k.service.Set(ctx, reminder.Reminder{
				Kind: "account", ID: fmt.Sprintf("entity-%029d", from+i), Name: "interest", Due: due(i),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// fallDue sets reminders that are due soon, and returns how late each was delivered.
func (k *keeper) fallDue(ctx context.Context, from int) (late []time.Duration, err error) {
	first := time.Now().Add(dueFirst)
	if err := k.set(ctx, from, dueSoon, func(i int) time.Time { return first.Add(dueWithin * time.Duration(i) / dueSoon) }); err != nil {
		return nil, err
	}
	limit, cancel := context.WithDeadline(ctx, first.Add(3*dueWithin))
	defer cancel()
	_, err = harness.Poll(limit, pollInterval, func(time.Duration) (bool, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		late = k.late
		return len(late) == dueSoon, nil
	})
	if limit.Err() != nil { // What is missing then is lost.
		err = ctx.Err()
	}
	return late, err
}
