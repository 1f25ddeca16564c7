// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/singleton"
)

// First the order of epochs; then their text form, written by AppendText and read by Parse;
// then their byte form, written by AppendBinary and read by UnmarshalBinary.

// Size is the length of the byte form of an [Epoch].
const Size = 40

// Epoch numbers the homes of a shard: whoever hosts a shard after another has
// the higher epoch, over coordinators and over restarts of the whole cluster.
// An entity can pass its epoch to a storage as a fencing token: a storage that
// refuses writes with an epoch below the highest that it has seen cannot be written by
// a previous owner. Epochs are compared field by field in the order of declaration;
// their text forms and their byte forms compare like the epochs themselves. The zero
// value stands for no epoch and is below all others.
type Epoch struct {
	// Born is the birth of the cluster in Unix milliseconds. It is negative only
	// in values that are not valid.
	Born int64
	// Term is the term of the coordinator that gave the home.
	Term singleton.Term
	// N is the version of the shard map, in that term, that gave the home.
	N uint64
}

// Compare returns -1, 0 or +1 when e is below, equal to or above o.
func (e Epoch) Compare(o Epoch) int {
	if c := cmp.Compare(e.Born, o.Born); c != 0 {
		return c
	}
	if c := e.Term.Compare(o.Term); c != 0 {
		return c
	}
	return cmp.Compare(e.N, o.N)
}

// Less reports whether e is below o.
func (e Epoch) Less(o Epoch) bool { return e.Compare(o) < 0 }

// IsZero reports whether e is the zero value, which stands for no epoch.
func (e Epoch) IsZero() bool { return e == Epoch{} }

// String returns the text form; see [Epoch.AppendText].
func (e Epoch) String() string {
	b, _ := e.AppendText(make([]byte, 0, 64))
	return string(b)
}

// AppendText appends the text form: the five numbers birth, up-number, uid, start and N, in
// hexadecimal, separated by '-', each preceded by a letter that gives its number of digits
// ('a' for one, 'p' for sixteen). So texts compare as strings in the order of the epochs,
// and can be used as names of files. AppendText never fails.
func (e Epoch) AppendText(b []byte) ([]byte, error) {
	b = appendOrdered(b, uint64(e.Born))
	b = appendOrdered(append(b, '-'), uint64(e.Term.UpNumber))
	b = appendOrdered(append(b, '-'), uint64(e.Term.UID))
	b = appendOrdered(append(b, '-'), e.Term.Start)
	return appendOrdered(append(b, '-'), e.N), nil
}

// MarshalText returns the text form.
func (e Epoch) MarshalText() ([]byte, error) { return e.AppendText(nil) }

// UnmarshalText parses the text form; see [Parse].
func (e *Epoch) UnmarshalText(b []byte) (err error) {
	*e, err = Parse(string(b))
	return err
}

// appendOrdered appends v in hexadecimal, preceded by the letter that gives its number of
// digits.
func appendOrdered(b []byte, v uint64) []byte {
	var digits [16]byte
	hex := strconv.AppendUint(digits[:0], v, 16)
	return append(append(b, byte('a'+len(hex)-1)), hex...)
}

// Parse parses the text form. It accepts exactly what [Epoch.AppendText]
// produces for valid epochs, so that equal epochs have equal texts.
func Parse(s string) (Epoch, error) {
	parts := strings.Split(s, "-")
	if len(parts) != 5 {
		return Epoch{}, fmt.Errorf("epoch %q: want five numbers", s)
	}
	var v [5]uint64
	for i, p := range parts {
		n, err := parseOrdered(p)
		if err != nil {
			return Epoch{}, fmt.Errorf("epoch %q: %w", s, err)
		}
		v[i] = n
	}
	if int64(v[0]) < 0 {
		return Epoch{}, fmt.Errorf("epoch %q: the birth is out of range", s)
	}
	term := singleton.Term{UpNumber: gossip.UpNumber(v[1]), UID: gossip.UID(v[2]), Start: v[3]}
	return Epoch{Born: int64(v[0]), Term: term, N: v[4]}, nil
}

// parseOrdered is the inverse of appendOrdered.
func parseOrdered(p string) (uint64, error) {
	if len(p) < 2 || len(p) > 17 || p[0] != byte('a'+len(p)-2) {
		return 0, fmt.Errorf("the length of %q does not match its first letter", p)
	}
	hex := p[1:]
	if len(hex) > 1 && hex[0] == '0' || strings.ContainsFunc(hex, notLowerHex) {
		return 0, fmt.Errorf("%q is not a lower-case hexadecimal number without leading zeros", hex)
	}
	return strconv.ParseUint(hex, 16, 64)
}

func notLowerHex(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') }

// AppendBinary appends the byte form: the five numbers, eight bytes each, the
// most significant first. AppendBinary never fails.
func (e Epoch) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(b, uint64(e.Born))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Term.UpNumber))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Term.UID))
	b = binary.BigEndian.AppendUint64(b, e.Term.Start)
	return binary.BigEndian.AppendUint64(b, e.N), nil
}

// MarshalBinary returns the byte form.
func (e Epoch) MarshalBinary() ([]byte, error) { return e.AppendBinary(nil) }

// UnmarshalBinary parses the byte form.
func (e *Epoch) UnmarshalBinary(b []byte) error {
	if len(b) != Size {
		return fmt.Errorf("epoch: %d bytes, want %d", len(b), Size)
	}
	born := int64(binary.BigEndian.Uint64(b))
	if born < 0 {
		return fmt.Errorf("epoch: the birth is out of range")
	}
	e.Born = born
	e.Term.UpNumber = gossip.UpNumber(binary.BigEndian.Uint64(b[8:]))
	e.Term.UID = gossip.UID(binary.BigEndian.Uint64(b[16:]))
	e.Term.Start = binary.BigEndian.Uint64(b[24:])
	e.N = binary.BigEndian.Uint64(b[32:])
	return nil
}
