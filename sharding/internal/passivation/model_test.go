// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

import (
	"container/heap"
	"math"
	"slices"
)

// The policies once more, to be compared with: slices that are searched, maps, and floating counts
// where the package has lists and packed words. Only the hash of the sketch is shared, which is a
// part of the rule.

// model says whether each use of a key finds it seated, and evicts by itself.
type model interface{ access(key uint32) (hit bool) }

// stack is a list of keys, the last use first.
type stack []uint32

func (s *stack) front(key uint32) { *s = slices.Insert(*s, 0, key) }
func (s *stack) pop() uint32 {
	key := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return key
}

func (s *stack) drop(key uint32) bool {
	i := slices.Index(*s, key)
	if i >= 0 {
		*s = slices.Delete(*s, i, i+1)
	}
	return i >= 0
}

// part is a model without a window, whose evictions are asked for.
type part interface {
	touch(key uint32) bool
	insert(key uint32)
	next() uint32 // The next victim, which stays.
	remove(key uint32)
	size() int
	bound(limit int)
}

type recencyModel struct {
	stack
	newest bool
}

func (m *recencyModel) touch(key uint32) bool {
	found := m.drop(key)
	if found {
		m.front(key)
	}
	return found
}
func (m *recencyModel) insert(key uint32) { m.front(key) }
func (m *recencyModel) next() uint32 {
	if m.newest {
		return m.stack[min(1, len(m.stack)-1)]
	}
	return m.stack[len(m.stack)-1]
}
func (m *recencyModel) remove(key uint32) { m.drop(key) }
func (m *recencyModel) size() int         { return len(m.stack) }
func (m *recencyModel) bound(int)         {}

type segmentedModel struct {
	probation, protected stack
	share                float64
	most                 int
}

func (m *segmentedModel) touch(key uint32) bool {
	if !m.probation.drop(key) && !m.protected.drop(key) {
		return false
	}
	m.protected.front(key)
	if len(m.protected) > m.most {
		m.probation.front(m.protected.pop())
	}
	return true
}
func (m *segmentedModel) insert(key uint32) { m.probation.front(key) }
func (m *segmentedModel) next() uint32 {
	if n := len(m.probation); n > 0 {
		return m.probation[n-1]
	}
	return m.protected[len(m.protected)-1]
}

func (m *segmentedModel) remove(key uint32) {
	if !m.probation.drop(key) {
		m.protected.drop(key)
	}
}
func (m *segmentedModel) size() int { return len(m.probation) + len(m.protected) }
func (m *segmentedModel) bound(limit int) {
	m.most = min(max(1, int(float64(limit)*m.share+0.5)), limit-1)
}

// frequencyModel has the keys in a slice, and for each how often and when it was used.
type frequencyModel struct {
	count, at map[uint32]int
	now, age  int
	newest    uint32
	aging     bool
}

func (m *frequencyModel) touch(key uint32) bool {
	if m.count[key] == 0 {
		return false
	}
	m.now++
	m.count[key]++
	m.at[key] = m.now
	return true
}

func (m *frequencyModel) insert(key uint32) {
	m.now++
	m.count[key], m.at[key], m.newest = m.age+1, m.now, key
}

func (m *frequencyModel) next() uint32 {
	best, found := uint32(0), false
	for key, count := range m.count {
		if key == m.newest && len(m.count) > 1 {
			continue
		}
		if !found || count < m.count[best] || count == m.count[best] && m.at[key] < m.at[best] {
			best, found = key, true
		}
	}
	return best
}

func (m *frequencyModel) remove(key uint32) {
	if m.aging {
		m.age = max(m.age, m.count[key])
	}
	delete(m.count, key)
}
func (m *frequencyModel) size() int { return len(m.count) }
func (m *frequencyModel) bound(int) {}

// plainModel is a part that makes room for itself.
type plainModel struct {
	part
	limit int
}

func (m *plainModel) access(key uint32) bool {
	if m.touch(key) {
		return true
	}
	m.insert(key)
	for m.size() > m.limit {
		m.remove(m.next())
	}
	return false
}

// windowModel has a window before a part, and counts keys in a table of rows.
type windowModel struct {
	window   stack
	main     part
	limit    int
	most     int
	counts   map[[2]int]int // By word and place.
	words    int
	fade     int
	hand     int
	adaptive bool
	size     float64
	least    float64
	step     float64
	rate     float64
	hits, n  int
}

func (m *windowModel) cells(key uint32) (cells [][2]int) {
	for row := range 4 {
		h := spread(key, row)
		cells = append(cells, [2]int{int(h % uint64(m.words)), int(h >> 60)})
	}
	return cells
}

func (m *windowModel) note(key uint32) {
	for _, c := range m.cells(key) {
		m.counts[c] = min(m.counts[c]+1, 15)
	}
	for m.fade += m.words; m.fade >= 10*m.limit; m.fade -= 10 * m.limit {
		for place := range 16 {
			m.counts[[2]int{m.hand, place}] /= 2
		}
		m.hand = (m.hand + 1) % m.words
	}
}

func (m *windowModel) seen(key uint32) int {
	least := 15
	for _, c := range m.cells(key) {
		least = min(least, m.counts[c])
	}
	return least
}

