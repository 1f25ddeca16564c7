// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/sharding/state/hold"
)

// attrOperation is what was asked of the store: "load" or "save".
const attrOperation = attribute.Key("quorate.state.operation")

// metrics are the instruments of a keeper that is measured.
type metrics struct {
	operations, calls metric.Float64Histogram
	stop              func() // Ends the observation of the table.
}

// Measure has the metrics quorate.sharding.state.* of the keeper go to a provider, under the address of
// the node whose entities it serves, until stop is called, which may be more than once. A nil provider
// means the global one. A keeper that nobody measures counts [Stats] and records nothing else.
//
// The keepers of one node add up. One measures a keeper at a time: Measure ends what an earlier one has
// begun. Calls of Measure come one after the other; all else may go on meanwhile. Instruments that
// cannot be made are missing, and the log says which.
func (k *Keeper) Measure(p metric.MeterProvider, node gossip.NodeID) (stop func()) {
	if before := k.metrics.Swap(nil); before != nil {
		before.stop()
	}
	m := meter.New(p, "github.com/quorate/quorate/sharding/state", node)
	bounds := []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	measured := &metrics{
		operations: m.Seconds("quorate.sharding.state.operation.duration",
			"Time that an instance waited for its load or its save, with all attempts.", bounds...),
		calls: m.Seconds("quorate.sharding.state.call.duration", "Time that one call of the store took.", bounds...),
	}
	measured.stop = meter.ObserveOrLog(m, table(), func(context.Context) *Keeper { return k }, k.log)
	k.metrics.Store(measured)
	return func() {
		k.metrics.CompareAndSwap(measured, nil)
		measured.stop()
	}
}

// table declares what is read of a keeper when metrics are collected.
func table() []meter.Row[*Keeper] {
	return []meter.Row[*Keeper]{
		meter.Counter("quorate.sharding.state.records", "{record}", "Records that were loaded, and changes that were saved.",
			operations(func(t *tally) int64 { return int64(t.done.Load()) })),
		meter.Counter("quorate.sharding.state.io", "By", "Bytes of the states and events in them.",
			operations(func(t *tally) int64 { return int64(t.bytes.Load()) })),
		meter.Counter("quorate.sharding.state.calls", "{call}", "Calls of the store that have ended.",
			operations(func(t *tally) int64 { return int64(t.calls.Load()) })),
		meter.Counter("quorate.sharding.state.requests", "{request}", "Requests in these calls, each attempt counted: divided by the calls, the mean size of a batch.",
			operations(func(t *tally) int64 { return int64(t.requests.Load()) })),
		meter.Total("quorate.sharding.state.calls.failed", "{call}", "Calls among them that have failed, or had no answer in time.",
			func(k *Keeper) uint64 { return k.counts.failed.Load() }),
		meter.UpDown("quorate.sharding.state.waiting", "{request}", "Requests that wait for a call, since as many are under way as may be.",
			func(k *Keeper, observe meter.Observer) {
				observe(int64(k.loads.waiting()), attrOperation.String("load"))
				observe(int64(k.saves.waiting()), attrOperation.String("save"))
			}),
		meter.Counter("quorate.sharding.state.ended", "{instance}",
			"Instances that have ended: a later owner has the record (fenced), somebody else has changed it (foreign), the store gave no answer (unanswered).",
			func(k *Keeper, observe meter.Observer) {
				observe(int64(k.counts.fenced.Load()), meter.Fault.String("fenced"))
				observe(int64(k.counts.foreign.Load()), meter.Fault.String("foreign"))
				observe(int64(k.counts.unanswered.Load()), meter.Fault.String("unanswered"))
			}),
	}
}

// operations is a row that shows the same of loads and of saves.
func operations(of func(*tally) int64) func(*Keeper, meter.Observer) {
	return func(k *Keeper, observe meter.Observer) {
		observe(of(&k.counts.load), attrOperation.String("load"))
		observe(of(&k.counts.save), attrOperation.String("save"))
	}
}

// operated records an operation that is over.
func (k *Keeper) operated(ctx context.Context, op string, took time.Duration, err error) {
	if m := k.metrics.Load(); m != nil {
		record(ctx, m.operations, op, took, wordOf(err))
	}
}

func record(ctx context.Context, h metric.Float64Histogram, op string, took time.Duration, fault string) {
	if !h.Enabled(ctx) {
		return
	}
	attrs := []attribute.KeyValue{attrOperation.String(op)}
	if fault != "" {
		attrs = append(attrs, meter.Fault.String(fault))
	}
	h.Record(ctx, took.Seconds(), metric.WithAttributes(attrs...))
}

// wordOf returns why an operation has failed as the value of an attribute; empty if it has not.
func wordOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, hold.ErrFenced):
		return "fenced"
	case errors.Is(err, hold.ErrForeign):
		return "foreign"
	default:
		return "unanswered"
	}
}
