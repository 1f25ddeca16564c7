// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"

	"github.com/quorate/quorate/machine/wire"
)

// greeting is a message with two fields.
type greeting struct {
	Name  string
	Times uint16
}

// Append appends the encoding of the greeting.
func (g greeting) Append(b []byte) []byte {
	b = wire.AppendString(b, 1, g.Name)
	return wire.AppendUint(b, 2, uint64(g.Times))
}

// Decode reads the greeting. Fields of later versions are skipped.
func (g *greeting) Decode(b []byte) error {
	return wire.Each(b, func(f *wire.Field) error {
		switch f.Number {
		case 1:
			return wire.SetText(&g.Name, f, 10)
		case 2:
			return wire.Set(&g.Times, f, 1000)
		}
		return nil
	})
}

func Example() {
	b := greeting{Name: "Ann", Times: 3}.Append(nil)
	var g greeting
	fmt.Println(g.Decode(b), g)
	fmt.Println(g.Decode(greeting{Name: "Bob", Times: 2000}.Append(nil)))
	// Output:
	// <nil> {Ann 3}
	// malformed: field 2 is 2000, at most 1000
}