func (m *windowModel) divide() {
	m.most = 0
	if m.size > 0 {
		m.most = min(max(1, int(float64(m.limit)*m.size+0.5)), m.limit)
	}
	m.main.bound(max(m.limit-m.most, 1))
}

func (m *windowModel) climb(hit bool) {
	if m.n++; hit && m.n > 5*m.limit {
		m.hits++
	}
	if !m.adaptive || m.n < 10*m.limit {
		return
	}
	rate := float64(m.hits) / float64(m.n-5*m.limit)
	change := rate - m.rate
	first := m.rate < 0
	m.hits, m.n, m.rate = 0, 0, rate
	if first {
		return
	}
	enough := math.Sqrt(rate * (1 - rate) / 5 / float64(m.limit))
	if m.step < 0 {
		enough = -enough
	}
	if change < enough {
		m.step = -m.step
	}
	if change >= 0.05 || change <= -0.05 {
		if m.step < 0 {
			m.step = -0.0625
		} else {
			m.step = 0.0625
		}
	}
	m.size = min(max(m.size+m.step, m.least), 0.8)
	m.step *= 0.98
	m.divide()
}

func (m *windowModel) access(key uint32) (hit bool) {
	m.note(key)
	hit = slices.Contains(m.window, key)
	if !hit {
		// The share of the window changes before the key is moved, so the part is asked afterwards.
		if p, ok := m.main.(*segmentedModel); ok {
			hit = slices.Contains(p.probation, key) || slices.Contains(p.protected, key)
		} else {
			hit = m.holds(key)
		}
	}
	m.climb(hit)
	switch {
	case m.window.drop(key):
		m.window.front(key)
		return true
	case hit:
		m.main.touch(key)
		return true
	}
	m.window.front(key)
	if len(m.window)+m.main.size() <= m.limit {
		for len(m.window) > m.most {
			m.main.insert(m.window.pop())
		}
		return false
	}
	m.evict()
	return false
}

func (m *windowModel) holds(key uint32) bool {
	switch p := m.main.(type) {
	case *recencyModel:
		return slices.Contains(p.stack, key)
	case *frequencyModel:
		return p.count[key] > 0
	default:
		return false
	}
}

func (m *windowModel) evict() {
	if m.main.size() == 0 {
		m.window.pop()
		return
	}
	victim := m.main.next()
	if len(m.window) <= m.most {
		m.main.remove(victim)
		return
	}
	candidate := m.window.pop()
	if m.seen(candidate) <= m.seen(victim) {
		return
	}
	m.main.insert(candidate)
	m.main.remove(victim)
}

// newModel returns the model of a configuration.
func newModel(cfg Config) model {
	parts := func(p Policy) part {
		switch p {
		case MostRecentlyUsed:
			return &recencyModel{newest: true}
		case Segmented:
			return &segmentedModel{share: cfg.Protected}
		case LeastFrequentlyUsed:
			return &frequencyModel{count: map[uint32]int{}, at: map[uint32]int{}, aging: cfg.Aging}
		default:
			return &recencyModel{}
		}
	}
	if !cfg.Policy.Windowed() {
		p := parts(cfg.Policy)
		p.bound(cfg.Limit)
		return &plainModel{part: p, limit: cfg.Limit}
	}
	main := cfg.Main
	if cfg.Policy == WTinyLFU {
		main = Segmented
	}
	m := &windowModel{
		main: parts(main), limit: cfg.Limit, counts: map[[2]int]int{}, words: 16,
		adaptive: cfg.Policy == WTinyLFU, size: cfg.Window, least: cfg.Window, step: 0.0625, rate: -1,
	}
	for m.words < cfg.Limit {
		m.words *= 2
	}
	m.divide()
	return m
}

// optimum returns how often a key is found seated at best, by whoever knows what comes: the one whose
// next use is farthest away has to go, be it the one that has just come. L. A. Belady, "A study of
// replacement algorithms for a virtual-storage computer", 1966.
func optimum(trace []uint32, limit int) (hits int) {
	next := make([]int, len(trace))
	seen := map[uint32]int{}
	for i := len(trace) - 1; i >= 0; i-- {
		next[i] = len(trace)
		if at, again := seen[trace[i]]; again {
			next[i] = at
		}
		seen[trace[i]] = i
	}
	seated, by := map[uint32]int{}, new(farthest)
	for i, key := range trace {
		if _, hit := seated[key]; hit {
			hits++
		}
		seated[key] = next[i]
		heap.Push(by, use{next[i], key})
		for len(seated) > limit {
			// An entry of a use that has passed meanwhile is not the next one of its key any more.
			if last := heap.Pop(by).(use); seated[last.key] == last.at { // Nothing else is in it.
				delete(seated, last.key)
			}
		}
	}
	return hits
}

// use is when a key is used next.
type use struct {
	at  int
	key uint32
}

// farthest is a heap of uses, with the farthest at the top.
type farthest []use

func (f farthest) Len() int           { return len(f) }
func (f farthest) Less(a, b int) bool { return f[a].at > f[b].at }
func (f farthest) Swap(a, b int)      { f[a], f[b] = f[b], f[a] }
func (f *farthest) Push(u any)        { *f = append(*f, u.(use)) } // See optimum.
func (f *farthest) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}
