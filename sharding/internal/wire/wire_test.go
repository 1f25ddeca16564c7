// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/machinetest"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// Messages that survive the wire: first one of each type with its golden bytes, then drawn
// messages of each type, which protobuf must be able to read and write by the .proto files, and
// last an encoder and a decoder that are used again.

var rewrite = flag.Bool("rewrite", false, "write the golden bytes anew")

var codec wire.Codec

func node(i int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: fmt.Sprintf("10.0.0.%d", i), Port: 7946}, UID: gossip.UID(i)*0x9e3779b97f4a7c15 + 1}
}

func term(up gossip.UpNumber) protocol.Term {
	return protocol.Term{UpNumber: up, UID: 0xfeed, Start: 2}
}

func epoch(n uint64) protocol.Epoch {
	return protocol.Epoch{Born: 1767225600000, Term: term(3), N: n}
}

// at returns a time s seconds after the birth of the cluster, in the form that decoding
// returns.
func at(s int64) time.Time { return time.Unix(1767225600+s, 0).UTC() }

var settings = control.Settings{Shards: 1000, Hash: protocol.HashName, Codec: "protobuf", Role: "backend"}

var registration = control.Registration{Settings: settings, Proxy: true, Suspended: true, Capacity: 4, Number: 3}

var positions = []protocol.Position{{Origin: node(1), Seq: 300}, {Origin: node(2), Seq: 1}}

var snapshots = []protocol.Snapshot{
	{Entity: "acct-42", Data: []byte("memory")}, {Entity: "acct-43", Loss: protocol.LossTooLarge},
}

var layouts = []protocol.Layout{{Number: 0, Shards: 1000}, {Number: 1, Shards: 2000}}

var retired = []control.Retirement{
	{Shard: 5, Epoch: epoch(8), Base: epoch(2)}, {Shard: 7, Epoch: epoch(11), Base: epoch(2), Positions: positions, Known: true},
}

var pairs = []control.ShardEpoch{{Shard: 0, Epoch: epoch(1)}, {Shard: 999, Epoch: epoch(200)}}

