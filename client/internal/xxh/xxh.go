// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package xxh has the hash by which an entity belongs to a shard: xxHash64 with seed 0. Clients have
// it to ask the node that hosts.
package xxh

import (
	"encoding/binary"
	"math/bits"
)

const (
	prime1 uint64 = 11400714785074694791
	prime2 uint64 = 14029467366897019727
	prime3 uint64 = 1609587929392839161
	prime4 uint64 = 9650029242287828579
	prime5 uint64 = 2870177450012600261
)

// stripe is how many bytes the four lanes take at a time.
const stripe = 32

// Sum64 returns the hash of a text.
func Sum64(s string) uint64 {
	b := []byte(s)
	n := uint64(len(b))
	h := prime5
	if len(b) >= stripe {
		h, b = lanes(b)
	}
	h += n
	for ; len(b) >= 8; b = b[8:] {
		h = bits.RotateLeft64(h^round(0, binary.LittleEndian.Uint64(b)), 27)*prime1 + prime4
	}
	if len(b) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(b))*prime1, 23)*prime2 + prime3
		b = b[4:]
	}
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c)*prime5, 11) * prime1
	}
	return avalanche(h)
}

// lanes takes whole stripes, and returns the hash so far and what is left.
func lanes(b []byte) (h uint64, rest []byte) {
	p1, p2 := prime1, prime2
	v := [4]uint64{p1 + p2, p2, 0, -p1}
	for ; len(b) >= stripe; b = b[stripe:] {
		for i := range v {
			v[i] = round(v[i], binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
	h = bits.RotateLeft64(v[0], 1) + bits.RotateLeft64(v[1], 7) + bits.RotateLeft64(v[2], 12) + bits.RotateLeft64(v[3], 18)
	for _, lane := range v {
		h = (h^round(0, lane))*prime1 + prime4
	}
	return h, b
}

func round(acc, in uint64) uint64 { return bits.RotateLeft64(acc+in*prime2, 31) * prime1 }

func avalanche(h uint64) uint64 {
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}
