// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"context"
	"fmt"
	"sync/atomic"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
)

// A part of a node that counts its calls anyway, and shows the count at each
// collection.
func Example() {
	reader := sdk.NewManualReader() // A program has an exporter here.
	node := gossip.NodeID{Address: gossip.Address{Host: "10.0.0.1", Port: 7946}, UID: 1}
	var calls atomic.Int64
	m := meter.New(sdk.NewMeterProvider(sdk.WithReader(reader)), "example.org/bank/teller", node)
	stop, err := meter.Observe(m, []meter.Row[int64]{
		meter.Counter("bank.teller.calls", "{call}", "Calls that were answered.", func(n int64, observe meter.Observer) { observe(n) }),
	}, func(context.Context) int64 { return calls.Load() })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop() // When the part ends.
	calls.Add(3)
	var seen metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &seen); err != nil {
		fmt.Println(err)
		return
	}
	scope := seen.ScopeMetrics[0]
	sum, _ := scope.Metrics[0].Data.(metricdata.Sum[int64])
	fmt.Println(scope.Scope.Name, scope.Metrics[0].Name, sum.DataPoints[0].Value)
	// Output: example.org/bank/teller bank.teller.calls 3
}
