// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"maps"
	"slices"
	"strings"
)

// table is the content of logs in memory: what was applied since the newest run. Its values are parts of the payloads
// that were applied.
type table map[string]*tableGroup

// tableGroup is one group of a table.
type tableGroup struct {
	wiped   bool   // What older sources have of the group is forgotten, but for the meta.
	meta    []byte // Nil if it is that of an older source.
	entries map[string]entry
}

// apply applies the batches of a payload, which must stay as it is from now on. The keys
// are copied. Of a payload that is no sequence of batches, the changes before the fault are applied.
func (t table) apply(payload []byte) error {
	for len(payload) > 0 {
		h, rest, err := cutBatch(payload)
		if err != nil {
			return err
		}
		g := t[h.group]
		if g == nil {
			g = &tableGroup{entries: map[string]entry{}}
			t[h.group] = g
		}
		if h.wipe {
			g.wiped = true
			g.entries = map[string]entry{}
		}
		if h.meta != nil {
			g.meta = h.meta
		}
		for range h.changes {
			key, e, after, err := cutChange(rest)
			if err != nil {
				return err
			}
			g.entries[string(key)] = e
			rest = after
		}
		payload = rest
	}
	return nil
}

// names returns the groups of the table.
func (t table) names() []string { return slices.Collect(maps.Keys(t)) }

// open begins to read a group. The table must not change meanwhile.
func (t table) open(group string, _ *losses) (section, bool, error) {
	g, ok := t[group]
	if !ok {
		return section{}, false, nil
	}
	return section{wiped: g.wiped, meta: g.meta, stream: &tableStream{items: g.items()}}, true, nil
}

// items returns the keys of the group with their entries, in any order.
func (g *tableGroup) items() []item {
	items := make([]item, 0, len(g.entries))
	for key, e := range g.entries {
		items = append(items, item{key, e})
	}
	return items
}

// item is a key with its entry.
type item struct {
	key string
	entry
}

// tableStream is the stream of a group of a table. It sorts the keys when it is first read, and not when it is made:
// writers wait while a group of the active table is copied.
type tableStream struct {
	items  []item
	sorted bool
}

func (i *tableStream) next() (item, bool, error) {
	if !i.sorted {
		slices.SortFunc(i.items, func(a, b item) int { return strings.Compare(a.key, b.key) })
		i.sorted = true
	}
	if len(i.items) == 0 {
		return item{}, false, nil
	}
	first := i.items[0]
	i.items = i.items[1:]
	return first, true, nil
}
