// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/machine/meter/metertest"
)

var node = gossip.NodeID{Address: gossip.Address{Host: "127.0.0.1", Port: 7946}, UID: 1}

// Each sort of instrument shows what the callback observes, until it is stopped.
func TestInstrumentsAreObservedUntilTheEnd(t *testing.T) {
	reader := metertest.New()
	m := meter.New(reader.Provider(), "test", node)
	seconds := m.Seconds("s", "Lasts.", .1, 1)
	type counts struct{ a, b int64 }
	stop, err := meter.Observe(m, []meter.Row[counts]{
		meter.Counter("c", "{thing}", "Counts.", func(c counts, observe meter.Observer) {
			observe(c.a, attribute.String("of", "a"))
			observe(c.b, attribute.String("of", "b"))
		}),
		meter.Total("t", "{thing}", "Adds up.", func(c counts) uint64 { return uint64(c.a + c.b) }),
		meter.UpDown("u", "{thing}", "Goes up and down.", func(_ counts, observe meter.Observer) { observe(-2) }),
		meter.Gauge("g", "1", "Shows.", func(_ counts, observe meter.Observer) { observe(5) }),
		meter.FloatGauge("f", "1", "Shows a part.", func(_ counts, observe func(float64, ...attribute.KeyValue)) { observe(.5) }),
	}, func(context.Context) counts { return counts{3, 4} })
	require.NoError(t, err)
	seconds.Record(t.Context(), .25)
	for name, want := range map[string]float64{"c": 7, "t": 7, "u": -2, "g": 5, "f": .5, "s": 1} {
		require.InDelta(t, want, reader.Value(t, name), 0, name)
	}
	require.InDelta(t, 4, reader.Value(t, "c", attribute.String("of", "b")), 0)
	all := reader.Instruments(t)
	require.Len(t, all, 6)
	require.Equal(t, metertest.Instrument{Scope: "test", Version: "(devel)", SchemaURL: meter.SchemaURL, Name: "c", Type: "counter", Unit: "{thing}", Description: "Counts.", Attributes: []string{"of"}}, all[0])
	require.Equal(t, "histogram", all[3].Type)
	require.Equal(t, "up-down counter", all[5].Type)
	stop()
	stop()
	require.Empty(t, reader.Points(t, "g"))
}

// picky is a provider that refuses every instrument, and then callbacks as well.
type picky struct{ noop.MeterProvider }

type pickyMeter struct{ noop.Meter }

var errPicky = errors.New("no")

func (picky) Meter(string, ...metric.MeterOption) metric.Meter { return pickyMeter{} }

func (pickyMeter) Int64ObservableCounter(string, ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	return nil, errPicky
}

func (pickyMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errPicky
}

func (pickyMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errPicky
}

// A provider that refuses prevents metrics, and nothing else.
func TestAProviderThatRefuses(t *testing.T) {
	m := meter.New(picky{}, "test", node)
	histogram := m.Seconds("bad.histogram", "x")
	require.False(t, histogram.Enabled(t.Context()))
	histogram.Record(t.Context(), 1)
	none := func(int, meter.Observer) {}
	stop, err := meter.Observe(m, []meter.Row[int]{meter.Counter("bad.counter", "1", "x", none), meter.Gauge("good", "1", "x", none)},
		func(context.Context) int { return 0 })
	require.ErrorContains(t, err, "bad.counter")
	require.ErrorContains(t, err, "bad.histogram")
	stop()
}

// A part that goes on without its metrics says so in the log, and only then.
func TestMissingMetricsAreLogged(t *testing.T) {
	for provider, want := range map[metric.MeterProvider]string{picky{}: "bad.counter", noop.NewMeterProvider(): ""} {
		var text strings.Builder
		stop := meter.ObserveOrLog(meter.New(provider, "test", node),
			[]meter.Row[int]{meter.Total("bad.counter", "1", "x", func(int) uint64 { return 0 })},
			func(context.Context) int { return 0 }, slog.New(slog.NewTextHandler(&text, nil)))
		stop()
		require.Contains(t, text.String(), want)
		require.Equal(t, want != "", strings.Contains(text.String(), `level=WARN msg="some metrics are missing"`), text.String())
	}
}

// Without a provider nothing is measured, and no callback is called.
func TestTheGlobalProviderDoesNothing(t *testing.T) {
	m := meter.New(nil, "test", node)
	stop, err := meter.Observe(m, nil, func(context.Context) int { panic("nobody collects") })
	require.NoError(t, err)
	stop()
}