// controls returns one control message of each type. Their bytes are in testdata, and must
// not change.
func controls() map[string]any {
	return map[string]any{
		"query":            control.Query{Kind: "account", Term: term(3)},
		"refused":          control.Refused{Kind: "account", Promise: term(4)},
		"no-region":        control.NoRegion{Kind: "account", Term: term(3)},
		"need-map":         control.NeedMap{Kind: "account", Term: term(3)},
		"settings-refused": control.SettingsRefused{Kind: "account", Setting: "codec", Coordinator: "protobuf", Region: "json"},
		"report": control.Report{Kind: "account", Term: term(3), Registration: registration, Hosted: []control.Hosted{
			{Shard: 1, Epoch: epoch(9), Base: epoch(2), State: control.Serving},
			{Shard: 2, Epoch: epoch(9), Base: epoch(9), State: control.Stopping},
		}},
		"register": control.Register{
			Kind: "account", Registration: registration, Term: term(3), Version: 12, Wanted: []protocol.ShardID{0, 1, 999},
		},
		"register-young":   control.Register{Kind: "account", Registration: control.Registration{Settings: settings, Number: 5, Age: 90 * time.Second, Load: 4321, LoadShards: 80}},
		"register-drained": control.Register{Kind: "account", Registration: control.Registration{Settings: settings, Drained: true, Number: 4}},
		"map": control.Map{Kind: "account", Term: term(3), From: 11, To: 12, Homes: []control.Home{
			{Shard: 0, Node: node(1), Epoch: epoch(12), Base: epoch(2)},
			{Shard: 1, Node: node(2), Epoch: epoch(12), Base: epoch(12)},
			{Shard: 5, Node: node(1), Epoch: epoch(12), Base: epoch(12)},
		}},
		"map-layouts": control.Map{
			Kind: "account", Term: term(3), From: 11, To: 12, Homes: []control.Home{{Shard: layouts[1].Shard(7), Node: node(1), Epoch: epoch(12), Base: epoch(12)}},
			Layouts: layouts, Past: []uint32{16, 32}, Retired: retired, Settled: epoch(8),
		},
		"report-layouts": control.Report{
			Kind: "account", Term: term(3), Registration: registration, Hosted: []control.Hosted{{Shard: layouts[1].Shard(7), Epoch: epoch(9), Base: epoch(2), State: control.Serving}},
			Layouts: layouts, Past: []uint32{16, 32}, Retired: retired,
		},
		"register-follows":  control.Register{Kind: "account", Registration: control.Registration{Settings: settings, Follows: true, Number: 4}},
		"no-region-follows": control.NoRegion{Kind: "account", Term: term(3), Follows: true},
		"reshard":           control.ReshardKind{Kind: "account", Shards: 2000, ID: 9},
		"reshard-answered":  control.ReshardAnswered{Kind: "account", ID: 9, Refusal: "it has them"},
		"host": control.Host{Kind: "account", Term: term(3), Shards: []control.HostShard{
			{Shard: 7, Epoch: epoch(12), Base: epoch(2), Positions: positions}, {Shard: 8, Epoch: epoch(12), Base: epoch(12)},
		}},
		"host-memory": control.Host{Kind: "account", Term: term(3), Shards: []control.HostShard{
			{Shard: 7, Epoch: epoch(12), Base: epoch(2), Positions: positions, Snapshots: snapshots},
		}},
		"shards-stopped-memory": control.ShardsStopped{Kind: "account", Term: term(3), Shards: []control.StoppedShard{
			{Shard: 7, Epoch: epoch(12), Base: epoch(2), Snapshots: snapshots},
		}},
		"shards-stopped": control.ShardsStopped{Kind: "account", Term: term(3), Shards: []control.StoppedShard{
			{Shard: 7, Epoch: epoch(12), Base: epoch(2), Positions: positions},
		}},
		"hosting":       control.Hosting{Kind: "account", Term: term(3), Shards: pairs},
		"stop":          control.Stop{Kind: "account", Term: term(3), Shards: pairs},
		"resume":        control.Resume{Kind: "account", Term: term(3), Shards: pairs},
		"resumed":       control.Resumed{Kind: "account", Term: term(3), Shards: pairs},
		"release":       control.Release{Kind: "account", Term: term(3), Shards: pairs},
		"explain-shard": control.ExplainShard{Kind: "account", Shard: 999, ID: 7},
		"explained": control.ShardExplanation{
			Kind: "account", Shard: 7, ID: 8, Coordinator: node(1), Term: term(3), Detail: "nothing is awaited",
			Phase: control.PhaseStopping, Home: node(2), Epoch: epoch(12), Base: epoch(2), Since: at(1), Decision: "least-shard: its share",
			Target: node(1), Reason: "least-shard: evens out", Deadline: at(60),
			Moves: []control.Moved{{Shard: 7, From: node(1), To: node(2), Started: at(0), Ended: at(1), Outcome: control.OutcomeMoved, Reason: "it left"}},
		},
		"move-shard":      control.MoveShard{Kind: "account", Shard: 7, To: node(2), ID: 9},
		"move-answered":   control.MoveAnswered{Kind: "account", Shard: 7, ID: 9, Refusal: "it lives there"},
		"register-scaled": control.Register{Kind: "account", Registration: control.Registration{Settings: settings, Number: 4, Scale: control.Scale{Revision: 3, Count: 7}}},
		"host-scaled": control.Host{Kind: "account", Term: term(3), Scale: control.Scale{Revision: 3, Count: 9}, Shards: []control.HostShard{
			{Shard: 7, Epoch: epoch(12), Base: epoch(12)},
		}},
		"rescale":  control.TellScale{Kind: "account", Term: term(3), Scale: control.Scale{Revision: 3, Count: 7}},
		"scale-to": control.SetScale{Kind: "account", ID: 9, Base: 2, Count: 7},
		"scale-answered": control.ScaleAnswered{
			Kind: "account", ID: 9, Refusal: control.ScaleBusy, Detail: "it changes", Current: control.Scale{Revision: 3, Count: 7},
			Next: control.Scale{Revision: 4, Count: 1}, Told: true, CalledOff: 2,
		},
		"take-over": control.ImportRequest{Kind: "account", Take: protocol.ExportRequest{
			Layout: 1, Number: 9, Shards: []protocol.ShardID{1<<16 | 2, 1<<16 | 7}, Gone: []string{"acct-42"},
		}},
		"given-over":      control.ImportReply{Kind: "account", Given: protocol.ExportReply{Layout: 1, Number: 9, Gone: []string{"acct-42"}, IDs: []string{"acct-43", "acct-44"}}},
		"given-over-ends": control.ImportReply{Kind: "account", Given: protocol.ExportReply{Number: 10, Over: true}},
		"register-taking": control.Register{Kind: "account", Registration: control.Registration{Settings: settings, Number: 4, Takeover: 3}},
		"register-hosting": control.Register{Kind: "account", Registration: control.Registration{
			Settings: control.Settings{Shards: 1000, Hash: protocol.HashName, Hosting: control.HostingOf(true, false, false), OnStuck: "abort", Handoff: "1m0s"}, Number: 1,
		}},
		"hand-over-request": control.SingletonMessage{Kind: "account", Settings: settings, Message: singleton.Request{}},
		"hand-over-done":    control.SingletonMessage{Kind: "account", Settings: settings, Message: singleton.Done{}},
	}
}

