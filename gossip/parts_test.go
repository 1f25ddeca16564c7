// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// valid returns parts in which every field is set.
func valid() gossip.Raw {
	return gossip.Raw{
		Cluster: gossip.ClusterID{Born: 1, Nonce: 2},
		Members: []*gossip.Member{
			{Node: node(0), Status: gossip.Up, UpNumber: 1, Roles: []string{"a", "b"}, Services: []uint16{1, 2}},
			{Node: node(1), Status: gossip.Joining, Protocol: gossip.ProtocolRange{Min: 1, Max: 2}},
		},
		Tombstones:   []gossip.Tombstone{{Node: node(2), Last: 3, RemovedAt: 1000}},
		Clock:        []gossip.Dot{{Node: node(0), Count: 2}, {Node: node(1), Count: 1}},
		Seen:         []gossip.NodeID{node(0)},
		Observers:    []*gossip.ObserverRows{{Observer: node(0), Version: 2, Rows: []gossip.Row{{Subject: node(1), Status: gossip.Unreachable, Version: 1}}}},
		Config:       gossip.Voters{Gen: 1, Voters: []gossip.NodeID{node(0)}},
		LastUpNumber: 1,
		PrunedBefore: 10,
		Downing:      gossip.DowningRegister{Gen: 1, DowningStrategy: gossip.DowningStrategy{Name: "keep-majority"}},
	}
}

