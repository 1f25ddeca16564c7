// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

const (
	// piecesAbove is the size from which a message is looked at before it is decoded. Lists that smaller ones copy cost
	// no more than what other messages of their size do.
	piecesAbove = 128
	// maxPieces is how often a list of numbers may go on in another field. No encoder does that, but two encodings one
	// after the other are a message too.
	maxPieces = 8
)

// Unmarshal decodes b, which may come from anybody, into m, as proto.Unmarshal does. A list of numbers may be packed in
// any number of fields, and the library copies the list for each: 300 KB of such fields took 20 GB and 23 seconds. So a
// message whose lists go on in more than eight fields is refused. What another message takes is decided by its type:
// for each byte of b up to 48 bytes, and half the size of the largest struct among its messages.
func Unmarshal(b []byte, m proto.Message) error {
	if len(b) > piecesAbove {
		var p fragments
		p.fields(b, m.ProtoReflect().Descriptor(), 0, false)
		if p.more > maxPieces {
			return fmt.Errorf("%w: the numbers of its lists are packed in more fields than eight and one for each list", errMalformed)
		}
	}
	return proto.Unmarshal(b, m)
}

// fragments counts how often a list of numbers goes on in another field. What is no message is left to the decoder.
type fragments struct {
	more int
	deep int // How many messages are around what is looked at.
}

// fields looks at the fields of a message, or of a group up to its end, and returns their length, below zero for what
// is no message. Again says that lists of the message may have numbers: it is itself in no list, and has come before.
func (p *fragments) fields(b []byte, message protoreflect.MessageDescriptor, group protowire.Number, again bool) int {
	if p.deep++; p.deep > protowire.DefaultRecursionLimit {
		return -1 // The decoder refuses it too.
	}
	defer func() { p.deep-- }()
	var seen numbers
	for at := 0; at < len(b) && p.more <= maxPieces; {
		number, typ, n := protowire.ConsumeTag(b[at:])
		if n < 0 || typ == protowire.EndGroupType && number != group {
			return -1
		}
		at += n
		if typ == protowire.EndGroupType {
			return at
		}
		if n = p.field(b[at:], number, typ, fieldOf(message, number), again, &seen); n < 0 {
			return -1
		}
		at += n
	}
	return len(b)
}

// field looks at a field behind its tag, and returns its length.
func (p *fragments) field(b []byte, number protowire.Number, typ protowire.Type, field protoreflect.FieldDescriptor, again bool, seen *numbers) int {
	switch {
	case field == nil:
	case field.Message() == nil:
		packed := typ == protowire.BytesType && field.IsList() && field.Kind() != protoreflect.StringKind && field.Kind() != protoreflect.BytesKind
		if packed && (seen.add(number) || again) {
			p.more++
		}
	case typ == protowire.BytesType || typ == protowire.StartGroupType:
		again = field.Cardinality() != protoreflect.Repeated && (seen.add(number) || again)
		if typ == protowire.StartGroupType {
			return p.fields(b, field.Message(), number, again)
		}
		value, n := protowire.ConsumeBytes(b)
		p.fields(value, field.Message(), 0, again)
		return n
	}
	return protowire.ConsumeFieldValue(number, typ, b)
}

// fieldOf returns the field of a message, or its extension, that has a number; nil if there is none.
func fieldOf(message protoreflect.MessageDescriptor, number protowire.Number) protoreflect.FieldDescriptor {
	if field := message.Fields().ByNumber(number); field != nil {
		return field
	}
	if message.ExtensionRanges().Has(number) {
		if extension, err := protoregistry.GlobalTypes.FindExtensionByNumber(message.FullName(), number); err == nil {
			return extension.TypeDescriptor()
		}
	}
	return nil
}

// numbers are the numbers of fields that have come.
type numbers struct {
	small [2]uint64
	large map[protowire.Number]bool
}

// add adds a number, and reports whether it was there.
func (s *numbers) add(n protowire.Number) (before bool) {
	if place, bit := int(n)/64, uint64(1)<<(n%64); place < len(s.small) {
		before = s.small[place]&bit != 0
		s.small[place] |= bit
		return before
	}
	if s.large == nil {
		s.large = make(map[protowire.Number]bool)
	}
	before, s.large[n] = s.large[n], true
	return before
}