const now = machine.Instant(1_000_000)

// items returns one item of each type that an envelope can carry, except a run.
func items() map[string]any {
	return map[string]any{
		"message": &cell.Message{
			Kind: "account", Shard: 7, Entity: "acct-42", Origin: node(1), Base: epoch(2), Seq: 300, Route: epoch(12), Hops: 1,
			Correlation: 77, Deadline: now.Add(5 * time.Second), Trace: []byte{1, 2, 3}, Codec: 1, Flags: 2, Payload: []byte("deposit"),
		},
		"reply": &protocol.Reply{
			Kind: "account", Shard: 7, Correlation: 77, Code: protocol.CodeEntityFailed, Detail: "no such account", Codec: 1, Flags: 2,
			Payload: []byte("ok"), Clock: now,
		},
		"ack":  protocol.Ack{Kind: "account", Shard: 7, Base: epoch(2), Seq: 300, Clock: now},
		"need": protocol.Nack{Kind: "account", Shard: 7, Base: epoch(2), Seq: 301},
		"flow": protocol.Flow{Kind: "account", Shard: 7, Epoch: epoch(12), Entity: "acct-42", State: protocol.FlowOpen},
	}
}

// appendItem appends the envelope of any item.
func appendItem(dst []byte, item any) []byte {
	switch m := item.(type) {
	case *cell.Message:
		return wire.AppendMessage(dst, m, now)
	case *protocol.Reply:
		return wire.AppendReply(dst, m)
	case protocol.Ack:
		return wire.AppendAck(dst, m)
	case protocol.Nack:
		return wire.AppendNeed(dst, m)
	case protocol.Flow:
		return wire.AppendFlow(dst, m)
	default:
		panic(fmt.Sprintf("an item of type %T", item))
	}
}

// golden compares bytes with those of a file in testdata, which change only with the flag
// rewrite.
func golden(t *testing.T, name string, b []byte) {
	t.Helper()
	machinetest.Bytes(t, filepath.Join("testdata", name+".hex"), *rewrite, b)
}

func TestGoldenBytes(t *testing.T) {
	for name, m := range controls() {
		t.Run(name, func(t *testing.T) {
			b, err := codec.Append([]byte("before"), m)
			require.NoError(t, err)
			require.Equal(t, "before", string(b[:6]))
			golden(t, name, b[6:])
			got, err := codec.Decode(b[6:])
			require.NoError(t, err)
			require.Equal(t, m, got)
		})
	}
	for name, m := range items() {
		t.Run(name, func(t *testing.T) {
			b := appendItem([]byte("before"), m)
			require.Equal(t, "before", string(b[:6]))
			golden(t, name, b[6:])
			got, err := wire.DecodeItem(b[6:], now)
			require.NoError(t, err)
			require.Equal(t, m, got)
		})
	}
}

func TestForeignValuesAreRefused(t *testing.T) {
	_, err := codec.Append(nil, "no message")
	require.ErrorIs(t, err, wire.ErrForeign)
}

