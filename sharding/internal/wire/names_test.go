// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// madeUp is a text that would be three lines of a log, move the cursor of a terminal and turn the direction of a text.
const madeUp = "x\n2026/11/28 13:40:00 WARN made up\x1b[31m\u202e\n"

// free are the texts of messages that may be anything: the ids of entities, and sentences for people. Who writes them
// into a log or a terminal quotes them. All others are names, which logs and metrics have as they are.
var free = map[string]bool{
	"Entity": true, "Gone": true, "IDs": true, "Detail": true, "Refusal": true, "Decision": true, "Reason": true,
	"Setting": true, "Coordinator": true, "Region": true, // Of a refusal.
}

// Names on the wire have characters that print alone, in every field of every message.
func TestNamesOnTheWirePrint(t *testing.T) {
	names := map[string]int{}
	try := func(what string, message any, sent func(any) ([]byte, error), read func([]byte) error) {
		for i := 0; ; i++ {
			m := reflect.New(reflect.TypeOf(message)).Elem()
			m.Set(reflect.ValueOf(message))
			left := i
			field := spoil(m, "", &left)
			if field == "" {
				return
			}
			b, err := sent(m.Interface())
			require.NoError(t, err, what)
			if err := read(b); !free[field] {
				names[field]++
				require.ErrorIs(t, err, wire.ErrMalformed, "%s of %s", field, what)
			}
		}
	}
	for name := range controls() {
		try(name, controls()[name], func(m any) ([]byte, error) { return codec.Append(nil, m) }, func(b []byte) error {
			_, err := codec.Decode(b)
			return err
		})
	}
	for name, m := range items() {
		if message, ok := m.(*cell.Message); ok {
			m = *message
		}
		try(name, m, func(m any) ([]byte, error) {
			if message, ok := m.(cell.Message); ok {
				m = &message
			}
			return appendItem(nil, m), nil
		}, func(b []byte) error {
			_, err := wire.DecodeItem(b, now)
			return err
		})
	}
	require.Greater(t, names["Kind"], 30)
	for _, field := range []string{"Hash", "Codec", "Role"} {
		require.NotZero(t, names[field], field)
	}
}

// spoil sets the text with a number, as it finds them, to what somebody made up, and returns the name of its field.
func spoil(v reflect.Value, name string, number *int) string {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() && *number == 0 {
			v.SetString(madeUp)
			return name
		}
		*number--
	case reflect.Struct:
		if v.Type().PkgPath() == "time" || v.Type().Name() == "NodeID" { // Hosts are checked with the node, in package gossip.
			return ""
		}
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			if found := spoil(v.Field(i), v.Type().Field(i).Name, number); found != "" {
				return found
			}
		}
	case reflect.Slice:
		all := reflect.MakeSlice(v.Type(), v.Len(), v.Len()) // The messages of the table are not changed.
		reflect.Copy(all, v)
		if v.CanSet() {
			v.Set(all)
		}
		for i := range v.Len() {
			if found := spoil(v.Index(i), name, number); found != "" {
				return found
			}
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct && v.CanSet() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			v.Set(own)
			return spoil(own.Elem(), name, number)
		}
	default:
	}
	return ""
}
