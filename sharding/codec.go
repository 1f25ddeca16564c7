// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/rpc"
)

// How messages are encoded for other nodes: Codec, and those that come with the package: Protobuf, JSON, and Raw for
// what the program encodes by itself.

// Codec encodes the messages and the replies of a kind for other nodes. It is
// called from many goroutines at once, and must not keep its arguments. Where Append panics, so does the call that
// sends the message. A message to an entity of the same node is not encoded.
type Codec interface {
	// Name names the encoding. All nodes must use the same encoding for a kind.
	Name() string

	// Check reports whether messages like this one can be encoded at all. It is
	// called once, with an empty message, when a kind starts.
	Check(message any) error

	// Append appends the encoding of message to dst.
	Append(dst []byte, message any) ([]byte, error)

	// Decode decodes b into message, a pointer to an empty value. Any byte
	// sequence is possible. Decode does not wait for anything: other messages of the node
	// that sent b may wait for Decode. One that panics fails its message. One that ends its
	// goroutine fails it as an entity does that ends its own, and the connection begins anew, once.
	Decode(b []byte, message any) error
}

// MethodCodec is a [Codec] whose messages call methods, such as that of package typed. The spans of
// messages have the names of the methods. Both methods are called from any goroutine.
type MethodCodec interface {
	Codec

	// Methods returns the full names of all methods, such as bank.v1.Accounts/Deposit.
	Methods() []string

	// MethodOf returns the full name of the method that a message calls, which may be none of [MethodCodec.Methods]
	// if the message came from elsewhere. It is empty for a message that calls none.
	MethodOf(message any) string
}

// Protobuf encodes generated protocol buffer messages.
type Protobuf struct{}

var _ Codec = Protobuf{}

// Name returns "protobuf".
func (Protobuf) Name() string { return "protobuf" }

// Check fails for what is not a generated message.
func (Protobuf) Check(message any) error {
	_, err := asProto(message)
	return err
}

// Append appends the encoding.
func (Protobuf) Append(dst []byte, message any) ([]byte, error) {
	m, err := asProto(message)
	if err != nil {
		return dst, err
	}
	return proto.MarshalOptions{}.MarshalAppend(dst, m)
}

// Decode decodes b, and refuses lists of numbers that would cost more than they have bytes ([rpc.Unmarshal]).
func (Protobuf) Decode(b []byte, message any) error {
	m, err := asProto(message)
	if err != nil {
		return err
	}
	return rpc.Unmarshal(b, m)
}

// asProto returns message as a generated message.
func asProto(message any) (proto.Message, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a generated protocol buffer message, which the protobuf codec needs", message)
	}
	return m, nil
}

// JSON encodes messages with encoding/json: C is a pointer to anything that it
// can encode. Fields that the receiving side does not know are ignored, so that
// nodes of two versions understand each other. It costs several times what
// [Protobuf] does.
type JSON struct{}

var _ Codec = JSON{}

// Name returns "json".
func (JSON) Name() string { return "json" }

// Check fails for what encoding/json cannot encode, such as channels and
// functions.
func (JSON) Check(message any) error {
	if _, err := json.Marshal(message); err != nil {
		return fmt.Errorf("%T cannot be encoded as JSON: %w", message, err)
	}
	return nil
}

// Append appends the encoding.
func (JSON) Append(dst []byte, message any) ([]byte, error) {
	b, err := json.Marshal(message)
	if err != nil {
		return dst, fmt.Errorf("JSON: %w", err)
	}
	return append(dst, b...), nil
}

// Decode decodes b.
func (JSON) Decode(b []byte, message any) error {
	if err := json.Unmarshal(b, message); err != nil {
		return fmt.Errorf("JSON: %w", err)
	}
	return nil
}

// Bytes is a message or a reply that is its own encoding. A kind for which the
// program encodes by itself is a Kind[*Bytes] with the codec [Raw].
type Bytes []byte

// Raw passes [Bytes] on as they are.
type Raw struct{}

var _ Codec = Raw{}

// Name returns "raw".
func (Raw) Name() string { return "raw" }

// Check fails for what is not a *Bytes.
func (Raw) Check(message any) error {
	_, err := asBytes(message)
	return err
}

// Append appends the bytes.
func (Raw) Append(dst []byte, message any) ([]byte, error) {
	m, err := asBytes(message)
	if err != nil {
		return dst, err
	}
	return append(dst, *m...), nil
}

// Decode copies b.
func (Raw) Decode(b []byte, message any) error {
	m, err := asBytes(message)
	if err != nil {
		return err
	}
	*m = append(Bytes(nil), b...)
	return nil
}

// asBytes returns message as bytes.
func asBytes(message any) (*Bytes, error) {
	m, ok := message.(*Bytes)
	if !ok {
		return nil, fmt.Errorf("%T is not a *sharding.Bytes, which the raw codec needs", message)
	}
	return m, nil
}