// The generators of the parts of messages.
var (
	drawNode = rapid.Custom(func(t *rapid.T) gossip.NodeID { return node(rapid.IntRange(1, 20).Draw(t, "node")) })
	drawTerm = rapid.Custom(func(t *rapid.T) protocol.Term {
		return protocol.Term{
			UpNumber: gossip.UpNumber(rapid.Uint64().Draw(t, "up")), UID: gossip.UID(rapid.Uint64().Draw(t, "uid")),
			Start: rapid.Uint64().Draw(t, "start"),
		}
	})
	drawEpoch = rapid.Custom(func(t *rapid.T) protocol.Epoch {
		return protocol.Epoch{Born: rapid.Int64Range(0, math.MaxInt64).Draw(t, "born"), Term: drawTerm.Draw(t, "term"), N: rapid.Uint64Min(1).Draw(t, "n")}
	})
	drawShard = rapid.Custom(func(t *rapid.T) protocol.ShardID {
		return protocol.ShardID(rapid.Uint32().Draw(t, "shard"))
	})
	drawText     = rapid.StringN(0, 20, 128)
	drawName     = rapid.StringOfN(rapid.RuneFrom([]rune{' '}, unicode.PrintRanges...), 1, 20, 128)
	drawSettings = rapid.Custom(func(t *rapid.T) control.Settings {
		return control.Settings{
			Shards: rapid.Uint32Range(0, protocol.MaxShards).Draw(t, "shards"),
			Hash:   drawName.Draw(t, "hash"), Codec: drawName.Draw(t, "codec"), Role: drawName.Draw(t, "role"), Hosting: drawName.Draw(t, "hosting"),
			OnStuck: drawName.Draw(t, "on-stuck"), Handoff: drawName.Draw(t, "handoff"),
		}
	})
	drawIDs          = list(rapid.StringN(1, 20, 512))
	drawRegistration = rapid.Custom(func(t *rapid.T) control.Registration {
		return control.Registration{
			Settings: drawSettings.Draw(t, "settings"), Proxy: rapid.Bool().Draw(t, "proxy"),
			Suspended: rapid.Bool().Draw(t, "suspended"), Drained: rapid.Bool().Draw(t, "drained"), Capacity: rapid.Uint32().Draw(t, "capacity"),
			Takeover: rapid.Uint32Range(0, math.MaxUint16+2).Draw(t, "takeover"), Scale: drawScale.Draw(t, "scale"),
			Number: rapid.Uint64().Draw(t, "number"), Follows: rapid.Bool().Draw(t, "follows"),
			Load: rapid.Uint32Range(0, control.LoadFull).Draw(t, "load"), LoadShards: rapid.Uint32Range(0, protocol.MaxShards*control.LoadShard).Draw(t, "load shards"),
			Age: time.Duration(rapid.Int64Range(0, int64(control.MaxAge/time.Millisecond)).Draw(t, "age")) * time.Millisecond,
		}
	})
	drawPositions = list(rapid.Custom(func(t *rapid.T) protocol.Position {
		return protocol.Position{Origin: drawNode.Draw(t, "origin"), Seq: rapid.Uint64().Draw(t, "seq")}
	}))
	drawSnapshots = list(rapid.Custom(func(t *rapid.T) protocol.Snapshot {
		s := protocol.Snapshot{Entity: rapid.StringN(1, 20, 512).Draw(t, "entity"), Loss: protocol.Loss(rapid.IntRange(0, protocol.Losses-1).Draw(t, "loss"))}
		if s.Loss == protocol.LossNone {
			s.Data = rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "data")
		}
		return s
	}))
	drawRetired = list(rapid.Custom(func(t *rapid.T) control.Retirement {
		r := control.Retirement{Shard: drawShard.Draw(t, "shard"), Epoch: drawEpoch.Draw(t, "epoch"), Base: drawEpoch.Draw(t, "base"), Known: rapid.Bool().Draw(t, "known")}
		if r.Known {
			r.Positions = drawPositions.Draw(t, "positions")
		}
		return r
	}))
	drawLayouts = rapid.Custom(func(t *rapid.T) (all []protocol.Layout) {
		first := rapid.Uint16Range(0, protocol.MaxLayouts-2).Draw(t, "first")
		for i := range rapid.Uint16Range(0, 2).Draw(t, "layouts") {
			all = append(all, protocol.Layout{Number: first + i, Shards: rapid.Uint32Range(1, protocol.MaxShards).Draw(t, "shards")})
		}
		return all
	})
	drawPast  = list(rapid.Uint32Range(1, protocol.MaxShards))
	drawPairs = list(rapid.Custom(func(t *rapid.T) control.ShardEpoch {
		return control.ShardEpoch{Shard: drawShard.Draw(t, "shard"), Epoch: drawEpoch.Draw(t, "epoch")}
	}))
)

