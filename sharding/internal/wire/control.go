// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Control messages are written here and read in control_decode.go: Append picks the message's
// type, head writes the fields that all have, the rest is one function for each sort.

// The types of control messages. They are part of the wire.
const (
	typeQuery           = 1
	typeRefused         = 2
	typeNoRegion        = 3
	typeReport          = 4
	typeRegister        = 5
	typeSettingsRefused = 6
	typeMap             = 7
	typeNeedMap         = 8
	typeHost            = 9
	typeHosting         = 10
	typeStop            = 11
	typeShardsStopped   = 12
	typeResume          = 13
	typeResumed         = 14
	typeHandOverRequest = 15
	typeHandOverDone    = 16
	typeRelease         = 17
	typeExplainShard    = 18
	typeExplained       = 19
	typeMoveShard       = 20
	typeMoveAnswered    = 21
	typeReshardKind     = 22
	typeReshardAnswered = 23
)

// ErrForeign is returned by [Codec.Append] for a value that is no control
// message of package protocol.
var ErrForeign = errors.New("sharding/wire: not a control message")

// Codec is the codec of the control messages. The zero value is ready for use.
type Codec struct{}

var _ machine.Codec = Codec{}

// Append appends the encoding of a control message.
func (Codec) Append(dst []byte, message any) ([]byte, error) {
	switch m := message.(type) {
	case control.Query:
		return head(dst, typeQuery, m.Kind, m.Term), nil
	case control.Refused:
		return head(dst, typeRefused, m.Kind, m.Promise), nil
	case control.NoRegion:
		return wire.AppendBool(head(dst, typeNoRegion, m.Kind, m.Term), 18, m.Follows), nil
	case control.NeedMap:
		return head(dst, typeNeedMap, m.Kind, m.Term), nil
	case control.Report:
		dst = appendRegistration(head(dst, typeReport, m.Kind, m.Term), m.Registration)
		for _, h := range m.Hosted {
			dst = shard{id: h.Shard, epoch: h.Epoch, base: h.Base, state: uint8(h.State)}.append(dst)
		}
		return appendRetired(appendLayouts(dst, m.Layouts, m.Past), m.Retired), nil
	case control.Register:
		return appendRegister(dst, m), nil
	case control.SettingsRefused:
		dst = head(dst, typeSettingsRefused, m.Kind, protocol.Term{})
		return wire.AppendString(wire.AppendString(wire.AppendString(dst, 10, m.Setting), 11, m.Coordinator), 12, m.Region), nil
	case control.Map:
		return appendMap(dst, m), nil
	default:
		return appendCommand(dst, message)
	}
}

