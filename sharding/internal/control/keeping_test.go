// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience/steps"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What one member can make the others keep and do: a puppet registers kinds that nobody else runs. The fleet
// weighs each step of each node, see weigh.

// maxStep is the most that one step may do, in entries of shards that are looked at, written or sent: some passes
// over the largest kind, or over all shards that are kept.
const maxStep = 8 * protocol.DefaultMaxShards

// registers has a puppet register some kinds of some shards at a node, and answer what their coordinators ask: it
// hosts nothing yet.
func (n *peer) registers(at *peer, kinds int, shards uint32) {
	for i := range kinds {
		name := "tenant-" + strconv.Itoa(i)
		n.f.send(n.id, at.id, register(name, shards))
	}
	n.f.run(2 * latency)
	n.replies(at)
}

func register(kind string, shards uint32) control.Register {
	return control.Register{Kind: kind, Registration: control.Registration{
		Settings: control.Settings{Shards: shards, Hash: protocol.HashName, Codec: "c"}, Number: 1,
	}}
}

// replies answers the queries that the puppet has heard.
func (n *peer) replies(to *peer) {
	heard := n.heard
	n.heard = nil
	for _, m := range heard {
		switch m := m.(type) {
		case control.Query:
			n.f.send(n.id, to.id, control.NoRegion{Kind: m.Kind, Term: m.Term, Follows: true})
		case control.Host:
			var done []control.ShardEpoch
			for _, h := range m.Shards {
				done = append(done, control.ShardEpoch{Shard: h.Shard, Epoch: h.Epoch})
			}
			n.f.send(n.id, to.id, control.Hosting{Kind: m.Kind, Term: m.Term, Shards: done})
		default:
			n.heard = append(n.heard, m)
		}
	}
	n.f.run(2 * latency)
}

func refusals(n *peer) (by map[string]int) {
	by = map[string]int{}
	for _, m := range n.heard {
		if r, ok := m.(control.SettingsRefused); ok {
			by[r.Setting]++
		}
	}
	return by
}

// A member registers 1,100 kinds of 65,536 shards. The others keep no more than the bound, none of their steps is
// long, the member is told why its kinds are refused, and the kinds of the others go on, also new ones.
func TestAMemberThatRegistersManyKindsIsRefused(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	p := f.puppet(3)
	p.registers(nodes[0], 1100, protocol.MaxShards)
	require.Equal(t, map[string]int{control.MaxShardsSetting: protocol.MaxKinds - 3, control.MaxKindsSetting: 1100 - protocol.MaxKinds}, refusals(p))
	p.heard = nil
	for range 8 {
		f.run(time.Second)
		p.replies(nodes[0])
	}
	kinds, shards := nodes[0].Kept()
	require.LessOrEqual(t, kinds, protocol.MaxKinds)
	require.LessOrEqual(t, shards, protocol.DefaultMaxShards)
	for _, n := range nodes {
		require.LessOrEqual(t, n.worst, maxStep, "%s", n.id)
	}
	for _, n := range nodes { // A kind that the nodes run themselves has room.
		n.step(control.AddKind{Kind: control.KindConfig{Name: "own", Settings: six().Settings}})
	}
	f.run(5 * time.Second)
	require.True(t, nodes[0].Inspect("own").Coordinating)
	f.settled(6, nodes...)
}

// Many kinds with few shards are as bounded as few with many.
func TestAMemberThatRegistersKindsOfTheDefaultNumberOfShardsIsRefused(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	p := f.puppet(3)
	p.registers(nodes[0], 1000, 1000)
	_, shards := nodes[0].Kept()
	require.LessOrEqual(t, shards, protocol.DefaultMaxShards)
	require.Equal(t, 1000-(protocol.DefaultMaxShards-6)/1000, refusals(p)[control.MaxShardsSetting])
	require.LessOrEqual(t, nodes[0].worst, maxStep)
}

// A change of the number of shards does not pass by the bound.
func TestAChangeOfTheNumberOfShardsHasToHaveRoom(t *testing.T) {
	f := newFleet(t)
	f.configure = func(c *control.Config) { c.MaxShards = 100 }
	nodes := f.cluster(2, six())
	p := f.puppet(3)
	p.say(nodes[0], control.ReshardKind{Kind: "k", ID: 1, Shards: 95})
	require.Contains(t, last[control.ReshardAnswered](t, p).Refusal, control.MaxShardsSetting+"): at most 100 in all kinds, of which 6 are in use")
}