// list draws lists. An empty list is nil, as decoding returns it.
func list[V any](of *rapid.Generator[V]) *rapid.Generator[[]V] {
	return rapid.Map(rapid.SliceOfN(of, 0, 40), func(all []V) []V {
		if len(all) == 0 {
			return nil
		}
		return all
	})
}

func drawControl(t *rapid.T) any {
	kind, at := drawName.Draw(t, "kind"), drawTerm.Draw(t, "term")
	switch rapid.IntRange(1, 22).Draw(t, "type") {
	case 20:
		return control.ImportRequest{Kind: kind, Take: protocol.ExportRequest{
			Layout: rapid.Uint16().Draw(t, "layout"), Number: rapid.Uint64().Draw(t, "number"), Shards: list(drawShard).Draw(t, "shards"), Gone: drawIDs.Draw(t, "gone"),
		}}
	case 21:
		return control.ImportReply{Kind: kind, Given: protocol.ExportReply{
			Layout: rapid.Uint16().Draw(t, "layout"), Number: rapid.Uint64().Draw(t, "number"), Gone: drawIDs.Draw(t, "gone"), IDs: drawIDs.Draw(t, "ids"), Over: rapid.Bool().Draw(t, "over"),
		}}
	case 15:
		return control.Release{Kind: kind, Term: at, Shards: drawPairs.Draw(t, "shards")}
	case 16:
		return control.ExplainShard{Kind: kind, Shard: drawShard.Draw(t, "shard"), ID: rapid.Uint64().Draw(t, "id")}
	case 17:
		return drawExplained(t, kind, at)
	case 1:
		return control.Query{Kind: kind, Term: at}
	case 2:
		return control.Refused{Kind: kind, Promise: at}
	case 3:
		return control.NoRegion{Kind: kind, Term: at, Follows: rapid.Bool().Draw(t, "follows")}
	case 18:
		return control.ReshardKind{Kind: kind, Shards: rapid.Uint32().Draw(t, "shards"), ID: rapid.Uint64().Draw(t, "id")}
	case 19:
		return control.ReshardAnswered{Kind: kind, Refusal: drawText.Draw(t, "refusal"), ID: rapid.Uint64().Draw(t, "id")}
	case 4:
		return control.NeedMap{Kind: kind, Term: at}
	case 5:
		return control.SettingsRefused{Kind: kind, Setting: drawText.Draw(t, "setting"), Coordinator: drawText.Draw(t, "c"), Region: drawText.Draw(t, "r")}
	case 6:
		return control.Report{Kind: kind, Term: at, Registration: drawRegistration.Draw(t, "registration"), Hosted: list(rapid.Custom(func(t *rapid.T) control.Hosted {
			return control.Hosted{
				Shard: drawShard.Draw(t, "shard"), Epoch: drawEpoch.Draw(t, "epoch"), Base: drawEpoch.Draw(t, "base"),
				State: control.HostState(rapid.IntRange(1, 3).Draw(t, "state")),
			}
		})).Draw(t, "hosted"), Layouts: drawLayouts.Draw(t, "layouts"), Past: drawPast.Draw(t, "past"), Retired: drawRetired.Draw(t, "retired")}
	case 7:
		return control.Register{
			Kind: kind, Registration: drawRegistration.Draw(t, "registration"), Term: at,
			Version: rapid.Uint64().Draw(t, "version"), Wanted: list(drawShard).Draw(t, "wanted"),
		}
	case 8:
		return control.Map{Kind: kind, Term: at, From: rapid.Uint64().Draw(t, "from"), To: rapid.Uint64().Draw(t, "to"), Homes: list(rapid.Custom(func(t *rapid.T) control.Home {
			return control.Home{Shard: drawShard.Draw(t, "shard"), Node: drawNode.Draw(t, "node"), Epoch: drawEpoch.Draw(t, "epoch"), Base: drawEpoch.Draw(t, "base")}
		})).Draw(t, "homes"), Layouts: drawLayouts.Draw(t, "layouts"), Past: drawPast.Draw(t, "past"), Retired: drawRetired.Draw(t, "retired"), Settled: drawEpoch.Draw(t, "settled")}
	case 9:
		return control.Host{Kind: kind, Term: at, Scale: drawScale.Draw(t, "scale"), Shards: list(rapid.Custom(func(t *rapid.T) control.HostShard {
			return control.HostShard{Shard: drawShard.Draw(t, "shard"), Epoch: drawEpoch.Draw(t, "epoch"), Base: drawEpoch.Draw(t, "base"), Positions: drawPositions.Draw(t, "positions"), Snapshots: drawSnapshots.Draw(t, "snapshots")}
		})).Draw(t, "shards")}
	case 10:
		return control.ShardsStopped{Kind: kind, Term: at, Shards: list(rapid.Custom(func(t *rapid.T) control.StoppedShard {
			return control.StoppedShard{Shard: drawShard.Draw(t, "shard"), Epoch: drawEpoch.Draw(t, "epoch"), Base: drawEpoch.Draw(t, "base"), Positions: drawPositions.Draw(t, "positions"), Snapshots: drawSnapshots.Draw(t, "snapshots")}
		})).Draw(t, "shards")}
	case 11:
		return control.Hosting{Kind: kind, Term: at, Shards: drawPairs.Draw(t, "shards")}
	case 12:
		return control.Stop{Kind: kind, Term: at, Shards: drawPairs.Draw(t, "shards")}
	case 13:
		return control.Resume{Kind: kind, Term: at, Shards: drawPairs.Draw(t, "shards")}
	case 14:
		return control.Resumed{Kind: kind, Term: at, Shards: drawPairs.Draw(t, "shards")}
	default:
		messages := []singleton.Message{singleton.Request{}, singleton.Done{}}
		return control.SingletonMessage{Kind: kind, Settings: drawSettings.Draw(t, "settings"), Message: rapid.SampledFrom(messages).Draw(t, "message")}
	}
}

