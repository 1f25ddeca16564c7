// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/quorate/quorate/cluster/prometheus"
	"github.com/quorate/quorate/cluster/telemetry"
)

// The metrics of a node, as Prometheus fetches them. A node that is started with
// cluster.WithMetrics(prometheus.Endpoint()), and whose file has telemetry.metrics:
// prometheus, does all of this itself.
func ExampleEndpoint() {
	cfg := telemetry.Default()
	cfg.Metrics, cfg.ProcessMetrics = telemetry.Prometheus, false
	shown, err := prometheus.Endpoint().Open(cfg, "bank", "10.0.0.1:7946", slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = shown.Close() }()
	visits, err := shown.MeterProvider().Meter("example").Int64Counter("visits")
	if err != nil {
		fmt.Println(err)
		return
	}
	visits.Add(context.Background(), 3)
	answer := httptest.NewRecorder()
	shown.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "visits") {
			fmt.Print(line)
		}
	}
	// Output: visits_total 3
}