// spoiledParts are all ways in which parts can be wrong.
var spoiledParts = []struct {
	name  string
	spoil func(p *gossip.Raw)
	want  gossip.Fault
}{
	{"host that is not UTF-8", func(p *gossip.Raw) { p.Members[0].Node.Address.Host = "\xff" }, gossip.FaultText},
	{"role that is not UTF-8", func(p *gossip.Raw) { p.Members[0].Roles = []string{"\xff"} }, gossip.FaultText},
	{"control character in a zone", func(p *gossip.Raw) { p.Members[0].Zone = "a\x00" }, gossip.FaultText},
	{"empty role", func(p *gossip.Raw) { p.Members[0].Roles = []string{""} }, gossip.FaultText},
	{"empty host", func(p *gossip.Raw) { p.Members[0].Node.Address.Host = "" }, gossip.FaultAddress},
	{"port 0", func(p *gossip.Raw) { p.Members[0].Node.Address.Port = 0 }, gossip.FaultAddress},
	{"unspecified host", func(p *gossip.Raw) { p.Members[0].Node.Address.Host = "0.0.0.0" }, gossip.FaultAddress},
	{"long host", func(p *gossip.Raw) { p.Members[1].Node.Address.Host = "2" + strings.Repeat("x", 255) }, gossip.FaultAddress},
	{"host with a slash", func(p *gossip.Raw) { p.Members[1].Node.Address.Host = "a/../b" }, gossip.FaultAddress},
	{"uid 0", func(p *gossip.Raw) { p.Members[0].Node.UID = 0 }, gossip.FaultUID},
	{"uid 0 in a tombstone", func(p *gossip.Raw) { p.Tombstones[0].Node.UID = 0 }, gossip.FaultUID},
	{"member twice", func(p *gossip.Raw) { p.Members[1].Node = node(0) }, gossip.FaultDuplicate},
	{"member nil", func(p *gossip.Raw) { p.Members[1] = nil }, gossip.FaultUnknown},
	{"tombstone twice", func(p *gossip.Raw) { p.Tombstones = append(p.Tombstones, p.Tombstones[0]) }, gossip.FaultDuplicate},
	{"member and tombstone", func(p *gossip.Raw) { p.Tombstones[0].Node = node(0) }, gossip.FaultDuplicate},
	{"seen twice", func(p *gossip.Raw) { p.Seen = append(p.Seen, node(0)) }, gossip.FaultDuplicate},
	{"seen by a stranger", func(p *gossip.Raw) { p.Seen = append(p.Seen, node(9)) }, gossip.FaultUnknown},
	{"seen by a removed node", func(p *gossip.Raw) { p.Seen = append(p.Seen, node(2)) }, gossip.FaultUnknown},
	{"clock of a stranger", func(p *gossip.Raw) { p.Clock[0].Node = node(9) }, gossip.FaultUnknown},
	{"clock twice", func(p *gossip.Raw) { p.Clock[1].Node = node(0) }, gossip.FaultDuplicate},
	{"clock overflow", func(p *gossip.Raw) { p.Clock[0].Count = math.MaxUint64 }, gossip.FaultCounter},
	{"clock zero", func(p *gossip.Raw) { p.Clock[0].Count = 0 }, gossip.FaultCounter},
	{"status 99", func(p *gossip.Raw) { p.Members[0].Status = 99 }, gossip.FaultStatus},
	{"status none", func(p *gossip.Raw) { p.Members[0].Status = gossip.StatusNone }, gossip.FaultStatus},
	{"status removed", func(p *gossip.Raw) { p.Members[0].Status = gossip.Removed }, gossip.FaultStatus},
	{"up without a number", func(p *gossip.Raw) { p.Members[0].UpNumber = 0 }, gossip.FaultUpNumber},
	{"joining with a number", func(p *gossip.Raw) { p.Members[1].UpNumber = 1 }, gossip.FaultUpNumber},
	{"number above the last", func(p *gossip.Raw) { p.LastUpNumber = 0 }, gossip.FaultUpNumber},
	{"last number absurd", func(p *gossip.Raw) { p.LastUpNumber = math.MaxUint64 }, gossip.FaultUpNumber},
	{"row about self", func(p *gossip.Raw) { p.Observers[0].Rows[0].Subject = node(0) }, gossip.FaultReach},
	{"row about a stranger", func(p *gossip.Raw) { p.Observers[0].Rows[0].Subject = node(9) }, gossip.FaultUnknown},
	{"row by a stranger", func(p *gossip.Raw) { p.Observers[0].Observer = node(9) }, gossip.FaultUnknown},
	{"row without a status", func(p *gossip.Raw) { p.Observers[0].Rows[0].Status = 0 }, gossip.FaultReach},
	{"row status 3", func(p *gossip.Raw) { p.Observers[0].Rows[0].Status = 3 }, gossip.FaultReach},
	{"row newer than its set", func(p *gossip.Raw) { p.Observers[0].Rows[0].Version = 3 }, gossip.FaultCounter},
	{"rows of version 0", func(p *gossip.Raw) { p.Observers[0].Version = 0 }, gossip.FaultCounter},
	{"row twice", func(p *gossip.Raw) {
		p.Observers[0].Rows = append(p.Observers[0].Rows, p.Observers[0].Rows[0])
	}, gossip.FaultDuplicate},
	{"observer twice", func(p *gossip.Raw) { p.Observers = append(p.Observers, p.Observers[0]) }, gossip.FaultDuplicate},
	{"observer nil", func(p *gossip.Raw) { p.Observers[0] = nil }, gossip.FaultUnknown},
	{"tombstone far ahead", func(p *gossip.Raw) { p.Tombstones[0].RemovedAt = math.MaxInt64 }, gossip.FaultTime},
	{"tombstone before 1970", func(p *gossip.Raw) { p.Tombstones[0].RemovedAt = -1 }, gossip.FaultTime},
	{"tombstone counter", func(p *gossip.Raw) { p.Tombstones[0].Last = math.MaxUint64 }, gossip.FaultCounter},
	{"pruned far ahead", func(p *gossip.Raw) { p.PrunedBefore = math.MaxInt64 }, gossip.FaultTime},
	{"cluster born far ahead", func(p *gossip.Raw) { p.Cluster.Born = math.MaxInt64 }, gossip.FaultTime},
	{"too many roles", func(p *gossip.Raw) {
		p.Members[0].Roles = nil
		for i := range gossip.MaxRoles + 1 {
			p.Members[0].Roles = append(p.Members[0].Roles, fmt.Sprintf("%03d", i))
		}
	}, gossip.FaultLimit},
	{"long role", func(p *gossip.Raw) { p.Members[0].Roles = []string{strings.Repeat("r", 129)} }, gossip.FaultLimit},
	{"role twice", func(p *gossip.Raw) { p.Members[0].Roles = []string{"a", "a"} }, gossip.FaultDuplicate},
	{"too many services", func(p *gossip.Raw) { p.Members[0].Services = make([]uint16, 257) }, gossip.FaultLimit},
	{"service twice", func(p *gossip.Raw) { p.Members[0].Services = []uint16{1, 1} }, gossip.FaultDuplicate},
	{"protocol range upside down", func(p *gossip.Raw) { p.Members[0].Protocol.Min = 9 }, gossip.FaultCounter},
	{"too many members", func(p *gossip.Raw) { p.Members = make([]*gossip.Member, gossip.MaxMembers+1) }, gossip.FaultLimit},
	{"too many in the clock", func(p *gossip.Raw) { p.Clock = make([]gossip.Dot, gossip.MaxMembers+1) }, gossip.FaultLimit},
	{"generation of nobody", func(p *gossip.Raw) { p.Config = gossip.Voters{By: 7} }, gossip.FaultCounter},
	{"voters without a generation", func(p *gossip.Raw) { p.Config.Gen = 0 }, gossip.FaultCounter},
	{"voter twice", func(p *gossip.Raw) { p.Config.Voters = []gossip.NodeID{node(0), node(0)} }, gossip.FaultDuplicate},
	{"voter without a uid", func(p *gossip.Raw) { p.Config.Previous = make([]gossip.NodeID, 1) }, gossip.FaultUID},
	{"too many voters", func(p *gossip.Raw) { p.Config.Voters = make([]gossip.NodeID, gossip.MaxMembers+1) }, gossip.FaultLimit},
	{"downing without a generation", func(p *gossip.Raw) { p.Downing.Gen = 0 }, gossip.FaultCounter},
	{"long downing parameters", func(p *gossip.Raw) { p.Downing.Parameters = strings.Repeat("p", 5000) }, gossip.FaultLimit},
	{"long downing name", func(p *gossip.Raw) { p.Downing.Name = strings.Repeat("p", 500) }, gossip.FaultLimit},
	{"long previous downing name", func(p *gossip.Raw) { p.Downing.Previous.Name = strings.Repeat("p", 500) }, gossip.FaultLimit},
	{"too many loaded", func(p *gossip.Raw) {
		p.Members[0].Loaded = gossip.Loaded{Version: 1, Strategies: []gossip.StrategyID{1, 2, 3, 4, 5, 6, 7, 8, 9}}
	}, gossip.FaultLimit},
	{"loaded twice", func(p *gossip.Raw) {
		p.Members[0].Loaded = gossip.Loaded{Version: 1, Strategies: []gossip.StrategyID{1, 1}}
	}, gossip.FaultDuplicate},
	{"none loaded", func(p *gossip.Raw) {
		p.Members[0].Loaded = gossip.Loaded{Version: 1, Strategies: []gossip.StrategyID{0}}
	}, gossip.FaultDuplicate},
	{"loaded without a version", func(p *gossip.Raw) { p.Members[0].Loaded = gossip.Loaded{Strategies: []gossip.StrategyID{1}} }, gossip.FaultCounter},
	{"loaded overflow", func(p *gossip.Raw) { p.Members[0].Loaded.Version = math.MaxUint64 }, gossip.FaultCounter},
	{"unknown fields without a version", func(p *gossip.Raw) { p.Members[0].Unknown.Fields = "\x18\x01" }, gossip.FaultCounter},
	{"too many unknown fields", func(p *gossip.Raw) {
		p.Members[0].Unknown = gossip.Unknown{Version: 1, Fields: strings.Repeat("x", gossip.MaxUnknownBytes+1)}
	}, gossip.FaultLimit},
	{"unknown overflow", func(p *gossip.Raw) { p.Unknown.Version = math.MaxUint64 }, gossip.FaultCounter},
	{"too many unknown fields of the voters", func(p *gossip.Raw) { p.Config.Unknown = strings.Repeat("x", gossip.MaxUnknownBytes+1) }, gossip.FaultLimit},
	{"too many unknown fields of the strategy", func(p *gossip.Raw) { p.Downing.Unknown = strings.Repeat("x", gossip.MaxUnknownBytes+1) }, gossip.FaultLimit},
	{"declared down while up", func(p *gossip.Raw) { p.Members[0].Downed.By = node(1) }, gossip.FaultStatus},
	{"declared down by nobody", func(p *gossip.Raw) { p.Tombstones[0].Downed.Why = "lost" }, gossip.FaultUID},
	{"declared down by no address", func(p *gossip.Raw) { p.Tombstones[0].Downed.By.UID = 1 }, gossip.FaultAddress},
	{"long reason", func(p *gossip.Raw) {
		p.Members[0].Status, p.Members[0].Downed = gossip.Down, gossip.Cause{By: node(1), Why: strings.Repeat("w", 201)}
	}, gossip.FaultLimit},
	{"reason that is not UTF-8", func(p *gossip.Raw) {
		p.Members[0].Status, p.Members[0].Downed = gossip.Down, gossip.Cause{By: node(1), Why: "\xff"}
	}, gossip.FaultText},
	{"control character in a reason", func(p *gossip.Raw) {
		p.Tombstones[0].Downed = gossip.Cause{By: node(1), Why: "a\x1b[2J"}
	}, gossip.FaultText},
	{"downing version not text", func(p *gossip.Raw) { p.Downing.Version = "\n" }, gossip.FaultText},
}

