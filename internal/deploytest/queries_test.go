// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package deploytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/prometheus"
	"github.com/quorate/quorate/cluster/telemetry"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
)

// Three whole nodes run in virtual time, with messages and nothing that goes wrong. Every 15 s each of them is
// scraped at the handler of its endpoint for Prometheus. The scrapes then go into the database of Prometheus by its
// own parser, and its engine evaluates each query of the dashboards and each alert over them.

// interval is the time between two scrapes, and between two evaluations of an alert.
const interval = 15 * time.Second

// quietly are the queries and alerts without data in such a cluster, and why. A query is named by its dashboard, its
// panel and its letter.
var quietly = map[string]string{
	"QuorateAsksFail":               "no ask fails",
	"QuorateCertificateExpires":     "the network in memory has no certificates",
	"QuorateCertificateExpiresSoon": "the network in memory has no certificates",
	"QuorateConnectionsRefused":     "no connection is refused",
	"QuoratePluginComesAndGoes":     noPlugin,
	"QuoratePluginRestartsAgain":    noPlugin,
	"QuoratePluginBreakerOpen":      noPlugin,
	"QuoratePluginCallsFail":        noPlugin,

	"quorate-application: Asks that failed, A":   "no ask fails",
	"quorate: Connections refused, A":            "no connection is refused",
	"quorate: Decisions, A":                      "nothing was decided within the last minute",
	"quorate-application: Failed and dropped, B": "nothing is dropped",
	"quorate: Moves, A":                          "no shard moves, since no member comes or goes",
	"quorate: Moves, B":                          "no shard moves, since no member comes or goes",
	"quorate-application: Refused, A":            "no message is refused",
	"quorate: Operations that failed, A":         "no operation on replicated data fails",
	"quorate: Strategies, A":                     "no strategy that is called is set",

	"quorate-plugins: $plugin":                        noPlugin,
	"quorate-plugins: Calls, A":                       noPlugin,
	"quorate-plugins: Duration of calls, p99, A":      noPlugin,
	"quorate-plugins: Failed calls, A":                noPlugin,
	"quorate-plugins: Processes, A":                   noPlugin,
	"quorate-plugins: Time to start, p99, A":          noPlugin,
	"quorate-plugins: Time without a process, p99, A": noPlugin,
	"quorate-plugins: Troubles, A":                    noPlugin,
}

// perhaps are the queries whose series are there or not by the order in which goroutines run, and why.
var perhaps = map[string]string{
	"quorate: Refusals, A": "a node that joins may be refused at first, and then asks again",
}

const noPlugin = "a plugin is a process, which cannot run in virtual time"

// scrape is what one node has answered.
type scrape struct {
	at                          time.Time
	instance, body, contentType string
}

// deposit adds a number to the saved state of an entity, and answers with the sum.
func deposit(c *state.Context[int64], add *wrapperspb.Int64Value) error {
	*c.State() += add.GetValue()
	return c.Reply(wrapperspb.Int64(*c.State()))
}

// account starts the kind "account" on a node, with a keeper of states that is measured.
func account(t *testing.T, node *clustertest.Node, store *memory.Store) *sharding.Region[*wrapperspb.Int64Value] {
	t.Helper()
	keeper, err := state.NewKeeper(store, state.Default())
	require.NoError(t, err)
	t.Cleanup(keeper.Measure(node.MeterProvider(), node.Self()))
	region, err := sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "account", New: state.Snapshots(keeper, state.JSON[int64](), deposit),
	})
	require.NoError(t, err)
	return region
}

