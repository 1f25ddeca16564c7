// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// What clients did, and what reads must return then. Each element is written once, to one key, so that an element of a
// key is a register that is written once; and a history is linearizable if and only if it is for each register (Herlihy
// and Wing 1990, theorem 1). For such a register that means:
//
//	W  a read that began after a write was acknowledged returns the element
//	R  a read that began after another one had returned the element returns it too
//	T  after taking an element out of a set was acknowledged, no read that begins later
//	   returns it
//	C  a read of a counter returns at least the number of writes that were acknowledged before
//	   it began, and at least what a read returned before it began; and at most the number of
//	   writes that have begun, without those of which the program was told that nothing is
//	   stored anywhere
//	N  no read returns an element of which the program was told that it is stored nowhere
//	D  W and R do not hold once a delete of the key has begun; and after a delete was
//	   acknowledged, no read that begins later returns an element that was written, or
//	   seen, before that delete began
//
// A write is one call of a program, however often the call makes it.

// History is the record of all operations of all clients.
type History struct {
	keys map[string]*keyHistory
	// forgets says that keys expire: then elements may be missing in what reads return.
	forgets bool

	Acked, Reads, Deletes, Taken, Failed, Unconfirmed, Lost int
}

// keyHistory is what happened to one key.
type keyHistory struct {
	must    map[uint64]bool // Elements that every later read returns, while the key is not deleted.
	tried   map[uint64]bool // Elements whose write has begun, and was not said to be stored nowhere.
	gone    map[uint64]bool // Elements that no later read returns.
	taken   map[uint64]bool // Elements that a write has begun to take out.
	least   uint64          // Of a counter: what every later read returns at least.
	deletes int             // Deletes that have begun.
	acked   uint64          // Writes that were acknowledged, since the last loss was accepted.
	ended   int             // Deletes that were acknowledged.
	losses  int             // How often a loss was accepted.
}

func newHistory(forgets bool) *History {
	return &History{keys: map[string]*keyHistory{}, forgets: forgets}
}

func (h *History) key(key string) *keyHistory {
	k := h.keys[key]
	if k == nil {
		k = &keyHistory{must: map[uint64]bool{}, tried: map[uint64]bool{}, gone: map[uint64]bool{}, taken: map[uint64]bool{}}
		h.keys[key] = k
	}
	return k
}

// write notes that a write begins.
func (h *History) write(key string, element uint64) { h.key(key).tried[element] = true }

// unstored notes that a program was told that nothing of its write is stored anywhere.
func (h *History) unstored(o *operation) {
	if h.Failed++; !o.takes {
		delete(h.key(o.key).tried, o.element)
	}
}

// settledDeletes returns how many deletes of a key have begun if all of them were acknowledged, and otherwise -1: one
// that was not may take effect at any time.
func (k *keyHistory) settledDeletes() int {
	if k.deletes != k.ended {
		return -1
	}
	return k.deletes
}

// startState is what an operation remembers of its key at the time when it began.
type startState struct {
	settledDeletes int // See [keyHistory.settledDeletes].
	losses         int // How many losses had been accepted.
}

// now returns the start state of an operation that begins now.
func (h *History) now(key string) startState {
	k := h.key(key)
	return startState{k.settledDeletes(), k.losses}
}

// lost reports whether a loss was accepted since an operation began: what it did may be lost, also if it is
// acknowledged later, by answers that were on their way.
func (k *keyHistory) lost(began startState) bool { return k.losses != began.losses }

// wrote notes that a write was acknowledged, which began in a start state.
func (h *History) wrote(key string, element uint64, began startState) {
	h.Acked++
	k := h.key(key)
	if k.lost(began) {
		return
	}
	k.acked++
	if began.settledDeletes >= 0 && began.settledDeletes == k.settledDeletes() && !k.gone[element] {
		k.must[element] = true
	}
}

// reading is what a read must return and what it must not, as known when it began.
type reading struct {
	must, gone     map[uint64]bool
	deletes        int
	settledDeletes int
	losses         int
	least          uint64
}

// read notes that a read begins.
func (h *History) read(key string) reading {
	k := h.key(key)
	return reading{must: maps.Clone(k.must), gone: maps.Clone(k.gone), deletes: k.deletes, settledDeletes: k.settledDeletes(), losses: k.losses, least: max(k.acked, k.least)}
}

