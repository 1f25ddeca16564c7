// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
)

// The metrics of a whole node, and the page that lists them. A node is started with a
// provider that notes each instrument (recorder); the list becomes the tables of the page.
// The tests compare page, attributes, dashboard and alerts with that list.

const (
	page       = "../../docs/observability.md"
	dashboards = "../../docs/grafana"
	begin      = "<!-- The catalogue begins. It is written by: go test ./cluster/prometheus -run TestTheCatalogueIsWhatANodeRegisters -update -->\n"
	end        = "<!-- The catalogue ends. -->\n"
)

var update = flag.Bool("update", false, "write the catalogue of metrics into "+page)

// attributes returns the attributes of each metric that has some.
func attributes() map[string][]string {
	direction, fault, kind := "network.io.direction", "error.type", "quorate.kind"
	all := map[string][]string{
		"quorate.membership.members": {"quorate.member.status"}, "quorate.membership.marks": {"quorate.verdict"},
		"quorate.membership.phi": {"quorate.peer"}, "quorate.membership.gossip.rounds": {"quorate.gossip.round"},
		"quorate.membership.refused": {fault}, "quorate.node.decisions": {"quorate.component", "quorate.decision.topic"},
		"quorate.node.messages": {direction, "quorate.component", "quorate.message.type"},
		"quorate.node.io":       {direction, "quorate.component", "quorate.message.type"},

		"quorate.certificate.left": {"quorate.certificate.role", "quorate.section"},
		"quorate.certificate.life": {"quorate.certificate.role", "quorate.section"},

		"quorate.bootstrap.lookups":             {"quorate.lookup.result"},
		"quorate.strategy.call.duration":        {fault, "quorate.policy"},
		"quorate.transport.connections":         {"quorate.lane", "quorate.side"},
		"quorate.transport.connections.refused": {fault, "quorate.side"},
		"quorate.transport.messages.refused":    {fault, "quorate.lane"},
		"quorate.pubsub.messages.dropped":       {"quorate.pubsub.reason"},
		"quorate.sharding.messages.dropped":     {fault},
		"quorate.sharding.messages.failed":      {fault},
		"quorate.sharding.messages.forged":      {fault},
		"quorate.plugin.call.duration":          {fault, "quorate.plugin", "quorate.plugin.call"},
		"quorate.plugin.start.duration":         {"quorate.plugin"},
		"quorate.plugin.away.duration":          {"quorate.plugin"},
		"quorate.plugin.events":                 {"quorate.plugin", "quorate.plugin.event"},
		"quorate.sharding.messages.refused":     {fault, kind},
		"quorate.sharding.messages.waiting":     {kind, "quorate.queue"},
		"quorate.sharding.ask.duration":         {fault, kind},
		"quorate.sharding.move.duration":        {kind, "quorate.move.outcome"},
		"quorate.sharding.shards":               {kind, "quorate.shard.phase"},
		"quorate.sharding.coordinators.missing": {kind},
		"quorate.sharding.entities.failures":    {"quorate.entity.failure", kind},
		"quorate.sharding.entities.passivated":  {kind, "quorate.passivation.cause"},
		"quorate.sharding.snapshots.lost":       {fault, kind},
		"quorate.sharding.state.ended":          {fault},
	}
	for _, name := range []string{"keys", "tombstones", "memory", "keys.unspread"} {
		all["quorate.ddata."+name] = []string{"quorate.ddata.keys"}
	}
	for _, name := range []string{"records", "io", "calls", "requests", "waiting"} {
		all["quorate.sharding.state."+name] = []string{"quorate.state.operation"}
	}
	for _, name := range []string{"operation.duration", "call.duration"} {
		all["quorate.sharding.state."+name] = []string{fault, "quorate.state.operation"}
	}
	all["quorate.ddata.operation.duration"] = []string{fault, "quorate.ddata.consistency", "quorate.ddata.operation"}
	for _, name := range []string{"messages", "frames", "io", "messages.unhandled"} {
		all["quorate.transport."+name] = []string{direction, "quorate.lane"}
	}
	for _, name := range []string{"messages.waiting", "messages.lost", "frames.resent", "frames.duplicate", "connections.broken"} {
		all["quorate.transport."+name] = []string{"quorate.lane"}
	}
	for _, name := range []string{
		"shards.hosted", "entities", "entities.stuck", "mailbox.deepest", "messages.sent", "messages.received", "messages.handled",
		"entities.started", "entities.restarted", "entities.limited", "entities.limit", "entities.spared", "entities.unseen",
		"snapshots.given", "snapshots.restored",
	} {
		all["quorate.sharding."+name] = []string{kind}
	}
	return all
}