// scrapes runs the cluster for so many intervals, and returns what its nodes have answered.
func scrapes(t *testing.T, rounds int) (all []scrape) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, store, shown := clustertest.Start(t, 0), memory.New(), map[*clustertest.Node]telemetry.Metrics{}
		for i := range 3 {
			metrics, err := prometheus.Endpoint().Open(telemetry.Default(), "bank", fmt.Sprint(i), slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, metrics.Close()) })
			node := c.Add(clustertest.WithOptions(cluster.WithMeterProvider(metrics.MeterProvider())),
				clustertest.WithConfig("membership: {seed-nodes: [10.0.0.1:7946]}"))
			shown[node] = metrics
		}
		c.AwaitConverged()
		var accounts []*sharding.Region[*wrapperspb.Int64Value]
		var topics []*pubsub.Topic[int]
		for _, node := range c.Nodes() {
			accounts = append(accounts, account(t, node, store))
			all, err := node.Topics()
			require.NoError(t, err)
			topic, err := pubsub.NewTopic(all, "rates", pubsub.JSON[int]{})
			require.NoError(t, err)
			topics = append(topics, topic)
		}
		for round := range rounds {
			for i, node := range c.Nodes() {
				for entity := range 10 {
					_, err := sharding.Ask[*wrapperspb.Int64Value](t.Context(), accounts[i], fmt.Sprint(entity), wrapperspb.Int64(1))
					require.NoError(t, err)
					require.NoError(t, accounts[i].Tell(t.Context(), fmt.Sprint(entity), wrapperspb.Int64(1)))
				}
				require.NoError(t, topics[i].Publish(t.Context(), round))
				_, err := ddata.Update(t.Context(), node.Data(), ddata.NewKey[crdt.GCounter]("rounds"), ddata.Majority(),
					func(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v.Add(at, 1), nil })
				require.NoError(t, err)
			}
			c.Advance(interval)
			for node, metrics := range shown {
				answer := httptest.NewRecorder()
				metrics.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
				require.Equal(t, 200, answer.Code)
				all = append(all, scrape{time.Now(), node.Address(), answer.Body.String(), answer.Header().Get("Content-Type")})
			}
		}
	})
	return all
}

// stored puts scrapes into a database.
func stored(t *testing.T, all []scrape) *teststorage.TestStorage {
	t.Helper()
	db, symbols := teststorage.New(t), labels.NewSymbolTable()
	for _, s := range all {
		text, err := textparse.New([]byte(s.body), s.contentType, symbols, textparse.ParserOptions{})
		require.NoError(t, err)
		into := db.AppenderV2(t.Context())
		for {
			entry, err := text.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if entry != textparse.EntrySeries {
				continue
			}
			var of labels.Labels
			text.Labels(&of)
			_, _, value := text.Series()
			of = labels.NewBuilder(of).Set("job", "bank").Set("instance", s.instance).Labels()
			_, err = into.Append(0, of, 0, s.at.UnixMilli(), value, nil, nil, storage.AOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, into.Commit())
	}
	return db
}

// dashboard is the part of a file of Grafana that holds queries.
type dashboard struct {
	file                    string
	UID, Title, Description string
	Templating              struct {
		List []variable
	}
	Panels []struct {
		Title   string
		Targets []struct{ RefID, Expr string }
	}
}

// variable is what a reader chooses on a dashboard.
type variable struct{ Name, Label, Type, Query, AllValue string }

// boards reads the dashboards.
func boards(t *testing.T) (all []dashboard) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "grafana", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		one := dashboard{file: filepath.Base(file)}
		require.NoError(t, json.Unmarshal(text, &one), file)
		all = append(all, one)
	}
	return all
}

// valuesOf finds the query of a variable: the series, and the label whose values are the choices.
var valuesOf = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// queries returns what a dashboard asks for, by name. Variables have the values that Grafana gives them for All, and
// $__rate_interval is four times the interval, as it is there.
func (d dashboard) queries(t *testing.T) map[string]string {
	t.Helper()
	replaced, all := []string{"$__rate_interval", (4 * interval).String()}, map[string]string{}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			replaced = append(replaced, "$"+v.Name, v.AllValue)
		}
	}
	filled := strings.NewReplacer(replaced...)
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			found := valuesOf.FindStringSubmatch(v.Query)
			require.Len(t, found, 3, "%s: $%s", d.UID, v.Name)
			all[d.UID+": $"+v.Name] = fmt.Sprintf(`count by (%s) (%s)`, found[2], filled.Replace(found[1]))
		}
	}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			name := fmt.Sprintf("%s: %s, %s", d.UID, p.Title, q.RefID)
			require.NotContains(t, all, name, "two queries of one name")
			all[name] = filled.Replace(q.Expr)
		}
	}
	return all
}