// appendCommand appends commands about shards and their answers.
func appendCommand(dst []byte, message any) ([]byte, error) {
	switch m := message.(type) {
	case control.Host:
		dst = appendScale(head(dst, typeHost, m.Kind, m.Term), fieldScale, m.Scale)
		for _, h := range m.Shards {
			dst = shard{id: h.Shard, epoch: h.Epoch, base: h.Base, positions: h.Positions, snapshots: h.Snapshots}.append(dst)
		}
		return dst, nil
	case control.ShardsStopped:
		dst = head(dst, typeShardsStopped, m.Kind, m.Term)
		for _, h := range m.Shards {
			dst = shard{id: h.Shard, epoch: h.Epoch, base: h.Base, positions: h.Positions, snapshots: h.Snapshots}.append(dst)
		}
		return dst, nil
	case control.Hosting:
		return appendShards(head(dst, typeHosting, m.Kind, m.Term), m.Shards), nil
	case control.Stop:
		return appendShards(head(dst, typeStop, m.Kind, m.Term), m.Shards), nil
	case control.Resume:
		return appendShards(head(dst, typeResume, m.Kind, m.Term), m.Shards), nil
	case control.Release:
		return appendShards(head(dst, typeRelease, m.Kind, m.Term), m.Shards), nil
	case control.Resumed:
		return appendShards(head(dst, typeResumed, m.Kind, m.Term), m.Shards), nil
	case control.HandOver:
		t := uint64(typeHandOverRequest)
		if _, done := m.Message.(singleton.Done); done {
			t = typeHandOverDone
		}
		return appendSettings(head(dst, t, m.Kind, protocol.Term{}), 13, m.Settings), nil
	case control.ExplainShard:
		dst = wire.AppendUint(head(dst, typeExplainShard, m.Kind, protocol.Term{}), 14, m.ID)
		return appendExplanation(dst, control.Explained{Shard: m.Shard}), nil
	case control.Explained:
		dst = wire.AppendUint(head(dst, typeExplained, m.Kind, m.Term), 14, m.ID)
		return appendExplanation(dst, m), nil
	case control.MoveShard:
		dst = wire.AppendUint(head(dst, typeMoveShard, m.Kind, protocol.Term{}), 14, m.ID)
		return appendExplanation(dst, control.Explained{Shard: m.Shard, Target: m.To}), nil
	case control.ReshardKind:
		dst = wire.AppendUint(head(dst, typeReshardKind, m.Kind, protocol.Term{}), 14, m.ID)
		return wire.AppendUint(dst, 8, uint64(m.Shards)), nil
	case control.ReshardAnswered:
		dst = wire.AppendUint(head(dst, typeReshardAnswered, m.Kind, protocol.Term{}), 14, m.ID)
		return appendExplanation(dst, control.Explained{Detail: m.Refusal}), nil
	case control.MoveAnswered:
		dst = wire.AppendUint(head(dst, typeMoveAnswered, m.Kind, protocol.Term{}), 14, m.ID)
		return appendExplanation(dst, control.Explained{Shard: m.Shard, Detail: m.Refusal}), nil
	default:
		dst, known := appendScaling(dst, message)
		if !known {
			dst, known = appendTakeover(dst, message)
		}
		if !known {
			return dst, ErrForeign
		}
		return dst, nil
	}
}

func head(dst []byte, t uint64, kind string, term protocol.Term) []byte {
	return appendTerm(wire.AppendString(wire.AppendUint(dst, 1, t), 2, kind), 3, term)
}

func appendSettings(dst []byte, n wire.Number, s control.Settings) []byte {
	dst, at := wire.Begin(dst, n)
	dst = wire.AppendUint(dst, 1, uint64(s.Shards))
	dst = wire.AppendString(wire.AppendString(wire.AppendString(dst, 2, s.Hash), 3, s.Codec), 4, s.Role)
	dst = wire.AppendString(wire.AppendString(dst, 5, s.Hosting), 6, s.OnStuck)
	return wire.End(wire.AppendString(dst, 7, s.Handoff), at)
}

func appendRegistration(dst []byte, r control.Registration) []byte {
	dst, at := wire.Begin(dst, 4)
	dst = appendSettings(dst, 1, r.Settings)
	dst = wire.AppendBool(wire.AppendBool(dst, 2, r.Proxy), 3, r.Suspended)
	dst = wire.AppendUint(wire.AppendUint(dst, 4, uint64(r.Capacity)), 5, r.Number)
	dst = wire.AppendBool(dst, 6, r.Drained)
	dst = appendScale(wire.AppendUint(dst, 7, uint64(r.Age/time.Millisecond)), fieldRegistrationScale, r.Scale)
	dst = wire.AppendUint(wire.AppendUint(dst, 8, uint64(r.Load)), 9, uint64(r.LoadShards))
	dst = wire.AppendBool(dst, 10, r.Follows)
	return wire.End(wire.AppendUint(dst, fieldRegistrationTakeover, uint64(r.Takeover)), at)
}

func appendRegister(dst []byte, m control.Register) []byte {
	dst = appendRegistration(head(dst, typeRegister, m.Kind, m.Term), m.Registration)
	return appendWanted(wire.AppendUint(dst, 8, m.Version), m.Wanted)
}