// returned checks what a read has returned.
func (h *History) returned(key string, r reading, elements []uint64, deleted bool) error {
	h.Reads++
	k := h.key(key)
	got := map[uint64]bool{}
	for _, e := range elements {
		got[e] = true
		if !k.tried[e] {
			return fmt.Errorf("D2: a read of %s returned %d, which nobody wrote", key, e)
		}
		if r.gone[e] && k.losses == r.losses {
			return fmt.Errorf("D4: a read of %s returned %d, which was deleted before the read began", key, e)
		}
	}
	if k.deletes != r.deletes || k.losses != r.losses || h.forgets {
		return nil // A delete has begun meanwhile: what it deletes may be missing.
	}
	for _, e := range slices.Sorted(maps.Keys(r.must)) {
		if !got[e] && !k.taken[e] {
			return fmt.Errorf("D2: a read of %s missed %d, which was acknowledged or read before the read began (deleted: %v, returned: %v)", key, e, deleted, elements)
		}
	}
	if deleted && len(r.must) > 0 {
		return fmt.Errorf("D4: a read of %s returned a tombstone although no delete has begun since %d elements were there", key, len(r.must))
	}
	if r.settledDeletes >= 0 && r.settledDeletes == k.settledDeletes() {
		for e := range got { //quorate:unordered a set
			if !k.taken[e] {
				k.must[e] = true
			}
		}
	}
	return nil
}

// counted checks what a read of a counter has returned.
func (h *History) counted(key string, r reading, value uint64) error {
	h.Reads++
	k := h.key(key)
	if value < r.least && k.losses == r.losses && !h.forgets {
		return fmt.Errorf("D2: a read of %s returned %d, although %d was acknowledged or read before it began", key, value, r.least)
	}
	if most := uint64(len(k.tried)); value > most {
		return fmt.Errorf("D4: a read of %s returned %d, although no more than %d were added", key, value, most)
	}
	if k.losses == r.losses {
		k.least = max(k.least, value)
	}
	return nil
}

// taking notes that an element is taken out of a set, one that every read returns.
func (h *History) taking(key string, r *rand.Rand) (uint64, bool) {
	k := h.key(key)
	all := slices.Sorted(maps.Keys(k.must))
	if len(all) == 0 {
		return 0, false
	}
	e := all[r.IntN(len(all))]
	delete(k.must, e)
	k.taken[e] = true
	return e, true
}

// took notes that the write was acknowledged by which an element was taken out; had says whether the replica that made
// it had the element.
func (h *History) took(key string, element uint64, had bool, began startState) {
	h.Taken++
	if h.key(key).lost(began) {
		return
	}
	// When the key expires, so does what replicas know of the removal: one that has missed both, and changes the key
	// then, brings the element back.
	if had && !h.forgets {
		h.key(key).gone[element] = true
	}
}

// deleting notes that a delete begins, and returns the elements that it deletes.
func (h *History) deleting(key string) map[uint64]bool {
	k := h.key(key)
	k.deletes++
	doomed := maps.Clone(k.must)
	clear(k.must)
	return doomed
}

// deleted notes that a delete of some elements was acknowledged, which began in a start state.
func (h *History) deleted(key string, doomed map[uint64]bool, began startState) {
	h.Deletes++
	k := h.key(key)
	if k.ended++; k.lost(began) {
		return
	}
	maps.Copy(k.gone, doomed)
	for e := range doomed { //quorate:unordered a set
		delete(k.must, e)
	}
}

// forgive forgets what reads must return: everything acknowledged before may be lost.
func (h *History) forgive() { h.forgiveSome(func(string) bool { return true }) }

// forgiveSome is forgive for some keys.
func (h *History) forgiveSome(of func(key string) bool) {
	for key, k := range h.keys { //quorate:unordered each by itself
		if !of(key) {
			continue
		}
		clear(k.must)
		clear(k.gone)
		k.least, k.acked = 0, 0
		k.losses++
	}
}

// unsettled returns the keys with a delete that has begun and was not acknowledged.
func (h *History) unsettled() (keys []string) {
	for key, k := range h.keys { //quorate:unordered each by itself, for a set
		if k.settledDeletes() < 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// unsettle notes that a delete of each of some keys may take effect at any time from now on, also if it was
// acknowledged: the disks were put back to a state in which it was under way.
func (h *History) unsettle(keys []string) {
	for _, key := range keys {
		h.key(key).deletes++
	}
}

// acknowledged returns how many writes of each key were acknowledged.
func (h *History) acknowledged() map[string]uint64 {
	all := map[string]uint64{}
	for key, k := range h.keys { //quorate:unordered a map
		all[key] = k.acked
	}
	return all
}
