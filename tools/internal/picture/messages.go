// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import "slices"

// drawnMessage is a message between two lanes that the page draws as an arrow.
type drawnMessage struct {
	sent, arrives int64 // Arrives is 0 for one that was lost.
	from, to      int
	kind          int
	number        int // Its place among those of its kind in its second, from 0.
	serial        int // Its place among all, from 0.
}

// drawnMessages keeps some of the messages of a run: of each kind the first few of every second, and the last of
// all. Few is halved whenever there is no room.
type drawnMessages struct {
	most  int // How many are kept at most, beside the last ones.
	few   int // How many of each kind are kept of every second.
	kept  []drawnMessage
	last  []drawnMessage // A ring.
	all   int
	clock int64
	count map[int]int // By kind, in the present second.
}

func newDrawnMessages(most, last int) *drawnMessages {
	return &drawnMessages{most: most, few: 1 << 10, last: make([]drawnMessage, 0, last), count: make(map[int]int)}
}

func (a *drawnMessages) add(m drawnMessage) {
	if second := m.sent / 1_000_000; second != a.clock {
		a.clock = second
		clear(a.count)
	}
	m.number, m.serial = a.count[m.kind], a.all
	a.count[m.kind]++
	if len(a.last) < cap(a.last) {
		a.last = append(a.last, m)
	} else if len(a.last) > 0 {
		a.last[a.all%len(a.last)] = m
	}
	a.all++
	for m.number < a.few {
		if len(a.kept) < a.most {
			a.kept = append(a.kept, m)
			return
		}
		if a.few == 1 { // More seconds and kinds than room: the early ones go.
			a.kept = append(a.kept[:0], a.kept[a.most/2:]...)
			continue
		}
		a.few /= 2
		a.kept = slices.DeleteFunc(a.kept, func(k drawnMessage) bool { return k.number >= a.few })
	}
}

// list returns what is kept, in the order of sending, five numbers each: when it was sent, when
// it arrives, from, to, kind.
func (a *drawnMessages) list() [][5]int64 {
	all := slices.Concat(a.kept, a.last)
	slices.SortFunc(all, func(x, y drawnMessage) int { return x.serial - y.serial })
	all = slices.CompactFunc(all, func(x, y drawnMessage) bool { return x.serial == y.serial })
	list := make([][5]int64, len(all))
	for i, m := range all {
		list[i] = [5]int64{m.sent, m.arrives, int64(m.from), int64(m.to), int64(m.kind)}
	}
	return list
}
