// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package optional checks the optional interfaces of a value that a program gives, such as an entity or a strategy.
//
// What calls an optional interface asks whether the value has it. A method with its name and another signature
// compiles, and is never called: `Stop(c *sharding.Context) error`, where Stop has no result. [Check] refuses such a
// value, by an error that names the method, what it is, and what it should be. So whoever takes a value with optional
// interfaces checks it first.
//
// All functions are pure, and may be called from any goroutine.
package optional

import (
	"fmt"
	"reflect"
	"sync/atomic"
)

// SignatureError says that a value has a method of an optional interface, and not the interface.
type SignatureError struct {
	// Type is the type of the value, Interface that of the optional interface, and Method the name of the method.
	Type, Interface reflect.Type
	Method          string
	// Has is the signature of the method of the value, as a type of a function: empty if the value has not the
	// method, but others of the interface. Want is what it should be.
	Has, Want string
}

// Error implements error.
func (e *SignatureError) Error() string {
	if e.Has == "" {
		return fmt.Sprintf("%s has a method of %s, and no method %s, which is to be a %s: it would never be called", e.Type, e.Interface, e.Method, e.Want)
	}
	return fmt.Sprintf("method %s of %s is a %s, and has to be a %s as in %s: it would never be called", e.Method, e.Type, e.Has, e.Want, e.Interface)
}

// Check returns a [*SignatureError] for the first of the optional interfaces of which the value has a method and
// which it does not have. Methods of base, an interface that the value has anyway, count for nothing; nil if there is
// none. A value that is nil has no methods.
func Check(value any, base reflect.Type, interfaces ...reflect.Type) error {
	if value == nil {
		return nil
	}
	v := reflect.ValueOf(value)
	for _, i := range interfaces {
		if v.Type().Implements(i) {
			continue
		}
		if err := check(v, base, i); err != nil {
			return err
		}
	}
	return nil
}

// Checker checks values of few types, of which the last good one is remembered: it is for values of which there are
// many, such as entities. It may be used from any goroutine.
type Checker struct {
	base       reflect.Type
	interfaces []reflect.Type
	good       atomic.Pointer[reflect.Type]
}

// NewChecker returns a checker that checks as [Check] does.
func NewChecker(base reflect.Type, interfaces ...reflect.Type) *Checker {
	return &Checker{base: base, interfaces: interfaces}
}

// Check is [Check].
func (c *Checker) Check(value any) error {
	t := reflect.TypeOf(value)
	if good := c.good.Load(); good != nil && *good == t {
		return nil
	}
	err := Check(value, c.base, c.interfaces...)
	if err == nil {
		c.good.Store(&t)
	}
	return err
}

func check(v reflect.Value, base, wanted reflect.Type) error {
	var missing *SignatureError
	some := false
	for want := range wanted.Methods() {
		if base != nil {
			if _, has := base.MethodByName(want.Name); has {
				continue
			}
		}
		fault := &SignatureError{Type: v.Type(), Interface: wanted, Method: want.Name, Want: want.Type.String()}
		method := v.MethodByName(want.Name)
		switch {
		case !method.IsValid():
			missing = fault
		case method.Type() != want.Type:
			fault.Has = method.Type().String()
			return fault
		default:
			some = true
		}
	}
	if some && missing != nil {
		return missing
	}
	return nil
}
