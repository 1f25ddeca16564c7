// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package deploytest

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Each alert is evaluated by Prometheus every 15 s over series in which it must fire, and over others,
// close to these, in which it must not. The names of metrics are compared with those of a
// node where those are listed, in cluster/prometheus.

// root is the root of the repository.
const root = "../.."

// alerts reads the rules. The file is decoded strictly, and each expression and template is parsed.
func alerts(t *testing.T, text []byte) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	require.Len(t, groups.Groups, 1)
	return groups.Groups[0].Rules
}

func rulesFile(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "prometheus", "rules.yaml"))
	require.NoError(t, err)
	return text
}

const node = `job="visits",instance="a"`

// trial is the series of one alert, in the notation of promtool: every 15 s a value, and 20 minutes of
// them. A series that begins with = stands at one value.
type trial struct {
	fires, quiet []string
	says         string // Part of the summary when the alert fires.
}

// trials are those of all alerts.
var trials = map[string]trial{
	"QuorateNobodyAnswers": {
		fires: []string{`other{} =1`}, quiet: []string{`quorate_membership_standing{` + node + `} =0`}, says: "No node",
	},
	"QuorateNodeWithoutStanding": {
		fires: []string{`quorate_membership_standing{` + node + `} =0`, `quorate_membership_standing{job="visits",instance="b"} =1`},
		quiet: []string{`quorate_membership_standing{` + node + `} 0 0 0 1x77`}, says: "a may host nothing",
	},
	"QuorateMemberUnreachable": {
		fires: []string{`quorate_membership_unreachable{` + node + `} =2`}, quiet: []string{`quorate_membership_unreachable{` + node + `} 1 1 1 0x77`}, says: "2 members",
	},
	"QuorateNotConverged": {
		fires: []string{`quorate_membership_converged{` + node + `} =0`}, quiet: []string{`quorate_membership_converged{` + node + `} 0x18 1x60`},
	},
	"QuorateTwoClusters": {
		fires: []string{`quorate_membership_members{` + node + `,quorate_member_status="up"} =3`, `quorate_membership_members{job="visits",instance="b",quorate_member_status="up"} =2`},
		quiet: []string{
			`quorate_membership_members{` + node + `,quorate_member_status="up"} =3`, `quorate_membership_members{job="visits",instance="b",quorate_member_status="up"} =2`,
			`quorate_membership_members{job="visits",instance="b",quorate_member_status="leaving"} =1`, `quorate_membership_members{job="bank",instance="c",quorate_member_status="up"} =9`,
		},
	},
	"QuorateStandingLostAgain": {
		fires: []string{`quorate_membership_standing_lost_total{` + node + `} 0x10 2x10 4x10 6x50`}, quiet: []string{`quorate_membership_standing_lost_total{` + node + `} 0x10 1x70`},
	},
	"QuorateShardsWithoutHome": {
		fires: []string{`quorate_sharding_shards{` + node + `,quorate_kind="page",quorate_shard_phase="open"} =4`},
		quiet: []string{`quorate_sharding_shards{` + node + `,quorate_kind="page",quorate_shard_phase="moving"} =4`}, says: "4 shards of page",
	},
	"QuorateKindWithoutCoordinator": {
		fires: []string{`quorate_sharding_coordinators_missing{` + node + `,quorate_kind="page"} =1`},
		quiet: []string{`quorate_sharding_coordinators_missing{` + node + `,quorate_kind="page"} 1 1 1 0x77`}, says: "coordinate page",
	},
	"QuorateProtocolViolation": {
		fires: []string{`quorate_sharding_violations_total{` + node + `} 0x40 1x40`}, quiet: []string{`quorate_sharding_violations_total{` + node + `} =1`},
	},
	"QuorateAsksFail": {
		fires: []string{`quorate_sharding_ask_duration_seconds_count{` + node + `,error_type="overloaded"} 0+3x80`, `quorate_sharding_ask_duration_seconds_count{` + node + `,error_type=""} 0+97x80`},
		quiet: []string{`quorate_sharding_ask_duration_seconds_count{` + node + `,error_type="overloaded"} 0+3x80`, `quorate_sharding_ask_duration_seconds_count{` + node + `,error_type=""} 0+997x80`},
		says:  "3% of asks",
	},
	"QuorateAsksAreSlow":       slow("quorate_sharding_ask_duration_seconds_bucket"),
	"QuorateHeartbeatsAreSlow": slow("quorate_membership_heartbeat_duration_seconds_bucket"),
	"QuorateEntitiesStuck": {
		fires: []string{`quorate_sharding_entities_stuck{` + node + `,quorate_kind="page"} =1`}, quiet: []string{`quorate_sharding_entities_stuck{` + node + `,quorate_kind="page"} 1x15 0x65`},
	},
	"QuorateTellsLost": {
		fires: []string{`quorate_sharding_messages_failed_total{` + node + `,error_type="timeout"} 0x70 5x10`}, quiet: []string{`quorate_sharding_messages_failed_total{` + node + `,error_type="timeout"} =5`},
	},
	"QuorateInboxFills": {
		fires: []string{`quorate_node_inbox{` + node + `} =1001`}, quiet: []string{`quorate_node_inbox{` + node + `} =1000`},
	},
	"QuorateConnectionsRefused": {
		fires: []string{`quorate_transport_connections_refused_total{` + node + `,error_type="certificate"} 0+1x80`},
		quiet: []string{`quorate_transport_connections_refused_total{` + node + `,error_type="certificate"} 0x70 3x10`}, says: "certificate",
	},
	"QuorateCertificateExpiresSoon": {
		fires: expiring(20, 90), quiet: slices.Concat(expiring(40, 365), expiring(0.5, 1)), says: "of transport.tls of a expires in 20d",
	},
	"QuorateCertificateExpires": {
		fires: expiring(0.5, 90), quiet: slices.Concat(expiring(2, 90), expiring(0.5, 1)), says: "of transport.tls of a expires in 12h",
	},
	"QuorateConnectionsBreak": {
		fires: []string{`quorate_transport_connections_broken_total{` + node + `} 0+3x80`}, quiet: []string{`quorate_transport_connections_broken_total{` + node + `} 0+1x80`},
	},
	"QuorateStrategyDoesNotAnswer": {
		fires: []string{`quorate_strategy_calls_abandoned_total{` + node + `} 0x70 1x10`}, quiet: []string{`quorate_strategy_calls_abandoned_total{` + node + `} =1`},
	},
	"QuoratePluginComesAndGoes": {
		fires: []string{`quorate_plugin_events_total{` + node + `,quorate_plugin="witness",quorate_plugin_event="exited"} 0x50 0+1x30`},
		quiet: []string{`quorate_plugin_events_total{` + node + `,quorate_plugin="witness",quorate_plugin_event="swapped"} 0+1x80`}, says: "witness",
	},
	"QuoratePluginRestartsAgain": {
		fires: []string{`quorate_plugin_events_total{` + node + `,quorate_plugin="witness",quorate_plugin_event="restarted"} 0x5 1x15 2x15 3x15 4x15 5x15`},
		quiet: []string{
			`quorate_plugin_events_total{` + node + `,quorate_plugin="witness",quorate_plugin_event="restarted"} 0x5 1x15 2x15 3x45`,
			`quorate_plugin_events_total{` + node + `,quorate_plugin="witness",quorate_plugin_event="started"} 0+1x80`,
		}, says: "witness",
	},
	"QuoratePluginBreakerOpen": {
		// The series appears when the breaker opens for the first time.
		fires: []string{`quorate_plugin_events_total{` + node + `,quorate_plugin="witness",quorate_plugin_event="broken"} _x70 1x10`},
		quiet: []string{
			// It has closed since.
			`quorate_plugin_events_total{` + node + `,quorate_plugin="witness",quorate_plugin_event="broken"} 0x20 1x60`,
			`quorate_plugin_events_total{` + node + `,quorate_plugin="witness",quorate_plugin_event="restarted"} 0+1x80`,
		}, says: "witness of a is open",
	},
	"QuoratePluginCallsFail": {
		fires: []string{calls(`,error_type="timeout"`) + ` 0+2x80`, calls("") + ` 0+8x80`},
		quiet: []string{
			calls(`,error_type="timeout"`) + ` 0+1x80`, calls("") + ` 0+19x80`, // Fewer than a share,
			// Or only for minutes.
			`quorate_plugin_call_duration_seconds_count{` + node + `,quorate_plugin="other",error_type="timeout"} 0x60 5x20`,
		}, says: "20% of calls of the plugin witness",
	},
	"QuorateDiskWasPutBack": {
		fires: []string{`quorate_ddata_store_older_total{` + node + `} 0x40 1x40`}, quiet: []string{`quorate_ddata_store_older_total{` + node + `} =1`},
	},
	"QuorateDataWithoutMajority": {
		fires: []string{`quorate_ddata_quorums_lost_total{` + node + `} 0x50 1x30`}, quiet: []string{`quorate_ddata_quorums_lost_total{` + node + `} 1x80`},
	},
	"QuorateDataGoneOnWithout": {
		fires: []string{`quorate_ddata_quorums_forgone_total{` + node + `} 0x40 1x40`}, quiet: []string{`quorate_ddata_quorums_forgone_total{` + node + `} =1`},
	},
	"QuorateStoreFails": {
		fires: []string{`quorate_ddata_store_failures_total{` + node + `} 0+1x80`}, quiet: []string{`quorate_ddata_store_failures_total{` + node + `} 0x70 1x10`},
	},
}