// covers B12, B13, B14, B15, B16, B17, B18, B19, B20, B21, B22.
func TestFromPartsRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range spoiledParts {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := valid()
			_, err := gossip.FromParts(p)
			require.NoError(t, err)
			test.spoil(&p)
			_, err = gossip.FromParts(p)
			var fault *gossip.InvalidError
			require.ErrorAs(t, err, &fault)
			require.ErrorIs(t, err, gossip.ErrInvalid)
			require.Equal(t, test.want, fault.Fault, err)
			require.Contains(t, err.Error(), test.want.String())
		})
	}
}

func TestFromPartsTakesAnyOrder(t *testing.T) {
	t.Parallel()
	p := valid()
	want, err := gossip.FromParts(p)
	require.NoError(t, err)
	p = valid()
	p.Members[0], p.Members[1] = p.Members[1], p.Members[0]
	p.Clock[0], p.Clock[1] = p.Clock[1], p.Clock[0]
	got, err := gossip.FromParts(p)
	require.NoError(t, err)
	requireEqual(t, want, got, "sorted")
}

func TestFromPartsForgetsWhatWasPruned(t *testing.T) {
	t.Parallel()
	p := valid()
	p.PrunedBefore = 2000
	s, err := gossip.FromParts(p)
	require.NoError(t, err)
	require.Empty(t, s.Tombstones())
}

