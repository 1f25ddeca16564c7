// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package picture_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership/membershipsim/scenario"
	"github.com/quorate/quorate/sharding/shardingsim"
	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/tools/internal/picture"
)

// The numbers of the kinds of changes that these tests look for.
const (
	life, view, blocked, hosts, leader, shard = 0, 1, 2, 3, 4, 6
)

func paint(t *testing.T, o scenario.Options) (picture.Run, scenario.Result) {
	t.Helper()
	p := picture.New(nil)
	o.Begin = p.Begin
	result, err := scenario.Run(o)
	require.NoError(t, err)
	return p.Finish(nil), result
}

func page(t *testing.T, r picture.Run) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.html")
	require.NoError(t, r.Write(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// latest returns the last value of a kind for two lanes.
func latest(r picture.Run, kind, a, b int64) (v int64, changes int) {
	for _, c := range r.Changes {
		if c[1] == kind && c[2] == a && c[3] == b {
			v = c[4]
			changes++
		}
	}
	return v, changes
}

// An observer changes nothing: the hash of the trace is that of the run without it. Equal seeds give
// equal pages, others do not.
func TestPageOfASeedIsTheSameBytesAndTheRunIsTheSameRun(t *testing.T) {
	o := scenario.Options{Scenario: "split", Nodes: 5, Seed: 3, Duration: 30 * time.Second}
	plain, err := scenario.Run(o)
	require.NoError(t, err)
	first, drawn := paint(t, o)
	require.Equal(t, plain, drawn)
	again, _ := paint(t, o)
	require.Equal(t, page(t, first), page(t, again))
	o.Seed = 4
	other, _ := paint(t, o)
	require.NotEqual(t, first.Messages, other.Messages)
}

func TestSplitIsSeenFromBothSidesAndHeals(t *testing.T) {
	r, result := paint(t, scenario.Options{Scenario: "split", Nodes: 5, Seed: 3})
	require.Len(t, r.Lanes, 5)
	require.Equal(t, "n0", r.Lanes[0], "the port is that of all")
	require.Equal(t, result.Virtual.Microseconds(), r.End)
	require.Equal(t, []string{"split -nodes 5, seed 3", result.Replay}, []string{r.Name, r.Repeat})
	cut, lost := 0, 0
	for _, c := range r.Changes {
		if c[1] == blocked && c[4] == 1 {
			cut++
		}
		if c[1] == view && c[4] > 16 {
			lost++
		}
	}
	require.Positive(t, cut)
	require.Positive(t, lost, "nodes are unreachable for others")
	hosting := int64(0)
	for a := range int64(5) {
		for b := range int64(5) {
			v, changes := latest(r, view, a, b)
			require.EqualValues(t, 3, v, "%d sees %d up in the end", a, b)
			require.Positive(t, changes)
			v, _ = latest(r, blocked, a, b)
			require.Zero(t, v)
		}
		v, _ := latest(r, life, a, 0)
		require.EqualValues(t, 1, v)
		v, _ = latest(r, hosts, a, 0)
		hosting += v
		v, _ = latest(r, leader, a, 0)
		require.Positive(t, v)
	}
	require.GreaterOrEqual(t, hosting, int64(3), "more than half may host")
	sent, gone := 0, 0
	for i := range r.Sent {
		sent, gone = sent+r.Sent[i], gone+r.Lost[i]
	}
	byKind := 0
	for _, k := range r.Kinds {
		byKind += k.Sent
	}
	require.EqualValues(t, result.Stats.Lost, gone)
	require.Equal(t, byKind, sent)
	require.Equal(t, sent, len(r.Messages)+r.Left.Messages, "what is not drawn is counted")
	var kinds [5]int
	for _, m := range r.Marks {
		kinds[m.Kind]++
	}
	for kind, times := range kinds {
		require.Positive(t, times, "marks of kind %d", kind)
	}
}

func TestPageNeedsNothingElse(t *testing.T) {
	r, _ := paint(t, scenario.Options{Scenario: "steady", Nodes: 3, Duration: 10 * time.Second})
	r.Name = `</script><script>alert("x")</script>`
	text := page(t, r)
	require.Contains(t, text, `content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"`)
	require.NotRegexp(t, `(?i)(src|href)\s*=|@import|url\(|fetch\(|https?:`, text)
	require.NotContains(t, text, `alert("x")</script>`, "what a run holds is text")
	data := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindStringSubmatch(text)
	var back picture.Run
	require.NoError(t, json.Unmarshal([]byte(data[1]), &back))
	require.Equal(t, r, back, "the page holds all of it")
}

// A run with many more messages, nodes and changes than a page may hold.
func TestLargeRunStaysWithinTheBoundsAndSaysWhatIsMissing(t *testing.T) {
	r, _ := paint(t, scenario.Options{Scenario: "steady", Nodes: 52, Seed: 1, Duration: 12 * time.Second})
	require.Len(t, r.Lanes, 48)
	require.Equal(t, 4, r.Left.Lanes)
	require.LessOrEqual(t, len(r.Messages), 14_000)
	require.Positive(t, r.Left.Messages)
	require.LessOrEqual(t, len(r.Changes), 40_000+48*48*3)
	require.LessOrEqual(t, len(r.Marks), 4_000)
	require.Less(t, len(page(t, r)), 3<<20)
}

func TestViolationIsShownWithTheEndOfItsTrace(t *testing.T) {
	p := picture.New(nil)
	_, err := scenario.Run(scenario.Options{Scenario: "steady", Nodes: 3, Duration: time.Millisecond, Settle: time.Millisecond, Begin: p.Begin})
	failure := (*simulation.Failure)(nil)
	require.ErrorAs(t, err, &failure)
	r := p.Finish(err)
	require.Equal(t, failure.At.Microseconds(), r.Violation.At)
	require.Contains(t, r.Violation.Text, "not settled")
	require.NotEmpty(t, r.Violation.Trace)
	text := page(t, r)
	require.Contains(t, text, "an invariant broke")
	require.NotContains(t, text, "all invariants held")
	require.Nil(t, p.Finish(errors.New("of another sort")).Violation)
}

func TestShardsAreWithTheirHosts(t *testing.T) {
	all := shardingsim.Scenarios()
	p := picture.New(shardingsim.Hosted)
	for _, s := range all {
		if s.Name != "sharding-orderly" {
			continue
		}
		_, err := s.Run(1, s.Nodes, func(o *simulation.Options) { o.Begin = p.Begin })
		require.NoError(t, err)
	}
	r := p.Finish(nil)
	homes := make(map[int64]int64) // How many host a shard.
	at := make(map[int64]bool)
	for _, c := range r.Changes {
		if c[1] == shard {
			homes[c[2]] += 2*c[4] - 1
			at[c[3]] = true
		}
	}
	require.NotEmpty(t, homes)
	require.Greater(t, len(at), 1, "several nodes host")
	for s, times := range homes {
		require.EqualValues(t, 1, times, "shard %d has one home in the end", s)
	}
	require.True(t, strings.HasPrefix(r.Name, "sharding-orderly"), r.Name)
}