// drawTime draws a time in the form that decoding returns.
var drawTime = rapid.Map(rapid.Int64Range(0, 1<<45), func(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
})

func drawExplained(t *rapid.T, kind string, term protocol.Term) control.ShardExplanation {
	shard := drawShard.Draw(t, "shard")
	e := control.ShardExplanation{
		Kind: kind, Shard: shard, ID: rapid.Uint64().Draw(t, "id"), Coordinator: drawNode.Draw(t, "coordinator"), Term: term,
		Detail: drawText.Draw(t, "detail"), Phase: control.Phase(rapid.IntRange(0, 6).Draw(t, "phase")), Home: drawNode.Draw(t, "home"),
		Epoch: drawEpoch.Draw(t, "epoch"), Base: drawEpoch.Draw(t, "base"), Since: drawTime.Draw(t, "since"),
		Decision: drawText.Draw(t, "decision"), Target: drawNode.Draw(t, "target"), Reason: drawText.Draw(t, "reason"), Deadline: drawTime.Draw(t, "deadline"),
	}
	for range rapid.IntRange(0, control.MaxExplainedMoves).Draw(t, "moves") {
		e.Moves = append(e.Moves, control.Moved{
			Shard: shard, From: drawNode.Draw(t, "from"), To: drawNode.Draw(t, "to"), Started: drawTime.Draw(t, "started"),
			Ended: drawTime.Draw(t, "ended"), Outcome: control.Outcome(rapid.IntRange(0, 4).Draw(t, "outcome")), Reason: drawText.Draw(t, "why"),
		})
	}
	return e
}

// again decodes and encodes bytes by the document, which must have every field.
func again(t *rapid.T, b []byte, m proto.Message) []byte {
	require.NoError(t, proto.Unmarshal(b, m))
	requireKnown(t, m.ProtoReflect())
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	require.NoError(t, err)
	return b
}

func requireKnown(t *rapid.T, m protoreflect.Message) {
	require.Empty(t, m.GetUnknown())
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				requireKnown(t, v.List().Get(i).Message())
			}
		default:
			requireKnown(t, v.Message())
		}
		return true
	})
}

// Every control message can be encoded and decoded without a change, also when protobuf
// has decoded and encoded it by the .proto file in between.
func TestControlMessagesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawControl(t)
		b, err := codec.Append(nil, m)
		require.NoError(t, err)
		got, err := codec.Decode(b)
		require.NoError(t, err)
		require.Equal(t, m, got)
		got, err = codec.Decode(again(t, b, document.New(t, "Control")))
		require.NoError(t, err)
		require.Equal(t, m, got)
	})
}

