// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/transport"
	pb "github.com/quorate/quorate/transport/internal/proto/quorate/transport/v1"
)

// Field numbers of Downstream and Unhandled in transport.proto.
const (
	fieldAcknowledged = 3
	fieldUnhandled    = 4

	fieldMessages = 2

	// maxUnhandled bounds the services of one receipt.
	maxUnhandled = 256
)

// Unhandled counts the messages of a service that met no handler.
type Unhandled struct {
	Service  uint16
	Messages uint64
}

// Downstream is one message of the acceptor: a welcome, a refusal, or, when neither of
// the two is set, a receipt.
type Downstream struct {
	Welcome      *Welcome
	Refusal      *transport.RefusedError
	Acknowledged uint64
	Unhandled    []Unhandled
}

// AppendReceipt appends a Downstream message with an acknowledgement. It writes the
// first 256 services of unhandled, and returns how many it has written.
func AppendReceipt(dst []byte, acknowledged uint64, unhandled []Unhandled) ([]byte, int) {
	dst = wire.AppendTag(dst, fieldAcknowledged, wire.VarintType)
	dst = wire.AppendVarint(dst, acknowledged)
	unhandled = unhandled[:min(len(unhandled), maxUnhandled)]
	for _, u := range unhandled {
		dst = wire.AppendTag(dst, fieldUnhandled, wire.BytesType)
		n := 2 + wire.SizeVarint(uint64(u.Service)) + wire.SizeVarint(u.Messages)
		dst = wire.AppendVarint(dst, uint64(n))
		dst = wire.AppendTag(dst, fieldService, wire.VarintType)
		dst = wire.AppendVarint(dst, uint64(u.Service))
		dst = wire.AppendTag(dst, fieldMessages, wire.VarintType)
		dst = wire.AppendVarint(dst, u.Messages)
	}
	return dst, len(unhandled)
}

// ParseDownstream decodes and checks a message of an acceptor. A receipt without
// unhandled services, as nearly every receipt is, is read without allocating.
func ParseDownstream(b []byte) (Downstream, error) {
	if f, rest, err := wire.Next(b); err == nil && f.Number == fieldAcknowledged && f.Type == wire.VarintType && len(rest) == 0 {
		return Downstream{Acknowledged: f.Value}, nil
	}
	var m pb.Downstream
	if err := unmarshal(b, &m); err != nil {
		return Downstream{}, err
	}
	if len(b) == 0 || m.GetWelcome() != nil && m.GetRefusal() != nil {
		return Downstream{}, wire.Malformed("neither a welcome, nor a refusal, nor a receipt")
	}
	if m.GetRefusal() != nil {
		return Downstream{Refusal: parseRefusal(m.GetRefusal())}, nil
	}
	if m.GetWelcome() != nil {
		w, err := parseWelcome(m.GetWelcome())
		return Downstream{Welcome: w}, err
	}
	return parseReceipt(&m)
}

func parseReceipt(m *pb.Downstream) (Downstream, error) {
	if len(m.GetUnhandled()) > maxUnhandled {
		return Downstream{}, wire.Malformed("%d unhandled services", len(m.GetUnhandled()))
	}
	d := Downstream{Acknowledged: m.GetAcknowledged()}
	for _, u := range m.GetUnhandled() {
		if u.GetService() == 0 || u.GetService() > math.MaxUint16 {
			return Downstream{}, wire.Malformed("unhandled service %d", u.GetService())
		}
		d.Unhandled = append(d.Unhandled, Unhandled{Service: uint16(u.GetService()), Messages: u.GetMessages()})
	}
	return d, nil
}
