// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/sharding/state/store"
)

// Codecs of states and events, and how an old form becomes the present one.

// Codec encodes values of type T for the store. It is called by many goroutines at once.
type Codec[T any] interface {
	// Form is the number of the form that Append writes, from 1. It rises when the form changes so
	// that programs of before could not read it.
	Form() uint32

	// Append appends the encoding of value to dst.
	Append(dst []byte, value *T) ([]byte, error)

	// Decode decodes b, which is in a form up to the present one, into value, which is empty. Any
	// byte sequence is possible.
	Decode(form uint32, b []byte, value *T) error
}

// JSON returns the codec that encodes values as package encoding/json does, in form 1.
func JSON[T any]() Codec[T] { return jsonCodec[T]{} }

type jsonCodec[T any] struct{}

func (jsonCodec[T]) Form() uint32 { return 1 }

func (jsonCodec[T]) Append(dst []byte, value *T) ([]byte, error) {
	b, err := json.Marshal(value)
	return append(dst, b...), err
}

func (jsonCodec[T]) Decode(_ uint32, b []byte, value *T) error { return json.Unmarshal(b, value) }

// Protobuf returns the codec for generated messages, in form 1: state.Protobuf[bankpb.Account]().
func Protobuf[T any, P interface {
	*T
	proto.Message
}]() Codec[T] {
	return protobufCodec[T, P]{}
}

type protobufCodec[T any, P interface {
	*T
	proto.Message
}] struct{}

func (protobufCodec[T, P]) Form() uint32 { return 1 }

func (protobufCodec[T, P]) Append(dst []byte, value *T) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, P(value))
}

func (protobufCodec[T, P]) Decode(_ uint32, b []byte, value *T) error {
	return proto.Unmarshal(b, P(value))
}

// Upgrade turns the bytes of a value in one form into those of the next.
type Upgrade func(old []byte) ([]byte, error)

// Upgraded returns a codec that writes as codec does, and reads older forms too: the first upgrade
// turns form 1 of the values into form 2, and so on; the last one returns what codec reads. So an
// upgrade is added when the form changes, and none is ever taken away. The codec must have form 1.
func Upgraded[T any](codec Codec[T], upgrades ...Upgrade) Codec[T] {
	return upgradedCodec[T]{codec, upgrades}
}

type upgradedCodec[T any] struct {
	Codec[T]

	upgrades []Upgrade
}

func (u upgradedCodec[T]) Form() uint32 { return u.Codec.Form() + uint32(len(u.upgrades)) }

func (u upgradedCodec[T]) Decode(form uint32, b []byte, value *T) error {
	for n := form; n < u.Form(); n++ {
		var err error
		if b, err = u.upgrades[n-1](b); err != nil {
			return fmt.Errorf("from form %d to form %d: %w", n, n+1, err)
		}
	}
	return u.Codec.Decode(u.Codec.Form(), b, value)
}

// decoded reads a stored value.
func decoded[T any](codec Codec[T], v store.Value, into *T) error {
	switch form := codec.Form(); {
	case v.Form == 0:
		return fmt.Errorf("%w: it has no form", ErrUnreadable)
	case v.Form > form:
		return fmt.Errorf("%w: it has form %d, this program reads forms up to %d", ErrNewerForm, v.Form, form)
	}
	if err := codec.Decode(v.Form, v.Bytes, into); err != nil {
		return fmt.Errorf("%w: form %d: %w", ErrUnreadable, v.Form, err)
	}
	return nil
}

// encoded returns a value for the store.
func encoded[T any](codec Codec[T], value *T) (store.Value, error) {
	b, err := codec.Append(nil, value)
	return store.Value{Form: codec.Form(), Bytes: b}, err
}