func drawItem(t *rapid.T) any {
	kind, shard := drawName.Draw(t, "kind"), drawShard.Draw(t, "shard")
	payload := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "payload")
	switch rapid.IntRange(1, 5).Draw(t, "type") {
	case 1:
		m := &cell.Message{
			Kind: kind, Shard: shard, Entity: rapid.StringN(1, 100, protocol.MaxEntityBytes).Draw(t, "entity"),
			Origin: drawNode.Draw(t, "origin"), Base: drawEpoch.Draw(t, "base"), Seq: rapid.Uint64Min(1).Draw(t, "seq"),
			Route: drawEpoch.Draw(t, "route"), Hops: rapid.Uint8().Draw(t, "hops"), Correlation: rapid.Uint64().Draw(t, "correlation"),
			Codec: rapid.Uint16().Draw(t, "codec"), Flags: rapid.Uint32().Draw(t, "flags"), Payload: payload,
		}
		if rapid.Bool().Draw(t, "deadline") {
			m.Deadline = now.Add(time.Duration(rapid.Int64Range(1, 1<<50).Draw(t, "remaining")))
			if rapid.IntRange(0, 3).Draw(t, "overdue") == 0 {
				m.Deadline = cell.Overdue
			}
		}
		return m
	case 2:
		return &protocol.Reply{
			Kind: kind, Shard: shard, Correlation: rapid.Uint64().Draw(t, "correlation"), Code: protocol.Code(rapid.Uint8().Draw(t, "code")),
			Detail: drawText.Draw(t, "detail"), Codec: rapid.Uint16().Draw(t, "codec"), Flags: rapid.Uint32().Draw(t, "flags"), Payload: payload,
			Clock: machine.Instant(rapid.Int64Min(0).Draw(t, "clock")),
		}
	case 3:
		return protocol.Ack{
			Kind: kind, Shard: shard, Base: drawEpoch.Draw(t, "base"), Seq: rapid.Uint64().Draw(t, "seq"),
			Clock: machine.Instant(rapid.Int64Min(0).Draw(t, "clock")),
		}
	case 4:
		return protocol.Flow{
			Kind: kind, Shard: shard, Epoch: drawEpoch.Draw(t, "epoch"), State: protocol.FlowState(rapid.Uint8().Draw(t, "state")),
			Entity: rapid.StringN(1, 100, protocol.MaxEntityBytes).Draw(t, "entity"),
		}
	default:
		return protocol.Nack{Kind: kind, Shard: shard, Base: drawEpoch.Draw(t, "base"), Seq: rapid.Uint64().Draw(t, "seq")}
	}
}

// Every item of an envelope can be encoded and decoded without a change, also when
// protobuf has decoded and encoded it by the .proto file in between.
func TestItemsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawItem(t)
		b := appendItem(nil, m)
		got, err := wire.DecodeItem(b, now)
		require.NoError(t, err)
		require.Equal(t, m, got)
		got, err = wire.DecodeItem(again(t, b, document.New(t, "Envelope")), now)
		require.NoError(t, err)
		require.Equal(t, m, got)
	})
}

// An encoder and a decoder that remember earlier messages return the same as new ones.
func TestMemoryChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var encoder wire.Encoder
		decoder := wire.Decoder{Fresh: func(n int) *cell.Message { return &cell.Message{Payload: make([]byte, 0, n)} }}
		var before []*cell.Message
		for range rapid.IntRange(2, 20).Draw(t, "items") {
			item := drawItem(t)
			m, ok := item.(*cell.Message)
			if ok && len(before) > 0 && rapid.Bool().Draw(t, "again") {
				last := before[len(before)-1]
				m.Kind, m.Shard, m.Origin, m.Base, m.Entity = last.Kind, last.Shard, last.Origin, last.Base, last.Entity
			}
			b := appendItem(nil, item)
			if ok {
				before = append(before, m)
				require.Equal(t, b, encoder.Message(nil, m, now))
			}
			got, err := decoder.Item(b, now)
			require.NoError(t, err)
			require.Equal(t, item, got)
			clear(b)
			require.Equal(t, item, got, "nothing of the input is kept")
		}
	})
}