// Nor does a report of one.
func TestAReportOfLayoutsHasToHaveRoom(t *testing.T) {
	f := newFleet(t)
	f.configure = func(c *control.Config) { c.MaxShards = 100 }
	nodes := f.cluster(2, six())
	p := f.puppet(3)
	f.send(p.id, nodes[0].id, register("other", 10))
	f.run(2 * latency)
	q := last[control.Query](t, p)
	require.Equal(t, "other", q.Kind)
	p.say(nodes[0], control.Report{Kind: "other", Term: q.Term, Registration: register("", 10).Registration, Layouts: []protocol.Layout{
		{Number: 1, Shards: 50}, {Number: 2, Shards: 60},
	}})
	require.Equal(t, control.MaxShardsSetting, last[control.SettingsRefused](t, p).Setting)
	_, shards := nodes[0].Kept()
	require.Equal(t, 16, shards)
}

// Shards get homes in slices: no step gives more than some thousands, and all get one.
func TestHomesAreGivenInSlices(t *testing.T) {
	f := newFleet(t)
	kind := six()
	kind.Settings.Shards = 20_000
	nodes := f.cluster(2, kind)
	require.LessOrEqual(t, max(nodes[0].placed, nodes[1].placed), 4096)
	require.LessOrEqual(t, max(nodes[0].worst, nodes[1].worst), 16*20_000)
}

// A tick costs the same however many shards serve, of kinds that the node runs and of those that others run.
func TestATickLooksAtNoShardThatServes(t *testing.T) {
	f := newFleet(t)
	kind := six()
	kind.Settings.Shards = 20_000
	n, p := f.start(1, kind), f.puppet(2)
	f.run(5 * time.Second)
	p.registers(n, 4, 10_000)
	for range 10 {
		f.run(time.Second)
		p.replies(n)
	}
	require.Equal(t, 20_000, n.Inspect("k").Serving)
	require.Equal(t, 10_000, n.Inspect("tenant-3").Serving)
	n.worst = 0
	f.run(5 * time.Second)
	require.Positive(t, n.worst)
	require.LessOrEqual(t, n.worst, 100)
}