func TestPartsFromTheFutureAreRefused(t *testing.T) {
	t.Parallel()
	p := valid()
	removed := time.UnixMilli(p.Cluster.Born).Add(2 * gossip.MaxClockSkew)
	p.Tombstones[0].RemovedAt = removed.UnixMilli()
	require.NoError(t, p.ValidateAt(removed))
	now := removed.Add(-gossip.MaxClockSkew)
	require.NoError(t, p.ValidateAt(now))
	require.ErrorIs(t, p.ValidateAt(now.Add(-time.Millisecond)), gossip.ErrInvalid)
	require.NoError(t, p.ValidateAt(time.UnixMilli(p.Cluster.Born-1)), "a clock behind the birth of the cluster is wrong")
	p.PrunedBefore = removed.UnixMilli() + 1
	require.ErrorIs(t, p.ValidateAt(now), gossip.ErrInvalid)
}

func TestDigestsAndDeltasAreChecked(t *testing.T) {
	t.Parallel()
	s := cluster(t, 3)
	good := mark(s, 0, 1).DeltaTo(s.Digest())
	require.NoError(t, good.Validate())
	require.NoError(t, s.Digest().Validate())
	require.NoError(t, rewire(t, s).Delta(gossip.VectorClock{}).Validate())
	full := rewire(t, s).Delta(gossip.VectorClock{})
	tests := map[string]func(d *gossip.Delta){
		"edit 0":         func(d *gossip.Delta) { d.Edits[0].Dot.Count = 0 },
		"edit of nobody": func(d *gossip.Delta) { d.Edits[0].Dot.Node = gossip.NodeID{} },
		"edit twice":     func(d *gossip.Delta) { d.Edits = append(d.Edits, d.Edits[0]) },
		"key of no type": func(d *gossip.Delta) { d.Edits[0].Keys = []gossip.Key{{}} },
		"key of nobody":  func(d *gossip.Delta) { d.Edits[0].Keys = []gossip.Key{{Type: gossip.KeyMember}} },
		"keys unordered": func(d *gossip.Delta) { d.Edits[0].Keys = append(d.Edits[0].Keys, d.Edits[0].Keys...) },
		"from overflow":  func(d *gossip.Delta) { d.From.Entries = []gossip.Dot{{Node: node(0), Count: math.MaxUint64}} },
		"from unordered": func(d *gossip.Delta) {
			d.From.Entries = []gossip.Dot{{Node: node(1), Count: 1}, {Node: node(0), Count: 1}}
		},
		"clock of no uid": func(d *gossip.Delta) { d.Clock.Entries = []gossip.Dot{{Count: 1}} },
		"clock 0 of zero": func(d *gossip.Delta) { d.Clock = gossip.ClockRef{Entries: []gossip.Dot{{Node: node(0)}}} },
		"member invalid":  func(d *gossip.Delta) { d.Members = []*gossip.Member{{Node: node(0)}} },
		"member nil":      func(d *gossip.Delta) { d.Members = []*gossip.Member{nil} },
		"too many rows": func(d *gossip.Delta) {
			set := &gossip.ObserverRows{Observer: node(0), Version: 1}
			for i := range gossip.MaxMembers + 1 {
				subject := gossip.NodeID{Address: gossip.Address{Host: fmt.Sprintf("h%07d", i), Port: 1}, UID: 1}
				set.Rows = append(set.Rows, gossip.Row{Subject: subject, Status: gossip.Unreachable, Version: 1})
			}
			d.Observers = []*gossip.ObserverRows{set}
		},
		"seen by nobody":   func(d *gossip.Delta) { d.Seen = make([]gossip.NodeID, 1) },
		"full with a from": func(d *gossip.Delta) { *d = full; d.From.Base = 1 },
		"full, row absurd": func(d *gossip.Delta) { *d = full; d.Seen = []gossip.NodeID{node(9)} },
	}
	for name, spoil := range tests {
		d := good
		d.Edits = []gossip.Edited{good.Edits[0]}
		spoil(&d)
		require.ErrorIs(t, d.Validate(), gossip.ErrInvalid, name)
	}
}

