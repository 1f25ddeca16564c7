// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
)

// hidden is added to the number of a field that a release does not know. The sum is no field of any release.
const hidden wire.Number = 1 << 20

// Release is the codec of a release that lacks fields of the present one.
type Release struct {
	present machine.Codec
	paths   []wire.Path
}

var _ machine.Codec = Release{}

// Without returns the codec of the release before a field, which has several paths if the message that it is part of is
// inside several others. No path may begin with another one.
func Without(present machine.Codec, paths ...wire.Path) Release { return Release{present, paths} }

// Append appends the encoding of a message of a node of the release: the field is there if the message came with it,
// and was kept.
func (r Release) Append(dst []byte, message any) ([]byte, error) {
	b, err := r.present.Append(nil, message)
	if err != nil {
		return dst, err
	}
	for _, path := range r.paths {
		if b, err = rewrite(nil, b, path, known); err != nil {
			return dst, err
		}
	}
	return append(dst, b...), nil
}

// Decode returns the message that b holds, to a node that does not know the field.
func (r Release) Decode(b []byte) (_ any, err error) {
	for _, path := range r.paths {
		if b, err = rewrite(nil, b, path, hide); err != nil {
			return nil, err
		}
	}
	return r.present.Decode(b)
}

// hide gives a field a number that nobody knows.
func hide(f *wire.Field, n wire.Number) wire.Number {
	if f.Number == n {
		return n + hidden
	}
	return f.Number
}

// known gives a field that was kept its number again, and zero to one that is set: in a release that does not know it,
// nothing sets it.
func known(f *wire.Field, n wire.Number) wire.Number {
	switch f.Number {
	case n:
		return 0
	case n + hidden:
		return n
	}
	return f.Number
}

// Sent returns a message of a node of the release as a node of the present release reads it.
func (r Release) Sent(message any) (any, error) {
	b, err := r.Append(nil, message)
	if err != nil {
		return nil, err
	}
	return r.present.Decode(b)
}

// Received returns a message of a node of the present release as a node of this release reads it.
func (r Release) Received(message any) (any, error) {
	b, err := r.present.Append(nil, message)
	if err != nil {
		return nil, err
	}
	return r.Decode(b)
}

// rewrite appends the fields of b to dst, and gives those in the message in which the path ends the numbers that a
// function returns; zero leaves one out.
func rewrite(dst, b []byte, path wire.Path, as func(f *wire.Field, n wire.Number) wire.Number) ([]byte, error) {
	for len(b) > 0 {
		f, rest, err := wire.Next(b)
		if err != nil {
			return dst, err
		}
		switch {
		case len(path) == 1:
			if n := as(&f, path[0]); n != 0 {
				_, _, tag := wire.Tag(f.Raw)
				dst = append(wire.AppendTag(dst, n, f.Type), f.Raw[tag:]...)
			}
		case f.Number == path[0] && f.Type == wire.BytesType:
			var at int
			dst, at = wire.Begin(dst, f.Number)
			if dst, err = rewrite(dst, f.Bytes, path[1:], as); err != nil {
				return dst, err
			}
			dst = wire.End(dst, at)
		default:
			dst = append(dst, f.Raw...)
		}
		b = rest
	}
	return dst, nil
}
