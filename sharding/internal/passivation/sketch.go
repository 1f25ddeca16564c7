// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

import "math/bits"

// sketch estimates how often a key was added lately, also of keys that nobody knows any more. It is
// a count-min sketch (Cormode and Muthukrishnan, 2005) with counters of four bits, of which a key
// has four, and the least is the estimate. Old additions fade: with each addition the next few
// counters are halved, so that all of them are, once, while as many keys are added as ten times the
// limit.
//
// The counters are in words of 16. A key has one counter in each of four words; word and place come
// from its hash, so that four keys which share a word do not share all.
type sketch struct {
	words  []uint64 // The number is a power of two.
	period int      // The additions in which all words are halved once.
	debt   int      // The halvings that are due, in parts of period.
	hand   int      // The next word that is halved.
}

const (
	sketchRows  = 4
	maxCount    = 15 // The highest count.
	sketchFades = 10 // All counters are halved within ten times the limit.
	halfMask    = 0x7777777777777777
	countMask   = 0xf
)

// grow makes room for as many keys as there may be entities. The estimates stay: when the number of words
// doubles, a key is in the word with its old number, or in that as far behind the end, and both
// have the counters of the old one. A smaller limit leaves the room.
func (k *sketch) grow(limit int) {
	k.period = sketchFades * limit
	words := max(1<<bits.Len(uint(max(limit, 16)-1)), 16)
	if len(k.words) == 0 {
		k.words = make([]uint64, words)
		return
	}
	for len(k.words) < words {
		k.words = append(k.words, k.words...)
	}
}

// counter returns the word of a key in a row, and the place of the counter in the word.
func (k *sketch) counter(key uint32, row int) (word int, shift uint) {
	h := spread(key, row)
	return int(h & uint64(len(k.words)-1)), uint(h>>60) << 2 // Below the number of words.
}

// spread is a hash of a key for a row: the finalizer of splitmix64.
func spread(key uint32, row int) uint64 {
	h := (uint64(key) + 1) * 0x9e3779b97f4a7c15
	h += uint64(row) * 0xd1b54a32d192ed03 // Rows are 0 to 3.
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// add counts a key, and lets others fade.
func (k *sketch) add(key uint32) {
	for row := range sketchRows {
		word, shift := k.counter(key, row)
		if k.words[word]>>shift&countMask < maxCount {
			k.words[word] += 1 << shift
		}
	}
	for k.debt += len(k.words); k.debt >= k.period; k.debt -= k.period {
		k.hand &= len(k.words) - 1
		k.words[k.hand] = k.words[k.hand] >> 1 & halfMask
		k.hand++
	}
}

// frequency estimates how often a key was added.
func (k *sketch) frequency(key uint32) uint64 {
	least := uint64(maxCount)
	for row := range sketchRows {
		word, shift := k.counter(key, row)
		least = min(least, k.words[word]>>shift&countMask)
	}
	return least
}