// A delta that is well formed but does not fit changes nothing.
func TestDeltaThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	s := cluster(t, 3)
	d := mark(s, 0, 1).DeltaTo(s.Digest())
	d.Clock.Entries = append(d.Clock.Entries, gossip.Dot{Node: node(9), Count: 1})
	got, err := s.Apply(d)
	require.ErrorIs(t, err, gossip.ErrNotCovered, "a clock that counts a stranger")
	require.Same(t, s, got)
	d = mark(s, 0, 1).DeltaTo(s.Digest())
	d.Clock.Base++
	_, err = s.Apply(d)
	require.ErrorIs(t, err, gossip.ErrNotCovered)
	d = mark(s, 0, 1).DeltaTo(s.Digest())
	d.Observers = []*gossip.ObserverRows{{Observer: node(9), Version: 1}, {Observer: node(0), Version: 9, Rows: []gossip.Row{
		{Subject: node(8), Status: gossip.Unreachable, Version: 1},
	}}}
	d.Seen = append(d.Seen, node(9))
	got, err = s.Apply(d)
	require.NoError(t, err)
	requireWellFormed(t, got)
	require.Empty(t, got.Records(), "rows of strangers are dropped")
}

// A delta may hold members without the last up-number. A member whose number is above
// the last one is refused by every node in a whole state, so it is refused in a delta
// too.
func TestADeltaWithAnUpNumberAboveTheLastIsRefused(t *testing.T) {
	t.Parallel()
	s := cluster(t, 3)
	d := mark(s, 0, 1).DeltaTo(s.Digest())
	m := *s.Members()[2]
	m.UpNumber = s.LastUpNumber() + 1
	d.Members = []*gossip.Member{&m}
	require.NoError(t, d.Validate(), "it is well formed by itself")
	got, err := s.AcceptDelta(d, gossip.Terms{Now: closureNow})
	requireFault(t, err, gossip.FaultUpNumber)
	require.Same(t, s, got)
}
