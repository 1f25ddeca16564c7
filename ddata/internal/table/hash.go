// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import "github.com/quorate/quorate/ddata/crdt"

// First the hash of a key; then the terms of which the hash of an entry is the sum. Sums
// modulo 2^64 can be kept up to date: a term is taken out and another put in.
//
// Each term is a 64-bit mix of everything that it stands for, so two tables or entries that
// differ have equal sums with a probability of about 2^-64, and the next
// change draws anew. A second sum would double the cost of each update to improve on that.

// mix is the finaliser of MurmurHash3 (Appleby 2011), a bijection in which each bit
// of the input changes half of the output.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// HashKey returns a hash of the key that is the same on all nodes and in all versions:
// 64-bit FNV-1a, finished by a mix because the high bits of FNV hardly depend on
// the last bytes of a key.
func HashKey(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return mix(h)
}

// BucketOf returns the bucket of a key: the top 12 bits of its hash.
func BucketOf(key string) int { return bucketOf(HashKey(key)) }

func bucketOf(keyHash uint64) int { return int(keyHash >> 52) }

// stateTerm stands for everything of an entry but its versions and its floor.
func stateTerm(keyHash uint64, s State, typeHash, stamp uint64) uint64 {
	h := mix(keyHash + 0x9e3779b97f4a7c15*uint64(s))
	h = mix(h ^ typeHash)
	return mix(h + 0xd6e8feb86659fd93*stamp)
}

// originTerm stands for what an entry says of one origin: how much of it the value holds,
// and how much has expired. Zero is what was folded: it is part of each
// term, since what is folded into it next depends on it.
func originTerm(keyHash uint64, o crdt.Origin, holds, expired, zero uint64) uint64 {
	if holds == 0 && expired == 0 {
		return 0
	}
	h := mix(keyHash ^ 0xa0761d6478bd642f + 0x9e3779b97f4a7c15*uint64(o))
	h = mix(h + 0xe7037ed1a0b428db*holds)
	return mix(h + 0x8ebc6af09c88c6e3*expired + zero)
}

// zeroTerm stands for what an entry says of origin zero, in every originTerm.
func zeroTerm(holds, floor Versions) uint64 {
	v, f := holds.Of(0), floor.Of(0)
	if v == 0 && f == 0 {
		return 0
	}
	return mix(v+0x589965cc75374cc3) ^ mix(f+0x1d8e4e27c47d124f)*3
}

// tombTerm stands for a key among the tombstones. It does not depend on their stamps: two
// replicas that have both dropped the value of a key may both drop the tombstone, whenever each
// of them was made.
func tombTerm(keyHash uint64) uint64 { return mix(keyHash + 0x2d358dccaa6c78a5) }