// recorder is a provider that notes the instruments that are made, and measures nothing.
type recorder struct {
	noop.MeterProvider

	mu  sync.Mutex
	all map[string]metertest.Instrument
}

// recorded is a meter of a recorder.
type recorded struct {
	noop.Meter

	of    *recorder
	scope string
}

// Meter returns a meter that notes its instruments.
func (r *recorder) Meter(scope string, _ ...metric.MeterOption) metric.Meter {
	return recorded{of: r, scope: scope}
}

func (m recorded) note(name, kind, unit, description string) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	m.of.all[name] = metertest.Instrument{
		Scope: m.scope, Name: name, Type: kind, Unit: unit, Description: description, Attributes: slices.Sorted(slices.Values(attributes()[name])),
	}
}

// Int64ObservableCounter notes a counter.
func (m recorded) Int64ObservableCounter(name string, opts ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	c := metric.NewInt64ObservableCounterConfig(opts...)
	m.note(name, "counter", c.Unit(), c.Description())
	return m.Meter.Int64ObservableCounter(name, opts...)
}

// Int64ObservableUpDownCounter notes an up-down counter.
func (m recorded) Int64ObservableUpDownCounter(name string, opts ...metric.Int64ObservableUpDownCounterOption) (metric.Int64ObservableUpDownCounter, error) {
	c := metric.NewInt64ObservableUpDownCounterConfig(opts...)
	m.note(name, "up-down counter", c.Unit(), c.Description())
	return m.Meter.Int64ObservableUpDownCounter(name, opts...)
}

// Int64ObservableGauge notes a gauge.
func (m recorded) Int64ObservableGauge(name string, opts ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	c := metric.NewInt64ObservableGaugeConfig(opts...)
	m.note(name, "gauge", c.Unit(), c.Description())
	return m.Meter.Int64ObservableGauge(name, opts...)
}

// Float64ObservableGauge notes a gauge.
func (m recorded) Float64ObservableGauge(name string, opts ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	c := metric.NewFloat64ObservableGaugeConfig(opts...)
	m.note(name, "gauge", c.Unit(), c.Description())
	return m.Meter.Float64ObservableGauge(name, opts...)
}

// Int64Counter notes a counter.
func (m recorded) Int64Counter(name string, opts ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	c := metric.NewInt64CounterConfig(opts...)
	m.note(name, "counter", c.Unit(), c.Description())
	return m.Meter.Int64Counter(name, opts...)
}

// Float64Histogram notes a histogram.
func (m recorded) Float64Histogram(name string, opts ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	c := metric.NewFloat64HistogramConfig(opts...)
	m.note(name, "histogram", c.Unit(), c.Description())
	return m.Meter.Float64Histogram(name, opts...)
}