// expiring is a certificate that was made for some days, and has some left.
func expiring(left, life float64) []string {
	of := fmt.Sprintf(`{%s,quorate_section="transport.tls",quorate_certificate_role="own",days="%v"} =`, node, life)
	return []string{fmt.Sprintf("quorate_certificate_left_seconds%s%.0f", of, left*86400), fmt.Sprintf("quorate_certificate_life_seconds%s%.0f", of, life*86400)}
}

// calls is the series of the calls of a plugin.
func calls(more string) string {
	return `quorate_plugin_call_duration_seconds_count{` + node + `,quorate_plugin="witness",quorate_plugin_call="decide"` + more + `}`
}

// slow is the trial of an alert on a quantile: two in a hundred take more than half a second, or one in
// a thousand does.
func slow(metric string) trial {
	series := func(fast string) []string {
		return []string{
			metric + `{` + node + `,le="0.5"} ` + fast, metric + `{` + node + `,le="1"} 0+1000x80`, metric + `{` + node + `,le="+Inf"} 0+1000x80`,
		}
	}
	return trial{fires: series("0+980x80"), quiet: series("0+999x80")}
}

// fired evaluates an alert every 15 s for 20 minutes over the series, and returns the summaries of
// those that fire at the end.
func fired(t *testing.T, rule rulefmt.Rule, series []string) []string {
	t.Helper()
	var load strings.Builder
	load.WriteString("load 15s\n")
	for _, s := range series {
		if name, value, constant := strings.Cut(s, "} ="); constant {
			s = name + "} " + value + "x80"
		}
		load.WriteString("  " + s + "\n")
	}
	return firing(t, rule, promqltest.LoadedStorage(t, load.String()), time.Unix(0, 0), time.Unix(20*60, 0))
}

