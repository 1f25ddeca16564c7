// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wiretest_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/machine/wire/wiretest"
)

// letter is a message that is passed on, with stamps that are not.
type letter struct {
	To, From string
	Stamps   []stamp
	Unknown  string
}

type stamp struct{ Value, Year uint64 }

func (m *letter) fields(c *wire.Codec) {
	wire.Text(c, 1, &m.To, 10)
	wire.Text(c, 2, &m.From, 10)
	wire.Messages(c, 3, &m.Stamps, 10, (*stamp).fields)
	wire.Keep(c, &m.Unknown, 30)
}

func (s *stamp) fields(c *wire.Codec) {
	wire.Uint(c, 1, &s.Value, math.MaxUint64)
	wire.Uint(c, 2, &s.Year, math.MaxUint64)
}

// letters is the codec of letters, without and within an envelope in field 5 of the frame.
type letters struct{}

var _ machine.Codec = letters{}

func (letters) Append(dst []byte, message any) ([]byte, error) {
	m, _ := message.(letter)
	b, at := wire.Begin(dst, 5)
	b, err := wire.Append(b, &m, (*letter).fields)
	return wire.End(b, at), err
}

func (letters) Decode(b []byte) (any, error) {
	var m letter
	f, _, err := wire.Next(b)
	if err == nil {
		err = wire.Read(f.Bytes, &m, (*letter).fields)
	}
	return m, err
}

func Example() {
	before := wiretest.Without(letters{}, wire.Path{5, 2})
	received, err := before.Received(letter{To: "Ann", From: "Bob"})
	fmt.Printf("%q %v\n", received.(letter).From, err)
	sent, err := before.Sent(received)
	fmt.Printf("%q %v\n", sent.(letter).From, err)
	own, err := before.Sent(letter{To: "Ann", From: "Eve"}) // Nobody sets it in a release that does not know it.
	fmt.Printf("%q %v\n", own.(letter).From, err)
	// Output:
	// "" <nil>
	// "Bob" <nil>
	// "" <nil>
}

// What is in a message that keeps nothing is lost on the way through the release before, and a list that is kept is
// kept as a whole, in its order.
func TestAReleaseBeforeLosesWhatItDoesNotKeep(t *testing.T) {
	m := letter{To: "Ann", From: "Bob", Stamps: []stamp{{1, 1990}, {}, {3, 2000}}}
	for _, test := range []struct {
		path wire.Path
		read letter
		sent letter
	}{
		{wire.Path{5, 3, 2}, letter{To: "Ann", From: "Bob", Stamps: []stamp{{Value: 1}, {}, {Value: 3}}}, letter{To: "Ann", From: "Bob", Stamps: []stamp{{Value: 1}, {}, {Value: 3}}}},
		{wire.Path{5, 3}, letter{To: "Ann", From: "Bob"}, m},
		{wire.Path{5, 9}, m, m},
	} {
		before := wiretest.Without(letters{}, test.path)
		received, err := before.Received(m)
		require.NoError(t, err)
		read := received.(letter)
		read.Unknown = ""
		require.Equal(t, test.read, read, "%v", test.path)
		sent, err := before.Sent(received)
		require.NoError(t, err)
		require.Equal(t, test.sent, sent, "%v", test.path)
	}
}

// Several fields are missing at once, and what is malformed is refused as ever.
func TestSeveralFieldsAreMissing(t *testing.T) {
	m := letter{To: "Ann", From: "Bob", Stamps: []stamp{{1, 1990}}}
	before := wiretest.Without(letters{}, wire.Path{5, 1}, wire.Path{5, 2})
	received, err := before.Received(m)
	require.NoError(t, err)
	require.Empty(t, received.(letter).To+received.(letter).From)
	sent, err := before.Sent(received)
	require.NoError(t, err)
	require.Equal(t, m, sent)
	_, err = before.Decode([]byte{0x2a, 0x01, 0x0a})
	require.ErrorIs(t, err, wire.ErrMalformed)
	_, err = wiretest.Without(letters{}, wire.Path{5, 3}).Received(letter{Stamps: make([]stamp, 10)})
	require.ErrorIs(t, err, wire.ErrMalformed, "more than the message keeps")
}
