// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import "sync"

// tombstoneSums has sums over the tombstones of a table, by stamp: stamps are generations, of
// which there are few.
type tombstoneSums struct {
	mu   sync.Mutex
	sums map[uint64]tombstoneSum
	// confirmed says what the last Confirm has marked.
	confirmed struct{ gen, hash uint64 }
}

// tombstoneSum is how many tombstones have a stamp, and the sum of their terms.
type tombstoneSum struct {
	count int
	sum   uint64
}

// add puts a tombstone into the sums; sign 1, or -1 to take it out.
func (t *tombstoneSums) add(stamp, keyHash uint64, sign int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sums[stamp]
	s.count += sign
	s.sum += uint64(sign) * tombTerm(keyHash)
	if s.count == 0 {
		delete(t.sums, stamp)
		return
	}
	if t.sums == nil {
		t.sums = make(map[uint64]tombstoneSum)
	}
	t.sums[stamp] = s
}

// upTo returns the sums over all stamps up to one.
func (t *tombstoneSums) upTo(stamp uint64) tombstoneSum {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all tombstoneSum
	for at, s := range t.sums {
		if at <= stamp {
			all.count += s.count
			all.sum += s.sum
		}
	}
	return all
}
