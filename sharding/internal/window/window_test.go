// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/window"
)

// A window beside a list: the model does to a list of messages what it does to the window, whose
// chunks come from a pool that spoils what comes back. Then single cases of chunks, and what a
// window costs.

// model is a window and the messages that it must have.
type model struct {
	t    *rapid.T
	w    window.Window
	list []window.Item // The message with the number first, and those behind it.
	// first is the number of the first message of the list.
	first uint64
	made  uint64
	pool  map[int][]*window.Chunk
	lent  int // The chunks that the window has.
}

// chunk takes a chunk from the pool.
func (m *model) chunk(n int) *window.Chunk {
	m.lent++
	if free := m.pool[n]; len(free) > 0 {
		m.pool[n] = free[1:]
		return free[0]
	}
	return window.NewChunk(n)
}

// giveBack takes chunks that the window does not use any more, and writes something into them.
func (m *model) giveBack(spent ...*window.Chunk) {
	m.lent -= len(spent)
	for _, c := range spent {
		c.Reset()
		var other window.Window
		n := c.Size()
		other.Push(&window.Item{Entity: "spoiled", Payload: make([]byte, max(n/2, n-200))}, func(int) *window.Chunk { return c })
		c.Reset()
		m.pool[n] = append(m.pool[n], c)
	}
}

func (m *model) push(t *rapid.T) {
	m.made++
	i := window.Item{
		Entity: rapid.SampledFrom([]string{"a", "b", strings.Repeat("c", 500)}).Draw(t, "entity"),
		Trace:  rapid.SampledFrom([][]byte{nil, {1, 2, 3}}).Draw(t, "trace"),
		Codec:  rapid.Uint16Range(0, 2).Draw(t, "codec"),
		Flags:  rapid.Uint32Range(0, 2).Draw(t, "flags"),
	}
	if n := rapid.SampledFrom([]int{0, 1, 64, 64, 700, 5000, window.Large - 100, window.Large, 20_000}).Draw(t, "payload"); n > 0 {
		i.Payload = slices.Repeat([]byte{byte(m.made)}, n)
	}
	if rapid.Bool().Draw(t, "ask") {
		i.Correlation = m.made + rapid.SampledFrom([]uint64{0, 1 << 20, 1 << 50}).Draw(t, "of process")
		i.Deadline = machine.Instant(rapid.SampledFrom([]int64{0, 1, -5, 1 << 50}).Draw(t, "deadline"))
	}
	m.w.Push(&i, m.chunk)
	m.list = append(m.list, i)
}

// cut takes messages out, and looks at them before their chunks are used again.
func (m *model) cut(t *rapid.T) {
	seq := rapid.Uint64Range(max(m.first, 3)-3, m.first+uint64(len(m.list))+2).Draw(t, "up to")
	n := min(max(int(seq+1)-int(m.first), 0), len(m.list))
	over := m.w.Cut(seq)
	m.same(over, m.first, m.list[:n])
	m.giveBack(over.AppendSpent(nil)...)
	m.list, m.first = m.list[n:], m.first+uint64(n)
}

// remove takes one message out that is found by its correlation.
func (m *model) remove(t *rapid.T) {
	at := rapid.IntRange(0, len(m.list)).Draw(t, "which")
	if at == len(m.list) || m.list[at].Correlation == 0 {
		_, ok := m.w.Find(m.made+1<<60, m.first)
		require.False(t, ok)
		return
	}
	from := rapid.Uint64Range(0, m.first+uint64(at)+1).Draw(t, "from")
	seq, ok := m.w.Find(m.list[at].Correlation, from)
	if require.Equal(t, from <= m.first+uint64(at), ok); !ok {
		return
	}
	require.Equal(t, m.first+uint64(at), seq)
	if spent := m.w.Remove(seq); spent != nil {
		m.giveBack(spent)
	}
	m.list = slices.Delete(m.list, at, at+1)
}

// strip takes the payload of one message away.
func (m *model) strip(t *rapid.T) {
	if len(m.list) == 0 {
		return
	}
	at := rapid.IntRange(0, len(m.list)-1).Draw(t, "which")
	spent := m.w.Strip(m.first+uint64(at), 9)
	if m.list[at].Flags == 9 {
		require.Nil(t, spent)
		return
	}
	m.list[at].Payload, m.list[at].Flags = nil, 9
	m.lent++
	m.giveBack(spent)
}

