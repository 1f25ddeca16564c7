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

func Example_byHand() {
	b := greeting{Name: "Ann", Times: 3}.Append(nil)
	var g greeting
	fmt.Println(g.Decode(b), g)
	fmt.Println(g.Decode(greeting{Name: "Bob", Times: 2000}.Append(nil)))
	// Output:
	// <nil> {Ann 3}
	// malformed: field 2 is 2000, at most 1000
}

// card is a message with a list of greetings.
type card struct {
	To        string
	Greetings []greeting
}

// fields is the table of a card.
func (m *card) fields(c *wire.Codec) {
	wire.Text(c, 1, &m.To, 10)
	wire.Messages(c, 2, &m.Greetings, 100, (*greeting).fields)
}

// fields is the table of a greeting, which could have its bytes by hand as well.
func (g *greeting) fields(c *wire.Codec) {
	wire.Text(c, 1, &g.Name, 10)
	wire.Uint(c, 2, &g.Times, 1000)
}

func Example() {
	m := card{To: "Eve", Greetings: []greeting{{"Ann", 3}, {"Bob", 1}}}
	b, err := wire.Append(nil, &m, (*card).fields)
	fmt.Println(len(b), err)
	var got card
	fmt.Println(wire.Read(b, &got, (*card).fields), got)
	// Output:
	// 23 <nil>
	// <nil> {Eve [{Ann 3} {Bob 1}]}
}
