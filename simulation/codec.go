// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/quorate/quorate/machine"
)

// Release is the codec of a component of another release than that of the world, such as one that lacks a field. All
// messages from and to a node with it go through both codecs, and may lose what that release does not know; see package
// wiretest of module machine.
type Release interface {
	machine.Codec

	// Sent returns a message of the node as the release of the world reads it.
	Sent(message any) (any, error)

	// Received returns a message to the node as its release reads it.
	Received(message any) (any, error)
}

// translated returns a message in the words of another release, which an error of ends the run.
func (net *Network) translated(c *machine.Component, message any, by func(any) (any, error)) (any, bool) {
	net.world.stats.Codec++
	other, err := by(message)
	if err != nil {
		net.world.Fail(fmt.Errorf("%s: %s between two releases: %w", c.Name, net.world.trace.typeOf(message).name, err))
	}
	return other, err == nil
}

// recode encodes and decodes a message with its component's codec, and compares: the
// decoded message must be the same, and its encoding too.
func (net *Network) recode(c *machine.Component, message any) (any, error) {
	if c.Codec == nil {
		return message, nil
	}
	net.world.stats.Codec++
	name := net.world.trace.typeOf(message).name
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
	if !bytes.Equal(first, second) || !net.same.values(reflect.ValueOf(message), reflect.ValueOf(decoded)) {
		return nil, fmt.Errorf("%s: %s is not what was encoded\nsent:    %+v\ndecoded: %+v", c.Name, name, message, decoded)
	}
	return decoded, nil
}

// comparer compares messages. It keeps the number of the method Equal of each type that it has met, -1 where there is
// none: to look for a method by its name takes longer than all the rest.
type comparer map[reflect.Type]int

// equal returns the method by which values of a type are compared; false without one.
func (c comparer) equal(v reflect.Value) (reflect.Value, bool) {
	t := v.Type()
	number, known := c[t]
	if !known {
		number = -1
		if m, ok := t.MethodByName("Equal"); ok && m.Type.NumIn() == 2 && m.Type.In(1) == t {
			number = m.Index
		}
		c[t] = number
	}
	if number < 0 {
		return reflect.Value{}, false
	}
	return v.Method(number), true
}

// values compares two messages: by their Equal method where a value has one. A nil list
// equals an empty one.
func (c comparer) values(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return a.IsValid() == b.IsValid()
	}
	if a.CanInterface() && !isNil(a) && !isNil(b) {
		if equal, ok := c.equal(a); ok {
			return equal.Call([]reflect.Value{b})[0].Bool()
		}
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !c.values(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return false
		}
		if a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Uint8 {
			return bytes.Equal(a.Bytes(), b.Bytes())
		}
		for i := range a.Len() {
			if !c.values(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for _, key := range a.MapKeys() {
			if !c.values(a.MapIndex(key), b.MapIndex(key)) {
				return false
			}
		}
		return true
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return c.values(a.Elem(), b.Elem())
	default:
		return a.Equal(b)
	}
}

func isNil(v reflect.Value) bool { return v.Kind() == reflect.Pointer && v.IsNil() }
