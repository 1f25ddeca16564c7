// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
)

// What one poll finds: the members must be there, everything else may be missing.

// Source asks a node.
type Source interface {
	// Get asks for a path, and decodes the answer. It returns within a bounded time.
	Get(path string, query url.Values, into any) error
	// Text asks for a path whose answer is no JSON.
	Text(path string) (string, error)
}

// The bounds of a poll.
const (
	decisionsAsked = 50
	maxKinds       = 16     // Kinds whose shards are asked for.
	maxShards      = 20_000 // Of a kind with more, homes are not asked for.
)

// Snapshot is the cluster as a node saw it at a moment.
type Snapshot struct {
	At        time.Time                 `json:"at"`
	Members   management.ClusterMembers `json:"members"`
	NotReady  []string                  `json:"notReady,omitempty"` // Why the node is not ready; empty if it is, or does not say.
	Kinds     []Kind                    `json:"kinds"`
	Decisions []management.Decision     `json:"decisions"` // The last ones of this node, oldest first.
	// Counters are totals of the node since it began, if it shows metrics, by the names in [Rates].
	Counters map[string]float64 `json:"counters,omitempty"`
	Missing  []Missing          `json:"missing,omitempty"` // What could not be found out.
}

// Kind is a kind of entity, and where its shards live.
type Kind struct {
	management.Kind
	Homes    []Home `json:"homes,omitempty"`    // How many shards live on each node, by node.
	Homeless int    `json:"homeless,omitempty"` // Shards without a home that this node knows of.
	Stopping int    `json:"stopping,omitempty"` // Shards that stop on this node.
	Entities int    `json:"entities"`           // Entities that live on this node.
	Waiting  int    `json:"waiting"`            // Messages that wait on this node.

	at []string // The home of each shard by number.
}

// Home says how many shards a node hosts.
type Home struct {
	Node   string `json:"node"`
	Shards int    `json:"shards"`
}

// Missing is a part that the node did not tell.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Rates are the counters that are followed: their names for people, and the metrics that are summed up.
func Rates() [][2]string {
	return [][2]string{
		{"sent to entities", "quorate_sharding_messages_sent_total"},
		{"handled here", "quorate_sharding_messages_handled_total"},
		{"failed or refused", "quorate_sharding_messages_failed_total quorate_sharding_messages_refused_total"},
		{"between nodes", "quorate_node_messages_total"},
		{"bytes", "quorate_node_io_bytes_total"},
		{"decisions", "quorate_node_decisions_total"},
	}
}

// Gather asks a node. The error says why the node is not to be reached; everything else that is missing is
// in the snapshot.
func Gather(s Source, now func() time.Time) (Snapshot, error) {
	var got Snapshot
	if err := s.Get("/v1/members", nil, &got.Members); err != nil {
		return got, err
	}
	got.At = now()
	missing := func(what string, err error) {
		if err != nil {
			got.Missing = append(got.Missing, Missing{What: what, Why: err.Error()})
		}
	}
	var status management.HealthStatus
	if err := s.Get("/health/ready", nil, &status); err != nil {
		got.NotReady = []string{err.Error()}
	}
	kinds, err := gatherKinds(s)
	got.Kinds = kinds
	missing("shards", err)
	var decisions management.DecisionList
	missing("decisions", s.Get("/v1/decisions", url.Values{"limit": {strconv.Itoa(decisionsAsked)}}, &decisions))
	got.Decisions = decisions.Decisions
	text, err := s.Text("/metrics")
	missing("rates", err)
	if err == nil {
		got.Counters = counters(text)
	}
	return got, nil
}

func gatherKinds(s Source) ([]Kind, error) {
	var list management.KindList
	if err := s.Get("/v1/kinds", nil, &list); err != nil {
		return nil, err
	}
	kinds := make([]Kind, 0, len(list.Kinds))
	for i, k := range list.Kinds {
		kind := Kind{Kind: k}
		if i < maxKinds && k.Shards <= maxShards {
			var shards cluster.ShardList
			if err := s.Get("/v1/kinds/"+url.PathEscape(k.Name)+"/shards", nil, &shards); err != nil {
				return kinds, err
			}
			kind.count(shards)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// count sums up the shards of a kind.
func (k *Kind) count(list cluster.ShardList) {
	homes := make(map[string]int)
	for _, s := range list.Shards {
		if s.State == "retired" {
			continue
		}
		k.at = append(k.at, s.Home)
		k.Entities += s.Entities
		k.Waiting += s.Sent + s.Passed
		if s.State == "stopping" {
			k.Stopping++
		}
		if s.Home == "" {
			k.Homeless++
			continue
		}
		homes[s.Home]++
	}
	for node, shards := range homes {
		k.Homes = append(k.Homes, Home{Node: node, Shards: shards})
	}
	slices.SortFunc(k.Homes, func(a, b Home) int { return cmp.Compare(a.Node, b.Node) })
}

// counters reads what is followed out of the metrics in the text format of Prometheus, the values of all
// labels summed up.
func counters(text string) map[string]float64 {
	sums := make(map[string]float64)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name := line[:max(strings.IndexAny(line, "{ "), 0)]
		rest := line[len(name):]
		if i := strings.LastIndexByte(rest, '}'); i >= 0 {
			rest = rest[i+1:]
		}
		values := strings.Fields(rest)
		if name == "" || len(values) == 0 {
			continue
		}
		if v, err := strconv.ParseFloat(values[0], 64); err == nil {
			sums[name] += v
		}
	}
	found := make(map[string]float64)
	for _, r := range Rates() {
		for name := range strings.FieldsSeq(r[1]) {
			if v, ok := sums[name]; ok {
				found[r[0]] += v
			}
		}
	}
	return found
}