// The largest messages that a node takes are bounded steps on the loop that answers heartbeats: a number of passes over
// the shards of the kind, whoever sends them, and whatever they say.
func TestTheLargestMessagesAreBoundedSteps(t *testing.T) {
	const shards = 8192 // The bound is a factor: with an eighth of the largest number the test takes an eighth of the time.
	f := newFleet(t)
	kind := six()
	kind.Settings.Shards = shards
	n, p := f.start(1, kind), f.puppet(2)
	f.run(5 * time.Second)
	p.replies(n)
	f.run(5 * time.Second)
	require.Equal(t, shards, n.Inspect("k").Serving)
	n.measures = true
	var ids []protocol.ShardID
	var homes []control.Home
	var epochs, epochsLater []control.ShardEpoch
	var hosted []control.HostShard
	var stopped []control.StoppedShard
	var reported []control.Hosted
	var retired []control.Retirement
	later := protocol.Term{UpNumber: 1000, UID: 2, Start: 1}
	for _, h := range n.Inspect("k").Homes {
		ids = append(ids, h.Shard)
		epochs = append(epochs, control.ShardEpoch{Shard: h.Shard, Epoch: h.Epoch})
		stopped = append(stopped, control.StoppedShard{Shard: h.Shard, Epoch: h.Epoch, Base: h.Base})
		reported = append(reported, control.Hosted{Shard: h.Shard, Epoch: h.Epoch, Base: h.Base, State: control.Serving})
		h.Node, h.Epoch.Term = p.id, later
		epochsLater = append(epochsLater, control.ShardEpoch{Shard: h.Shard, Epoch: h.Epoch})
		hosted = append(hosted, control.HostShard{Shard: h.Shard, Epoch: h.Epoch, Base: h.Base})
		h.Epoch.N++
		homes = append(homes, h)
		retired = append(retired, control.Retirement{Shard: h.Shard, Epoch: h.Epoch, Base: h.Epoch})
	}
	now := n.Inspect("k").MapTerm
	registration := control.Registration{Settings: kind.Settings, Number: 1}
	latest, layouts := later, []protocol.Layout{{Shards: shards}, {Number: 1, Shards: shards}}
	latest.Start++
	text := strings.Repeat("x", 1024)
	var rows []string
	for _, m := range []control.Message{
		control.NoRegion{Kind: "k", Term: now},
		control.Register{Kind: "k", Registration: registration, Wanted: ids},
		control.SettingsRefused{Kind: "k", Setting: text, Coordinator: text, Region: text},
		control.ExplainShard{Kind: "k", Shard: ids[shards-1]},
		control.ShardExplanation{Kind: "k", Decision: text, Detail: text, Moves: make([]control.Moved, control.MaxExplainedMoves)},
		control.MoveShard{Kind: "k", Shard: ids[shards-1], To: p.id},
		control.MoveAnswered{Kind: "k", Refusal: text},
		control.SetScale{Kind: "k", Count: shards / 2},
		control.ScaleAnswered{Kind: "k", Detail: text},
		control.ReshardAnswered{Kind: "k", Refusal: text},
		control.ImportRequest{Kind: "k", Take: protocol.ExportRequest{Shards: ids, Gone: make([]string, shards)}},
		control.ImportReply{Kind: "k", Given: protocol.ExportReply{IDs: make([]string, shards), Gone: make([]string, shards)}},
		control.SingletonMessage{Kind: "k", Settings: kind.Settings, Message: singleton.Request{}},
		control.Hosting{Kind: "k", Term: now, Shards: epochs},
		control.ShardsStopped{Kind: "k", Term: now, Shards: stopped},
		control.Resumed{Kind: "k", Term: now, Shards: epochs},
		control.NeedMap{Kind: "k", Term: now},
		control.ReshardKind{Kind: "k", ID: 1},
		control.Report{Kind: "k", Term: now, Registration: registration, Hosted: reported},
		control.Report{Kind: "tenant-0", Registration: register("", shards).Registration, Layouts: layouts, Retired: retired},
		control.Query{Kind: "k", Term: later},
		control.TellScale{Kind: "k", Term: later, Scale: control.Scale{Revision: 1, Count: shards / 2}},
		control.Host{Kind: "k", Term: later, Shards: hosted},
		control.Stop{Kind: "k", Term: later, Shards: epochsLater},
		control.Resume{Kind: "k", Term: later, Shards: epochsLater},
		control.Release{Kind: "k", Term: later, Shards: epochsLater},
		control.Map{Kind: "k", Term: later, To: 1, Homes: homes, Layouts: layouts},
		control.Map{Kind: "k", Term: later, To: 2, Homes: homes, Layouts: layouts, Retired: retired},
		control.Refused{Kind: "k", Promise: latest},
	} {
		if report, ok := m.(control.Report); ok {
			p.registers(n, 1, shards)
			p = f.puppet(3 + len(rows)) // One that has not answered yet.
			f.run(time.Second)
			for _, h := range p.heard {
				if q, ok := h.(control.Query); ok && q.Kind == report.Kind {
					report.Term = q.Term
				}
			}
			m = report
		}
		n.worst, n.objects = 0, 0
		f.send(p.id, n.id, m)
		f.run(time.Second)
		p.replies(n)
		require.LessOrEqual(t, n.worst, 16*shards, "%T", m)
		require.LessOrEqual(t, n.objects, 16*shards, "%T", m)
		rows = append(rows, reflect.TypeOf(m).Name())
	}
	slices.Sort(rows)
	require.Equal(t, steps.Cases(t, "perkind.go", "receive", "toCoordinator"), slices.Compact(rows), "each message has a row")
}