// appendWanted writes shards, if there are any.
func appendWanted(dst []byte, shards []protocol.ShardID) []byte {
	if len(shards) == 0 {
		return dst
	}
	dst, at := wire.Begin(dst, 9)
	for _, s := range shards {
		dst = wire.AppendVarint(dst, uint64(s))
	}
	return wire.End(dst, at)
}

// appendMap writes each node once: a map names few nodes, often.
func appendMap(dst []byte, m control.Map) []byte {
	dst = head(dst, typeMap, m.Kind, m.Term)
	dst = wire.AppendUint(wire.AppendUint(dst, 7, m.From), 8, m.To)
	index := map[gossip.NodeID]uint32{}
	for _, h := range m.Homes {
		i, known := index[h.Node]
		if !known {
			i = uint32(len(index))
			index[h.Node] = i
			dst = wire.AppendNode(dst, 6, h.Node)
		}
		dst = shard{id: h.Shard, epoch: h.Epoch, base: h.Base, node: i}.append(dst)
	}
	dst = appendLayouts(dst, m.Layouts, m.Past)
	return appendEpoch(appendRetired(dst, m.Retired), 17, m.Settled)
}

// appendLayouts writes the layouts in force, and as such without a number those of the past.
func appendLayouts(dst []byte, inForce []protocol.Layout, past []uint32) []byte {
	for _, l := range inForce {
		var at int
		dst, at = wire.Begin(dst, 16)
		dst = wire.End(wire.AppendUint(wire.AppendUint(dst, 1, uint64(l.Number)+1), 2, uint64(l.Shards)), at)
	}
	for _, n := range past {
		var at int
		dst, at = wire.Begin(dst, 16)
		dst = wire.End(wire.AppendUint(dst, 2, uint64(n)), at)
	}
	return dst
}

// The states of shards that are retired, above those of hosts: with their positions, and without.
const (
	stateRetired        = uint8(control.Halted) + 1
	stateRetiredUnknown = uint8(control.Halted) + 2
)

func appendRetired(dst []byte, all []control.Retirement) []byte {
	for _, r := range all {
		state := stateRetiredUnknown
		if r.Known {
			state = stateRetired
		}
		dst = shard{id: r.Shard, epoch: r.Epoch, base: r.Base, state: state, positions: r.Positions}.append(dst)
	}
	return dst
}

func appendShards(dst []byte, shards []control.ShardEpoch) []byte {
	for _, s := range shards {
		dst = shard{id: s.Shard, epoch: s.Epoch, base: s.Epoch}.append(dst)
	}
	return dst
}

// shard is one shard of a control message on the wire.
type shard struct {
	id          protocol.ShardID
	epoch, base protocol.Epoch
	state       uint8
	positions   []protocol.Position
	snapshots   []protocol.Snapshot
	node        uint32

	// While it is read: its bytes, and the room of its message.
	in   []byte
	room *wire.Room
}

func (s shard) append(dst []byte) []byte {
	dst, at := wire.Begin(dst, 5)
	dst = wire.AppendUint(dst, 1, uint64(s.id))
	dst = appendEpoch(dst, 2, s.epoch)
	if s.base != s.epoch {
		dst = appendEpoch(dst, 3, s.base)
	}
	dst = wire.AppendUint(dst, 4, uint64(s.state))
	for _, p := range s.positions {
		var inner int
		dst, inner = wire.Begin(dst, 5)
		dst = wire.AppendUint(wire.AppendNode(dst, 1, p.Origin), 2, p.Seq)
		dst = wire.End(dst, inner)
	}
	dst = wire.AppendUint(dst, 6, uint64(s.node))
	for _, p := range s.snapshots {
		var inner int
		dst, inner = wire.Begin(dst, 7)
		dst = wire.AppendBytes(wire.AppendString(dst, 1, p.Entity), 2, p.Data)
		dst = wire.End(wire.AppendUint(dst, 3, uint64(p.Loss)), inner)
	}
	return wire.End(dst, at)
}