// renew puts some of the messages into a new window, with other numbers.
func (m *model) renew(t *rapid.T) {
	all, kept := m.w.From(m.first), window.New(1)
	old := all
	var list []window.Item
	for i, v := 0, (window.View{}); all.Next(&v); i++ {
		if rapid.Bool().Draw(t, "kept") {
			kept.Copy(&v, m.chunk)
			list = append(list, m.list[i])
		}
	}
	m.giveBack(old.AppendSpent(nil)...)
	m.w, m.list, m.first = kept, list, 1
}

// from reads from a place on.
func (m *model) from(t *rapid.T) {
	at := rapid.IntRange(0, len(m.list)).Draw(t, "where")
	m.same(m.w.From(m.first+uint64(at)), m.first+uint64(at), m.list[at:])
}

// same compares messages with those of the list.
func (m *model) same(all window.Items, first uint64, want []window.Item) {
	require.Equal(m.t, len(want), all.Len())
	for v := (window.View{}); all.Next(&v); first++ {
		i := want[0]
		want = want[1:]
		require.Equal(m.t, i, v.Item())
		require.Equal(m.t, first, v.Seq)
		require.Equal(m.t, i.Correlation, v.Correlation())
		require.Equal(m.t, i.Entity, v.Entity())
		before, behind := v.Split()
		require.Equal(m.t, string(v.Body), string(before)+string(behind))
	}
	require.Empty(m.t, want)
}

// check compares the window with the list.
func (m *model) check(*rapid.T) {
	require.Equal(m.t, []uint64{m.first, m.first + uint64(len(m.list))}, []uint64{m.w.First(), m.w.Next()})
	m.same(m.w.From(0), m.first, m.list)
	least := 0
	for _, i := range m.list {
		least += len(i.Entity) + len(i.Trace) + len(i.Payload)
	}
	require.GreaterOrEqual(m.t, m.w.Bytes(), least)
	require.LessOrEqual(m.t, m.w.Bytes(), least+60*len(m.list))
	if len(m.list) == 0 {
		require.Zero(m.t, m.w.Bytes())
		require.Zero(m.t, m.lent, "no memory is kept")
	}
}

// A window has what a list of the messages has, whatever is done to both.
func TestAWindowIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, w: window.New(1), first: 1, pool: make(map[int][]*window.Chunk)}
		t.Repeat(map[string]func(*rapid.T){
			"push": m.push, "push more": m.push, "push still more": m.push, "cut": m.cut, "remove": m.remove,
			"strip": m.strip, "renew": m.renew, "from": m.from, "": m.check,
		})
		m.w.Cut(m.w.Next())
		require.Zero(t, m.w.Bytes())
	})
}

// The first chunk of a window is a small one, the others are large, and a message that is larger
// than that has one to itself.
func TestChunksAreBounded(t *testing.T) {
	w, sizes := window.New(1), []int(nil)
	fresh := func(n int) *window.Chunk {
		c := window.NewChunk(n)
		require.Equal(t, n, c.Size())
		sizes = append(sizes, n)
		return c
	}
	for range 1000 {
		w.Push(&window.Item{Entity: "x", Payload: make([]byte, 64)}, fresh)
	}
	require.Equal(t, window.Small, sizes[0])
	require.LessOrEqual(t, len(sizes), 2+1000*80/window.Large)
	require.Equal(t, slices.Repeat([]int{window.Large}, len(sizes)-1), sizes[1:])
	w.Push(&window.Item{Entity: "x", Payload: make([]byte, 2*window.Large)}, fresh)
	require.Greater(t, sizes[len(sizes)-1], 2*window.Large)
	w.Push(&window.Item{Entity: "x"}, fresh)
	require.Equal(t, window.Large, sizes[len(sizes)-1])
	over := w.Cut(500)
	spent := len(over.AppendSpent(nil))
	over = w.Cut(w.Next())
	require.Len(t, sizes, spent+len(over.AppendSpent(nil)), "all come back")
}

// BenchmarkWindow measures a message of 64 bytes from its push to its cut, 100 at a time.
func BenchmarkWindow(b *testing.B) {
	w, i := window.New(1), window.Item{Entity: "entity-17", Payload: make([]byte, 64)}
	var free, spent []*window.Chunk
	var sent []byte
	fresh := func(n int) *window.Chunk {
		for at, c := range free {
			if c.Size() == n {
				free = slices.Delete(free, at, at+1)
				return c
			}
		}
		return window.NewChunk(n)
	}
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		w.Push(&i, fresh)
		if n%100 > 0 {
			continue
		}
		sent = sent[:0]
		all := w.From(w.First())
		for v := (window.View{}); all.Next(&v); {
			sent = append(sent, v.Body...)
		}
		over := w.Cut(w.Next())
		spent = over.AppendSpent(spent[:0])
		for _, c := range spent {
			c.Reset()
			free = append(free, c)
		}
	}
}
