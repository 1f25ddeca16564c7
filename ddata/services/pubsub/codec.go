// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"encoding/json"
	"fmt"
)

// Codec turns the values of a topic into bytes and back. Its methods are called from
// several goroutines at once.
type Codec[T any] interface {
	// Append appends the encoding of a value to dst.
	Append(dst []byte, v T) ([]byte, error)
	// Decode returns the value of an encoding, which it must not change. The value may
	// keep b.
	Decode(b []byte) (T, error)
}

// Bytes is the codec of messages that are bytes already. What a subscription returns may be
// shared with other subscriptions and must not be changed.
type Bytes struct{}

// Append appends a copy of the bytes.
func (Bytes) Append(dst, v []byte) ([]byte, error) { return append(dst, v...), nil }

// Decode returns the bytes themselves.
func (Bytes) Decode(b []byte) ([]byte, error) { return b, nil }

// JSON is the codec of values that package json encodes.
type JSON[T any] struct{}

// Append appends the value as JSON.
func (JSON[T]) Append(dst []byte, v T) ([]byte, error) {
	b, err := json.Marshal(v)
	return append(dst, b...), err
}

// Decode decodes JSON.
func (JSON[T]) Decode(b []byte) (v T, err error) {
	err = json.Unmarshal(b, &v)
	return v, err
}

// encode appends the encoding of a value, and makes an error of a panic.
func encode[T any](c Codec[T], dst []byte, v T) (b []byte, err error) {
	defer caught(&err)
	return c.Append(dst, v)
}

// decode returns the value of an encoding, and makes an error of a panic.
func decode[T any](c Codec[T], b []byte) (v T, err error) {
	defer caught(&err)
	return c.Decode(b)
}

func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the codec panicked: %v", p)
	}
}
