// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package optional_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine/optional"
)

type (
	doer    interface{ Do() error }
	stopper interface{ Stop(why string) }
	pair    interface {
		Take(b []byte) error
		Give() ([]byte, error)
	}
	grown interface {
		doer
		Grow()
	}
)

type (
	bare   struct{}
	stops  struct{ bare }
	fails  struct{ bare }
	halves struct{ bare }
	odd    struct{ bare }
	both   struct{ stops }
)

func (bare) Do() error             { return nil }
func (stops) Stop(string)          {}
func (*fails) Stop(string) error   { return nil }
func (halves) Take([]byte) error   { return nil }
func (odd) Take([]byte) error      { return nil }
func (odd) Give() []byte           { return nil }
func (both) Take([]byte) error     { return nil }
func (both) Give() ([]byte, error) { return nil, nil }

// A method with the name of an optional one is that one, or the value is refused.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		value any
		fault string
	}{
		{nil, ""},
		{bare{}, ""},
		{stops{}, ""},
		{both{}, ""},
		{fails{}, ""}, // A value has not the methods of its pointer.
		{&fails{}, "method Stop of *optional_test.fails is a func(string) error, and has to be a func(string) as in optional_test.stopper: it would never be called"},
		{halves{}, "optional_test.halves has a method of optional_test.pair, and no method Give, which is to be a func() ([]uint8, error): it would never be called"},
		{odd{}, "method Give of optional_test.odd is a func() []uint8, and has to be a func() ([]uint8, error) as in optional_test.pair: it would never be called"},
	} {
		err := optional.Check(c.value, reflect.TypeFor[doer](), reflect.TypeFor[stopper](), reflect.TypeFor[pair](), reflect.TypeFor[grown]())
		if c.fault == "" {
			require.NoError(t, err, "%T", c.value)
			continue
		}
		require.EqualError(t, err, c.fault)
		var fault *optional.SignatureError
		require.ErrorAs(t, err, &fault)
	}
}
