// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Control messages are given their form here, which form.go has the table of, and made of it in control_decode.go.

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
	typeRescale         = 30
	typeScaleTo         = 31
	typeScaleAnswered   = 32
	typeTakeOver        = 40
	typeGivenOver       = 41
)

// ErrForeign is returned by [Codec.Append] for a value that is no control
// message of package protocol.
var ErrForeign = errors.New("sharding/wire: not a control message")

// Codec is the codec of the control messages. The zero value is ready for use.
type Codec struct{}

var _ machine.Codec = Codec{}

// Append appends the encoding of a control message.
func (Codec) Append(dst []byte, message any) ([]byte, error) {
	m := formOf(message)
	if m == nil {
		return dst, ErrForeign
	}
	return wire.Append(dst, m, (*form).fields)
}

// formOf returns the form of a control message, nil for what is none.
func formOf(message any) *form {
	switch m := message.(type) {
	case control.Query:
		return &form{typ: typeQuery, kind: m.Kind, term: m.Term}
	case control.Refused:
		return &form{typ: typeRefused, kind: m.Kind, term: m.Promise}
	case control.NoRegion:
		return &form{typ: typeNoRegion, kind: m.Kind, term: m.Term, follows: m.Follows}
	case control.NeedMap:
		return &form{typ: typeNeedMap, kind: m.Kind, term: m.Term}
	case control.Report:
		return &form{
			typ: typeReport, kind: m.Kind, term: m.Term, registration: &m.Registration, layouts: layoutsOf(m.Layouts, m.Past), retired: m.Retired,
			shards: writeAll(m.Hosted, func(h *control.Hosted) shard {
				return shard{id: h.Shard, epoch: h.Epoch, base: h.Base, state: uint8(h.State)}
			}),
		}
	case control.Register:
		return &form{typ: typeRegister, kind: m.Kind, term: m.Term, registration: &m.Registration, to: m.Version, wanted: m.Wanted}
	case control.SettingsRefused:
		return &form{typ: typeSettingsRefused, kind: m.Kind, setting: m.Setting, coordinator: m.Coordinator, region: m.Region}
	case control.Map:
		return &form{
			typ: typeMap, kind: m.Kind, term: m.Term, from: m.From, to: m.To, shards: writeHomes(m.Homes),
			layouts: layoutsOf(m.Layouts, m.Past), retired: m.Retired, settled: m.Settled,
		}
	case control.SingletonMessage:
		t := uint8(typeHandOverRequest)
		if _, done := m.Message.(singleton.Done); done {
			t = typeHandOverDone
		}
		return &form{typ: t, kind: m.Kind, settings: &m.Settings}
	case control.ImportRequest:
		return &form{typ: typeTakeOver, kind: m.Kind, from: uint64(m.Take.Layout), id: m.Take.Number, gone: m.Take.Gone, wanted: m.Take.Shards}
	case control.ImportReply:
		return &form{
			typ: typeGivenOver, kind: m.Kind, from: uint64(m.Given.Layout), id: m.Given.Number,
			gone: m.Given.Gone, entities: m.Given.IDs, over: m.Given.Over,
		}
	default:
		return formOfCommand(message)
	}
}

// formOfCommand returns the form of a command about shards, or of an answer.
func formOfCommand(message any) *form {
	switch m := message.(type) {
	case control.Host:
		return &form{typ: typeHost, kind: m.Kind, term: m.Term, scale: m.Scale, shards: writeAll(m.Shards, func(h *control.HostShard) shard {
			return shard{id: h.Shard, epoch: h.Epoch, base: h.Base, positions: h.Positions, snapshots: h.Snapshots}
		})}
	case control.ShardsStopped:
		return &form{typ: typeShardsStopped, kind: m.Kind, term: m.Term, shards: writeAll(m.Shards, func(h *control.StoppedShard) shard {
			return shard{id: h.Shard, epoch: h.Epoch, base: h.Base, positions: h.Positions, snapshots: h.Snapshots}
		})}
	case control.Hosting:
		return formOfEpochs(typeHosting, m.Kind, m.Term, m.Shards)
	case control.Stop:
		return formOfEpochs(typeStop, m.Kind, m.Term, m.Shards)
	case control.Resume:
		return formOfEpochs(typeResume, m.Kind, m.Term, m.Shards)
	case control.Release:
		return formOfEpochs(typeRelease, m.Kind, m.Term, m.Shards)
	case control.Resumed:
		return formOfEpochs(typeResumed, m.Kind, m.Term, m.Shards)
	default:
		return formOfQuestion(message)
	}
}

// formOfQuestion returns the form of a question of an operator, or of the answer to one.
func formOfQuestion(message any) *form {
	switch m := message.(type) {
	case control.ExplainShard:
		return &form{typ: typeExplainShard, kind: m.Kind, id: m.ID, explanation: &control.ShardExplanation{Shard: m.Shard}}
	case control.ShardExplanation:
		m.Moves = m.Moves[max(0, len(m.Moves)-control.MaxExplainedMoves):]
		return &form{typ: typeExplained, kind: m.Kind, term: m.Term, id: m.ID, explanation: &m}
	case control.MoveShard:
		return &form{typ: typeMoveShard, kind: m.Kind, id: m.ID, explanation: &control.ShardExplanation{Shard: m.Shard, Target: m.To}}
	case control.MoveAnswered:
		return &form{typ: typeMoveAnswered, kind: m.Kind, id: m.ID, explanation: &control.ShardExplanation{Shard: m.Shard, Detail: m.Refusal}}
	case control.ReshardKind:
		return &form{typ: typeReshardKind, kind: m.Kind, id: m.ID, to: uint64(m.Shards)}
	case control.ReshardAnswered:
		return &form{typ: typeReshardAnswered, kind: m.Kind, id: m.ID, explanation: &control.ShardExplanation{Detail: m.Refusal}}
	case control.TellScale:
		return &form{typ: typeRescale, kind: m.Kind, term: m.Term, scale: m.Scale}
	case control.SetScale:
		return &form{typ: typeScaleTo, kind: m.Kind, id: m.ID, from: m.Base, to: uint64(m.Count)}
	case control.ScaleAnswered:
		return &form{typ: typeScaleAnswered, kind: m.Kind, id: m.ID, scale: m.Current, next: m.Next, answer: &m}
	default:
		return nil
	}
}

func formOfEpochs(t uint8, kind string, term protocol.Term, shards []control.ShardEpoch) *form {
	return &form{typ: t, kind: kind, term: term, shards: writeAll(shards, func(s *control.ShardEpoch) shard {
		return shard{id: s.Shard, epoch: s.Epoch, base: s.Epoch}
	})}
}

// writeHomes writes each node once, before the first shard that it is the home of: a map names few nodes, often.
func writeHomes(homes []control.Home) func(*form, *wire.Codec) {
	return func(m *form, c *wire.Codec) {
		index := map[gossip.NodeID]uint32{}
		for _, h := range homes {
			i, known := index[h.Node]
			if !known {
				i = uint32(len(index))
				index[h.Node] = i
				wire.Node(c, fieldNodes, &h.Node)
			}
			m.shard = shard{id: h.Shard, epoch: h.Epoch, base: h.Base, node: i}
			m.write(c)
		}
	}
}