// catalogue returns every instrument that a whole node registers, and those of a keeper of states, by
// scope and name.
func catalogue(t *testing.T) []metertest.Instrument {
	t.Helper()
	r := &recorder{all: map[string]metertest.Instrument{}}
	path, _ := lone(t, `gateway: {address: "127.0.0.1:0", kinds: [counter]}`)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithMeterProvider(r))...)
	require.NoError(t, err)
	counters(t, node)
	_, err = node.Registry()
	require.NoError(t, err)
	_, err = node.Topics()
	require.NoError(t, err)
	keeper, err := state.NewKeeper(memory.New(), state.Default())
	require.NoError(t, err)
	keeper.Measure(node.MeterProvider(), node.Self())()
	require.NoError(t, node.Close())
	return slices.SortedFunc(maps.Values(r.all), func(a, b metertest.Instrument) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Name, b.Name))
	})
}

// exported returns the name of an instrument in Prometheus, which the exporter gives it.
func exported(t *testing.T, i metertest.Instrument) string {
	t.Helper()
	registry := client.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	require.NoError(t, err)
	meter := sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test")
	unit := metric.WithUnit(i.Unit)
	switch i.Type {
	case "counter":
		c, err := meter.Int64Counter(i.Name, unit)
		require.NoError(t, err)
		c.Add(t.Context(), 1)
	case "up-down counter":
		c, err := meter.Int64UpDownCounter(i.Name, unit)
		require.NoError(t, err)
		c.Add(t.Context(), 1)
	case "gauge":
		g, err := meter.Int64Gauge(i.Name, unit)
		require.NoError(t, err)
		g.Record(t.Context(), 1)
	default:
		h, err := meter.Float64Histogram(i.Name, unit)
		require.NoError(t, err)
		h.Record(t.Context(), 1)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	return families[0].GetName()
}

// table renders the catalogue.
func table(t *testing.T, all []metertest.Instrument) string {
	t.Helper()
	var b strings.Builder
	scope := ""
	for _, i := range all {
		if i.Scope != scope {
			scope = i.Scope
			fmt.Fprintf(&b, "\n#### %s\n\n| metric, and its name in Prometheus | kind | unit | attributes | meaning |\n| --- | --- | --- | --- | --- |\n", path.Base(scope))
		}
		fmt.Fprintf(&b, "| `%s` `%s` | %s | `%s` | %s | %s |\n", i.Name, exported(t, i), i.Type, i.Unit, quoted(i.Attributes), i.Description)
	}
	return b.String() + "\n"
}

func quoted(names []string) string {
	var all []string
	for _, n := range names {
		all = append(all, "`"+n+"`")
	}
	return strings.Join(all, ", ")
}

// The page has exactly the metrics that a node registers, and a keeper.
func TestTheCatalogueIsWhatANodeRegisters(t *testing.T) {
	all := catalogue(t)
	require.Greater(t, len(all), 50)
	named := regexp.MustCompile(`^quorate(\.[a-z]+)+$`)
	for _, i := range all {
		require.Regexp(t, named, i.Name)
		require.NotEmpty(t, i.Unit, i.Name)
		require.NotEmpty(t, i.Description, i.Name)
	}
	for name := range attributes() {
		require.True(t, slices.ContainsFunc(all, func(i metertest.Instrument) bool { return i.Name == name }), "%s is not registered", name)
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s has no line %q", page, begin)
	was, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s has no line %q", page, end)
	want := table(t, all)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+want+end+after), 0o600))
		return
	}
	require.Equal(t, want, was, "%s is not current: go test ./cluster/prometheus -run TestTheCatalogueIsWhatANodeRegisters -update", page)
}