// prober asks a database at one time.
type prober struct {
	engine *promql.Engine
	db     storage.Queryable
	at     time.Time
}

// numbers returns how many series a query returns at the time whose value is a number.
func (p prober) numbers(t *testing.T, query string) (n int) {
	t.Helper()
	asked, err := p.engine.NewInstantQuery(t.Context(), p.db, nil, query, p.at)
	require.NoError(t, err, query)
	defer asked.Close()
	result := asked.Exec(t.Context())
	require.NoError(t, result.Err, query)
	require.Empty(t, result.Warnings.AsErrors(), query)
	found, err := result.Vector()
	require.NoError(t, err, query)
	for _, sample := range found {
		if !math.IsNaN(sample.F) {
			n++
		}
	}
	return n
}

// selects reports whether each selector of a query finds series.
func (p prober) selects(t *testing.T, query string) bool {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	require.NoError(t, err, query)
	whole := true
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, is := node.(*parser.VectorSelector); is {
			whole = whole && p.numbers(t, s.String()) > 0
		}
		return nil
	})
	return whole
}

// Each query of the dashboards and each alert has data from a cluster in which nothing goes wrong, but for those that
// are known to be about events. No alert fires there.
func TestQueriesAndAlertsOverAQuietCluster(t *testing.T) {
	all := scrapes(t, 61)
	db := stored(t, all)
	from, to := all[0].at, all[len(all)-1].at
	p := prober{engine: promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery), db: db, at: to}
	known, without := map[string]bool{}, map[string]bool{}
	for _, board := range boards(t) {
		for name, query := range board.queries(t) {
			known[name] = true
			if !p.selects(t, query) || p.numbers(t, query) == 0 {
				without[name] = true
			}
		}
	}
	for _, rule := range alerts(t, rulesFile(t)) {
		if !p.selects(t, rule.Expr) {
			without[rule.Alert] = true
		}
		require.Empty(t, firing(t, rule, db, from, to), rule.Alert)
	}
	for name := range perhaps {
		require.True(t, known[name], "%s is no query", name)
		delete(without, name)
	}
	require.Equal(t, slices.Sorted(maps.Keys(quietly)), slices.Sorted(maps.Keys(without)), "what has no data differs from the list")
}

// A dashboard says what it is for, and is named on the page. A variable is defined alike wherever it is: each dashboard
// is filtered by job and node, and has no other variables than those that its queries use.
func TestTheDashboardsAreOfOneKind(t *testing.T) {
	all, defined, uids := boards(t), map[string]variable{}, map[string]bool{}
	require.Len(t, all, 3)
	for _, board := range all {
		require.NotEmpty(t, board.Title)
		require.NotEmpty(t, board.Description, board.Title)
		require.False(t, uids[board.UID], "%s: two dashboards have the uid %s", board.Title, board.UID)
		uids[board.UID] = true
		require.Contains(t, page(t, "observability.md"), "| [grafana/"+board.file+"](grafana/"+board.file+") |")
		require.GreaterOrEqual(t, len(board.Templating.List), 3)
		for i, name := range []string{"datasource", "job", "instance"} {
			require.Equal(t, name, board.Templating.List[i].Name, board.Title)
		}
		for _, v := range board.Templating.List {
			if _, known := defined[v.Name]; !known {
				defined[v.Name] = v
			}
			require.Equal(t, defined[v.Name], v, board.Title)
			used := v.Type == "datasource"
			for _, p := range board.Panels {
				for _, q := range p.Targets {
					used = used || strings.Contains(q.Expr, `=~"$`+v.Name+`"`)
				}
			}
			require.True(t, used, "%s: no query uses $%s", board.Title, v.Name)
		}
	}
}
