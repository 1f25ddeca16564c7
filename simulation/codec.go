// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/quorate/quorate/machine"
)

// recode encodes and decodes a message with its component's codec, and compares: the
// decoded message must be the same, and its encoding too.
func (net *Network) recode(c *machine.Component, message any) (any, error) {
	if c.Codec == nil {
		return message, nil
	}
	net.world.stats.Codec++
	name := net.world.trace.shape(message).name
	first, err := c.Codec.Append(net.scratch[:0], message)
	if err != nil {
		return nil, fmt.Errorf("%s: encode %s: %w", c.Name, name, err)
	}
	net.scratch = first
	net.world.trace.bytes(first)
	decoded, err := c.Codec.Decode(first)
	if err != nil {
		return nil, fmt.Errorf("%s: decode own %s of %d bytes: %w", c.Name, name, len(first), err)
	}
	second, err := c.Codec.Append(nil, decoded)
	if err != nil {
		return nil, fmt.Errorf("%s: encode decoded %s: %w", c.Name, name, err)
	}
	if !bytes.Equal(first, second) || !same(reflect.ValueOf(message), reflect.ValueOf(decoded)) {
		return nil, fmt.Errorf("%s: %s is not what was encoded\nsent:    %+v\ndecoded: %+v", c.Name, name, message, decoded)
	}
	return decoded, nil
}

// same compares two messages: by their Equal method where a value has one. A nil list
// equals an empty one.
func same(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return a.IsValid() == b.IsValid()
	}
	if a.CanInterface() && !isNil(a) && !isNil(b) {
		equal := a.MethodByName("Equal")
		if equal.IsValid() && equal.Type().NumIn() == 1 && equal.Type().In(0) == a.Type() {
			return equal.Call([]reflect.Value{b})[0].Bool()
		}
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for _, key := range a.MapKeys() {
			if !same(a.MapIndex(key), b.MapIndex(key)) {
				return false
			}
		}
		return true
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return same(a.Elem(), b.Elem())
	default:
		return a.Equal(b)
	}
}

func isNil(v reflect.Value) bool { return v.Kind() == reflect.Pointer && v.IsNil() }
