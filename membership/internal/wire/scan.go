// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
	pb "github.com/quorate/quorate/membership/internal/proto/quorate/membership/v1"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// A list of two million empty strings is four megabytes on the wire and two hundred in
// memory. So the fields of a message are counted before the message is decoded: [scan]
// walks over the bytes by the description of the message, allocates nothing, and refuses
//
//   - a list that is longer than any cluster makes it,
//   - a part that comes twice, which would be decoded twice and thrown away once,
//   - numbers packed in more than one field: each field has the list copied anew, so that
//     60 KiB of such fields would cost a gigabyte.
//
// What passes costs its receiver a small multiple of its bytes.

// scanAbove is the size from which a message is scanned. Smaller messages cannot cost
// much, not even by lists that are copied for each of their numbers.
const scanAbove = 512

// listMax bounds every list that limits does not name.
const listMax = nodesMax

// columnName identifies a list by its message and its field.
type columnName struct{ message, field protoreflect.Name }

// limits are the lengths of the lists that have a limit of their own.
var limits = map[columnName]int{ //nolint:gochecknoglobals // A constant table.
	{"Members", "node"}: gossip.MaxMembers, {"Members", "status"}: gossip.MaxMembers,
	{"Members", "up_number"}: gossip.MaxMembers, {"Members", "profile"}: gossip.MaxMembers,
	{"Profiles", "zone"}: gossip.MaxMembers, {"Profiles", "app_version"}: gossip.MaxMembers,
	{"Profiles", "protocol_min"}: gossip.MaxMembers, {"Profiles", "protocol_max"}: gossip.MaxMembers,
	{"Profiles", "settings"}: gossip.MaxMembers, {"Profiles", "role_count"}: gossip.MaxMembers,
	{"Profiles", "service_count"}: gossip.MaxMembers, {"Profiles", "loaded_version"}: gossip.MaxMembers,
	{"Profiles", "loaded_count"}: gossip.MaxMembers,
	{"Profiles", "roles"}:        perMember, {"Profiles", "services"}: perMember, {"Profiles", "loaded"}: perMember,
	{"Tombstones", "node"}: gossip.MaxMembers, {"Tombstones", "last"}: gossip.MaxMembers, {"Tombstones", "removed_at"}: gossip.MaxMembers,
	{"Observers", "observer"}: gossip.MaxMembers, {"Observers", "version"}: gossip.MaxMembers, {"Observers", "row_count"}: gossip.MaxMembers,
	{"Observers", "subject"}: perMember, {"Observers", "row_status"}: perMember, {"Observers", "row_version"}: perMember,
	{"Causes", "by"}: 2 * gossip.MaxMembers, {"Causes", "why"}: 2 * gossip.MaxMembers,
	{"Causes", "node_count"}: 2 * gossip.MaxMembers, {"Causes", "node"}: 2 * gossip.MaxMembers,
	{"Edits", "key"}:    perMember,
	{"Settings", "key"}: protocol.MaxSettings, {"Settings", "value"}: protocol.MaxSettings, {"Settings", "class"}: protocol.MaxSettings,
	{"Differences", "key"}: protocol.MaxSettings, {"Differences", "member"}: protocol.MaxSettings, {"Differences", "joiner"}: protocol.MaxSettings,
}

// perMember bounds the lists that hold several values for each member: ten, for as many
// members as a state can have. A member has a few roles and services, and marks
// unreachable only nodes that it monitors, which are nine.
const perMember = 10 * gossip.MaxMembers

// scan refuses a message that would cost more than its size suggests. Other faults of its
// bytes are found by the decoder.
func scan(b []byte) error {
	return scanMessage(b, (*pb.Message)(nil).ProtoReflect().Descriptor())
}

// fieldsMax is above the number of every field of the messages, so that the counts fit
// into an array. A test holds the messages to it.
const fieldsMax = 64

func scanMessage(b []byte, message protoreflect.MessageDescriptor) error {
	var counted [fieldsMax]int // Values of each field, or of each oneof by its first field.
	for len(b) > 0 {
		f, rest, err := wire.Next(b)
		if err != nil {
			return err
		}
		number := protoreflect.FieldNumber(f.Number)
		if field := message.Fields().ByNumber(number); field != nil && number < fieldsMax {
			if err := scanField(&f, field, &counted); err != nil {
				return err
			}
		}
		b = rest
	}
	return nil
}

// scanField counts the values in one occurrence of a field.
func scanField(f *wire.Field, field protoreflect.FieldDescriptor, counted *[fieldsMax]int) error {
	place, values, limit := field.Number(), 1, 1
	if choice := field.ContainingOneof(); choice != nil {
		place = choice.Fields().Get(0).Number()
	}
	if field.IsList() {
		limit = limitOf(field)
		if f.Type == wire.BytesType && field.IsPacked() {
			values = valuesOf(f.Bytes, field.Kind())
			if values == 0 || counted[place] > 0 {
				return wire.Malformed("%s is packed in more than one field, or empty", field.FullName())
			}
		}
	}
	counted[place] += values
	if counted[place] > limit {
		return wire.Malformed("%s has %d values, at most %d", field.FullName(), counted[place], limit)
	}
	if field.Kind() != protoreflect.MessageKind || f.Type != wire.BytesType {
		return nil
	}
	return scanMessage(f.Bytes, field.Message())
}

// limitOf returns the largest length of a list.
func limitOf(field protoreflect.FieldDescriptor) int {
	if limit, ok := limits[columnName{field.Parent().Name(), field.Name()}]; ok {
		return limit
	}
	return listMax
}

// valuesOf counts the numbers that lie packed together in the bytes of a list.
func valuesOf(packed []byte, typ protoreflect.Kind) int {
	switch typ {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return len(packed) / 4
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return len(packed) / 8
	default:
		count := 0
		for _, c := range packed {
			if c < 0x80 { // The last byte of a number.
				count++
			}
		}
		return count
	}
}