// What two nodes under load measure has the attributes of the page, and no others.
func TestTheAttributesAreThoseOfTheCatalogue(t *testing.T) {
	t.Parallel()
	documented := map[string][]string{}
	for _, i := range catalogue(t) {
		documented[i.Name] = i.Attributes
	}
	reader := metertest.New()
	path, seed := lone(t)
	ctx := patience.Context(t)
	for n := range 2 {
		node, err := cluster.Start(ctx, quiet(cluster.WithFile(path), cluster.WithMeterProvider(reader.Provider()), cluster.WithChange(func(c *cluster.Config) {
			if n > 0 {
				c.Node.Address = free(t)
			}
			c.Membership.SeedNodes = []string{seed}
		}))...)
		require.NoError(t, err)
		defer func() { _ = node.Close() }()
		require.NoError(t, node.AwaitUp(ctx))
		region := counters(t, node)
		for id := range 20 {
			_, err := sharding.Ask[*wrapperspb.Int64Value](ctx, region, fmt.Sprint(id), wrapperspb.Int64(1))
			require.NoError(t, err)
		}
	}
	seen := reader.Instruments(t)
	require.Greater(t, len(seen), 40)
	for _, i := range seen {
		require.Contains(t, documented, i.Name)
		require.Subset(t, documented[i.Name], i.Attributes, i.Name)
	}
}

// names finds what may be the name of a metric.
var names = regexp.MustCompile(`\b(quorate|go|process)_[a-z0-9_]+\b`)

// exports returns the names of metrics that Prometheus has, and of their labels.
func exports(t *testing.T) (known, labels map[string]bool) {
	t.Helper()
	known = map[string]bool{"go_goroutines": true, "process_resident_memory_bytes": true, "process_cpu_seconds_total": true}
	labels = map[string]bool{}
	for _, i := range catalogue(t) {
		name := exported(t, i)
		known[name] = true
		if i.Type == "histogram" {
			known[name+"_bucket"], known[name+"_count"], known[name+"_sum"] = true, true, true
		}
		for _, a := range i.Attributes {
			labels[strings.ReplaceAll(a, ".", "_")] = true
		}
	}
	return known, labels
}

// Every query of a dashboard is about metrics that exist.
func TestTheDashboardsAskForMetricsThatExist(t *testing.T) {
	known, labels := exports(t)
	files, err := filepath.Glob(filepath.Join(dashboards, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var whole any
		require.NoError(t, json.Unmarshal(text, &whole), file)
		queries := expressions(whole)
		require.GreaterOrEqual(t, len(queries), 8, file)
		for _, q := range queries {
			isAboutMetrics(t, q, known, labels)
		}
	}
}

// isAboutMetrics requires that what is asked names metrics, and only those that there are, with labels that these have.
func isAboutMetrics(t *testing.T, text string, known, labels map[string]bool) {
	t.Helper()
	found := 0
	for _, name := range names.FindAllString(text, -1) {
		require.True(t, known[name] || labels[name], "%s in %s", name, text)
		if known[name] {
			found++
		}
	}
	require.NotZero(t, found, "no metric in %s", text)
}

// Every alert that the page proposes is about metrics that exist.
func TestTheAlertsAreAboutMetricsThatExist(t *testing.T) {
	known, labels := exports(t)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	_, alerts, ok := strings.Cut(string(text), "### What to alert on")
	require.True(t, ok)
	alerts, _, _ = strings.Cut(alerts, "### Dashboards")
	found := names.FindAllString(alerts, -1)
	require.Greater(t, len(found), 10)
	for _, name := range found {
		require.True(t, known[name] || labels[name], name)
	}
}

// Every alert in the file of rules is about metrics that exist, and looks at labels that these have.
func TestTheRulesAreAboutMetricsThatExist(t *testing.T) {
	known, labels := exports(t)
	text, err := os.ReadFile("../../deploy/prometheus/rules.yaml")
	require.NoError(t, err)
	alerts := strings.Split(string(text), "- alert: ")[1:]
	require.Greater(t, len(alerts), 15)
	for _, alert := range alerts {
		isAboutMetrics(t, alert, known, labels)
	}
}

// expressions returns every query of a dashboard.
func expressions(v any) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if text, ok := v[key].(string); ok && (key == "expr" || key == "query" && strings.Contains(text, "quorate_")) {
				all = append(all, text)
			} else {
				all = append(all, expressions(v[key])...)
			}
		}
	case []any:
		for _, one := range v {
			all = append(all, expressions(one)...)
		}
	}
	return all
}
