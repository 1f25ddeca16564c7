// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A call and a reply, each with its size, how it is appended and how it is decoded; fields, below, goes
// through the fields of an encoded message. The form is quorate/rpc/v1/rpc.proto, written by hand: the message of the
// user is appended behind its own length, without a copy of it.

// Call is a message to an entity of a service: the name of the method, and its message.
type Call struct {
	Method  string        // The name of the rpc in its service, such as "Deposit".
	OneWay  bool          // The call is told: nobody waits for a reply.
	Message proto.Message // Nil only if the receiver does not know the method.
}

// Reply is what an entity answers: the message that the method returned, or a fault.
type Reply struct {
	Fault *Fault // Nil unless the call was refused.

	// One of the two is set, unless there is a fault: the message, or its encoding when the
	// reply came from elsewhere.
	Message proto.Message
	Encoded []byte
}

// The numbers of the fields in quorate/rpc/v1/rpc.proto.
const (
	callMethod, callMessage, callOneWay = 1, 2, 3
	replyMessage, replyFault            = 1, 2
	faultCode, faultText                = 1, 2
)

var errMalformed = errors.New("rpc: malformed")

// Append appends the encoding.
func (c *Call) Append(dst []byte) ([]byte, error) {
	dst = protowire.AppendTag(dst, callMethod, protowire.BytesType)
	dst = protowire.AppendString(dst, c.Method)
	if c.OneWay {
		dst = protowire.AppendTag(dst, callOneWay, protowire.VarintType)
		dst = protowire.AppendVarint(dst, 1)
	}
	return appendMessage(protowire.AppendTag(dst, callMessage, protowire.BytesType), c.Message)
}

// appendMessage appends a message behind its length.
func appendMessage(dst []byte, m proto.Message) ([]byte, error) {
	dst = protowire.AppendVarint(dst, uint64(proto.Size(m))) // Not negative.
	dst, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(dst, m)
	if err != nil {
		return dst, fmt.Errorf("rpc: %w: %w", ErrInvalid, err)
	}
	return dst, nil
}

// DecodeCall decodes a call. The message is in b, which it shares.
func DecodeCall(b []byte) (method string, message []byte, oneWay bool, err error) {
	err = fields(b, func(number protowire.Number, value []byte, varint uint64) {
		switch number {
		case callMethod:
			method = string(value)
		case callMessage:
			message = value
		case callOneWay:
			oneWay = varint != 0
		default: // Of a later version.
		}
	})
	if err == nil && method == "" {
		err = fmt.Errorf("%w: a call without a method", errMalformed)
	}
	return method, message, oneWay, err
}

// Append appends the encoding.
func (r *Reply) Append(dst []byte) ([]byte, error) {
	switch {
	case r.Fault != nil:
		f := r.Fault.bounded()
		dst = protowire.AppendTag(dst, replyFault, protowire.BytesType)
		return protowire.AppendBytes(dst, f.append(nil)), nil //nolint:nilerr // The fault is what is appended.
	case r.Message != nil:
		return appendMessage(protowire.AppendTag(dst, replyMessage, protowire.BytesType), r.Message)
	default:
		dst = protowire.AppendTag(dst, replyMessage, protowire.BytesType)
		return protowire.AppendBytes(dst, r.Encoded), nil
	}
}

func (f *Fault) append(dst []byte) []byte {
	dst = protowire.AppendString(protowire.AppendTag(dst, faultCode, protowire.BytesType), f.Code)
	return protowire.AppendString(protowire.AppendTag(dst, faultText, protowire.BytesType), f.Text)
}

// Decode decodes b into r, and keeps nothing of b.
func (r *Reply) Decode(b []byte) error {
	*r = Reply{}
	var fault []byte
	found, failed := false, false
	err := fields(b, func(number protowire.Number, value []byte, _ uint64) {
		switch number {
		case replyMessage:
			r.Encoded, found = append([]byte{}, value...), true
		case replyFault:
			fault, found, failed = value, true, true
		default: // Of a later version.
		}
	})
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%w: a reply without a message", errMalformed)
	case !failed:
		return nil
	}
	r.Encoded, r.Fault = nil, new(Fault)
	return fields(fault, func(number protowire.Number, value []byte, _ uint64) {
		switch number {
		case faultCode:
			r.Fault.Code = cut(string(value), maxCodeBytes)
		case faultText:
			r.Fault.Text = cut(string(value), maxTextBytes)
		default: // Of a later version.
		}
	})
}

// fields calls f for each field of an encoded message: with the value of one that has a length,
// or the number of one that is a varint. Fields of other types, and those of later versions, are
// passed over. A field that has another type than its number says is passed to f
// as if it were empty.
func fields(b []byte, f func(number protowire.Number, value []byte, varint uint64)) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", errMalformed, protowire.ParseError(n))
		}
		b = b[n:]
		var value []byte
		var varint uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			varint, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", errMalformed, protowire.ParseError(n))
		}
		b = b[n:]
		f(number, value, varint)
	}
	return nil
}