// A kind that nobody runs any more is forgotten by all; one that comes back has epochs above those that it had.
func TestAKindThatNobodyRunsIsForgotten(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	var before protocol.Epoch
	for i := 3; i <= 4; i++ {
		p := f.puppet(i)
		p.registers(nodes[0], 1, 10)
		f.run(4 * time.Second)
		host, ok := find[control.Host](p)
		require.True(t, ok)
		require.True(t, before.Less(host.Shards[0].Epoch), "%s is not above %s", host.Shards[0].Epoch, before)
		before = host.Shards[len(host.Shards)-1].Epoch
		p.replies(nodes[0])
		f.run(5 * time.Minute)
		kinds, shards := nodes[0].Kept()
		require.Equal(t, []int{1, 16}, []int{kinds, shards}, "a kind that a member runs is kept")
		f.set(gossip.Down, p)
		f.remove(p)
		f.fence(p)
		f.run(2 * time.Minute)
		for _, n := range nodes {
			kinds, shards := n.Kept()
			require.Zero(t, kinds, "%s", n)
			require.LessOrEqual(t, shards, 6)
		}
	}
	require.Contains(t, nodes[0].decided("coordinator"), "tenant-0: forgotten: no node has run the kind for 1m0s")
}

// What other members ask about kinds that nobody runs is answered, and nothing is kept of it.
func TestQuestionsAboutUnknownKindsLeaveNothing(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(1, six())
	p := f.puppet(2)
	for i := range 100 {
		name := fmt.Sprint("nobody-", i)
		for _, m := range []control.Message{
			control.ExplainShard{Kind: name},
			control.MoveShard{Kind: name},
			control.SetScale{Kind: name},
			control.ReshardKind{Kind: name},
			control.Host{Kind: name},
			control.Map{Kind: name},
			control.Stop{Kind: name},
			control.Refused{Kind: name},
			control.NeedMap{Kind: name},
		} {
			p.say(nodes[0], m)
		}
	}
	kinds, _ := nodes[0].Kept()
	require.Zero(t, kinds)
	require.NotEmpty(t, last[control.ReshardAnswered](t, p).Refusal)
}

// A member that asks for promises about more kinds than a node keeps does not keep a coordinator from its answer.
func TestAQueryIsAnsweredWithoutRoom(t *testing.T) {
	f := newFleet(t)
	n := f.cluster(1, six())[0]
	p := f.puppet(2)
	term := protocol.Term{UpNumber: 2, UID: 2, Start: 1}
	for i := range protocol.MaxKinds + 1 {
		f.send(p.id, n.id, control.Query{Kind: strconv.Itoa(i), Term: term})
	}
	f.run(2 * latency)
	kinds, _ := n.Kept()
	require.Equal(t, protocol.MaxKinds, kinds)
	require.Equal(t, strconv.Itoa(protocol.MaxKinds), last[control.NoRegion](t, p).Kind)
}

// bytesAShard bounds what a node keeps for one shard of a kind that it coordinates and does not run, so that
// max-shards bounds memory. docs/configuration.md says the sum.
const bytesAShard = 512

func TestAShardTakesBoundedMemory(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(1, six())
	p := f.puppet(2)
	memory := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := memory()
	p.registers(nodes[0], 1, protocol.MaxShards)
	for range 20 {
		f.run(500 * time.Millisecond)
		p.replies(nodes[0])
		p.heard = nil
	}
	require.Equal(t, protocol.MaxShards, nodes[0].Inspect("tenant-0").Serving)
	each := (memory() - before) / protocol.MaxShards
	require.LessOrEqual(t, each, uint64(bytesAShard))
	runtime.KeepAlive(f)
}

// A coordinator that takes over a change of the number of shards in the middle goes on with it, though it would have no
// room to begin one: its region has heard of the layouts.
func TestAChangeThatHasBegunHasRoom(t *testing.T) {
	f := newFleet(t)
	f.configure = func(c *control.Config) { c.MaxShards = 20 }
	f.stops = func(protocol.ShardID) time.Duration { return 2 * time.Second }
	first := f.cluster(1, six())[0]
	f.configure = func(c *control.Config) { c.MaxShards = 8 }
	second := f.start(2, six())
	f.run(5 * time.Second)
	p := f.puppet(3)
	f.run(time.Second)
	p.replies(first)
	p.say(first, control.ReshardKind{Kind: "k", ID: 1, Shards: 9})
	require.Empty(t, last[control.ReshardAnswered](t, p).Refusal)
	f.run(time.Second)
	f.set(gossip.Down, p)
	f.remove(p)
	f.fence(p)
	f.set(gossip.Leaving, first)
	f.run(30 * time.Second)
	require.True(t, second.Inspect("k").Coordinating)
	require.Len(t, second.hosts(), 9)
}
