// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/delivery/internal/producer"
)

// Frames as production reads them, and what it answers. They are written here as they are on the wire, by
// the numbers of the fields, so that a codec which changes them is found.

type value = *wrapperspb.StringValue

func codec() sharding.Codec { return delivery.Codec[value](nil) }

// frameOf returns the encoding of a frame.
func frameOf(f producer.Frame[string]) []byte {
	b := wire.AppendBytes(nil, 1, f.Session[:])
	for _, l := range f.Messages {
		message, _ := proto.Marshal(wrapperspb.String(l.Value)) // A text of digits and letters can be encoded.
		var at int
		b, at = wire.Begin(b, 2)
		b = wire.AppendUint(b, 1, l.Number)
		b = wire.AppendBytes(b, 2, message)
		b = wire.End(b, at)
	}
	return b
}

// replier takes the acknowledgement of an entity.
type replier struct{ answer producer.Answer }

// Reply implements [delivery.Replier].
func (r *replier) Reply(message any) error {
	b, err := codec().Append(nil, message)
	if err != nil {
		return err
	}
	return wire.Each(b, func(f *wire.Field) error {
		switch f.Number {
		case 1:
			session, err := f.Data(len(r.answer.Session))
			copy(r.answer.Session[:], session)
			return err
		case 2:
			return wire.Set(&r.answer.Confirmed, f, ^uint64(0))
		case 3:
			demand, err := f.Uint(delivery.MaxFrame)
			r.answer.Demand = int(demand)
			return err
		}
		return nil
	})
}