// firing evaluates an alert once an interval, and returns the summaries of those that fire at the end.
func firing(t *testing.T, rule rulefmt.Rule, over storage.Queryable, from, to time.Time) (summaries []string) {
	t.Helper()
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
	require.NoError(t, err)
	alert := rules.NewAlertingRule(rule.Alert, expr, time.Duration(rule.For), 0, labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations),
		labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	for at := from; !at.After(to); at = at.Add(interval) {
		_, err := alert.Eval(t.Context(), 0, at, rules.EngineQueryFunc(engine, over), &url.URL{}, 0)
		require.NoError(t, err)
	}
	for _, a := range alert.ActiveAlerts() {
		if a.State == rules.StateFiring {
			summaries = append(summaries, a.Annotations.Get("summary"))
		}
	}
	return summaries
}

// Every alert has a trial, fires when it must, and says what it is about; over series that are close
// to those it stays quiet.
func TestAlertsFireWhenTheyMust(t *testing.T) {
	all := alerts(t, rulesFile(t))
	require.Len(t, all, len(trials))
	for _, rule := range all {
		t.Run(rule.Alert, func(t *testing.T) {
			trial, known := trials[rule.Alert]
			require.True(t, known, "an alert without a trial")
			require.Contains(t, []string{"page", "ticket"}, rule.Labels["severity"])
			summaries := fired(t, rule, trial.fires)
			require.Len(t, summaries, 1, "it fires once")
			require.Contains(t, summaries[0], trial.says)
			require.NotContains(t, summaries[0], "error", "a template that fails says so")
			require.Empty(t, fired(t, rule, trial.quiet))
		})
	}
}

// The alert about a breaker fires at the first opening, when its series is new, as its trial says; and at a later one,
// when it is not.
func TestTheBreakerOpensForTheSecondTime(t *testing.T) {
	all := alerts(t, rulesFile(t))
	i := slices.IndexFunc(all, func(r rulefmt.Rule) bool { return r.Alert == "QuoratePluginBreakerOpen" })
	require.Len(t, fired(t, all[i], []string{`quorate_plugin_events_total{` + node + `,quorate_plugin="witness",quorate_plugin_event="broken"} 1x70 2x10`}), 1)
}

// The rules for the Prometheus operator are those of the file.
func TestTheRulesOfTheOperatorAreTheSame(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy", "kubernetes", "monitoring", "rules.yaml"))
	require.NoError(t, err)
	var object struct{ Spec any }
	require.NoError(t, yaml.Unmarshal(text, &object))
	spec, err := yaml.Marshal(object.Spec)
	require.NoError(t, err)
	require.Equal(t, alerts(t, rulesFile(t)), alerts(t, spec))
}

// What is wrong with a file of rules is found.
func TestFaultsOfRulesAreFound(t *testing.T) {
	good := string(rulesFile(t))
	for was, is := range map[string]string{
		"for: 2m": "fro: 2m", "absent(": "absnt(", "{{ $value | humanizePercentage }}": "{{ $value | percent }}", "alert: QuorateTellsLost": "alert: ''",
	} {
		require.Contains(t, good, was)
		_, errs := rulefmt.Parse([]byte(strings.Replace(good, was, is, 1)), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		require.NotEmpty(t, errs, is)
	}
}
