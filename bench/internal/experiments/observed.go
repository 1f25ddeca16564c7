// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"net/http"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/prometheus"
	"github.com/quorate/quorate/cluster/telemetry"
)

const (
	// sampled is the share of traces whose spans are recorded.
	sampled = 0.01
	// scrapeInterval is how often metrics are fetched, far more often than in
	// production.
	scrapeInterval = time.Second
	// scrapeTimeout is how long a fetch may take.
	scrapeTimeout = 5 * time.Second
)

// startObserved is [startNode] with the telemetry of production, if the spec wants it:
// metrics are fetched, and spans are recorded and thrown away. The end of ctx ends the
// fetching.
func startObserved(ctx context.Context, s harness.Spec, seeds []string, change func(*cluster.Config)) (*cluster.Node, error) {
	if !s.Telemetry {
		return startNode(ctx, seeds, change)
	}
	traces := sdk.NewTracerProvider(sdk.WithBatcher(tracetest.NewNoopExporter()), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(sampled))))
	node, err := startNode(ctx, seeds, func(c *cluster.Config) {
		change(c)
		c.Management.Address, c.Telemetry.Metrics = "127.0.0.1:0", telemetry.Prometheus
	}, cluster.WithMetrics(prometheus.Endpoint()), cluster.WithTracerProvider(traces))
	if err != nil {
		return nil, errors.Join(err, traces.Shutdown(ctx))
	}
	if err := scrape(ctx, node); err != nil { // Metrics that cannot be fetched would cost nothing.
		return nil, errors.Join(err, node.Close(), traces.Shutdown(ctx))
	}
	// Ends with the node or ctx. It is not waited for: the process ends with the run.
	go func() {
		tick := time.NewTicker(scrapeInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = scrape(ctx, node) // The next one is as good.
			case <-node.Done():
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return node, nil
}

// scrape fetches the metrics of a node once.
func scrape(ctx context.Context, node *cluster.Node) error {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	return fetch(ctx, http.DefaultClient, "http://"+node.ManagementAddress()+"/metrics")
}
