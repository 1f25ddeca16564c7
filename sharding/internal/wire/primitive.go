// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// ErrMalformed is wrapped by every error of decoding; it is the ErrMalformed of
// machine/wire.
var ErrMalformed = wire.ErrMalformed

func appendEpoch(b []byte, n wire.Number, e protocol.Epoch) []byte {
	if e.IsZero() {
		return b
	}
	b, at := wire.Begin(b, n)
	b = wire.AppendUint(b, 1, uint64(e.Born))
	b = wire.AppendUint(b, 2, uint64(e.Term.UpNumber))
	b = wire.AppendUint(b, 3, e.Term.Start)
	b = wire.AppendUint(b, 4, e.N)
	b = wire.AppendFixed64(b, 5, uint64(e.Term.UID))
	return wire.End(b, at)
}

func appendTerm(b []byte, n wire.Number, t protocol.Term) []byte {
	if t.IsZero() {
		return b
	}
	b, at := wire.Begin(b, n)
	b = wire.AppendUint(b, 1, uint64(t.UpNumber))
	b = wire.AppendUint(b, 2, t.Start)
	b = wire.AppendFixed64(b, 3, uint64(t.UID))
	return wire.End(b, at)
}

func setEpoch(dst *protocol.Epoch, f *wire.Field) error {
	b, err := f.Data(math.MaxInt)
	if err != nil {
		return err
	}
	*dst, err = epochOf(b)
	return err
}

// epochOf and termOf have loops of their own, since every message carries an epoch.
func epochOf(b []byte) (e protocol.Epoch, err error) {
	for len(b) > 0 {
		var f wire.Field
		if f, b, err = wire.Next(b); err != nil {
			return e, err
		}
		switch f.Number {
		case 1:
			var v uint64
			v, err = f.Uint(math.MaxInt64)
			e.Born = int64(v)
		case 2:
			err = wire.Set(&e.Term.UpNumber, &f, math.MaxUint64)
		case 3:
			err = wire.Set(&e.Term.Start, &f, math.MaxUint64)
		case 4:
			err = wire.Set(&e.N, &f, math.MaxUint64)
		case 5:
			err = wire.SetFixed(&e.Term.UID, &f)
		}
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

func setTerm(dst *protocol.Term, f *wire.Field) error {
	b, err := f.Data(math.MaxInt)
	if err != nil {
		return err
	}
	*dst, err = termOf(b)
	return err
}

func termOf(b []byte) (t protocol.Term, err error) {
	for len(b) > 0 {
		var f wire.Field
		if f, b, err = wire.Next(b); err != nil {
			return t, err
		}
		switch f.Number {
		case 1:
			err = wire.Set(&t.UpNumber, &f, math.MaxUint64)
		case 2:
			err = wire.Set(&t.Start, &f, math.MaxUint64)
		case 3:
			err = wire.SetFixed(&t.UID, &f)
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}
