// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"strconv"
	"strings"

	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Texts is a table of texts that is being written. Neighbours often have the same text,
// so the last answer is tried before the map.
type Texts struct {
	List  []string
	at    map[string]uint32
	last  string
	place uint32
}

// Has reports whether s is an element.
func (t *Texts) Has(s string) bool {
	_, ok := t.at[s]
	return ok
}

// Last returns the element that was added last, and false if there is none.
func (t *Texts) Last() (string, bool) { return t.last, len(t.List) > 0 }

// Add returns the index of s, which becomes an element if it is new.
func (t *Texts) Add(s string) uint32 {
	if len(t.List) > 0 && s == t.last {
		return t.place
	}
	place, ok := t.at[s]
	if !ok {
		if t.at == nil {
			t.at = make(map[string]uint32)
		}
		place = uint32(len(t.List))
		t.at[s] = place
		t.List = append(t.List, s)
	}
	t.last, t.place = s, place
	return place
}

// RoleSets is a table of sets of roles that is being written.
type RoleSets struct {
	keys Texts
	List []*pluginv1.RoleSet
	last []string
}

// Add returns the index of the set, which becomes an element if it is new.
func (t *RoleSets) Add(roles []string) uint32 {
	if len(t.List) > 0 && slices.Equal(roles, t.last) {
		return t.keys.place
	}
	place := t.keys.Add(keyOf(roles))
	if int(place) == len(t.List) {
		t.List = append(t.List, &pluginv1.RoleSet{Role: roles})
	}
	t.last = roles
	return place
}

// keyOf returns a text that is different for each list.
func keyOf(list []string) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
	}
	return b.String()
}

// JoinTables appends the second table to the first and shifts the indices into it. Two
// tables are kept because each caches its last element, which would not work with one
// table for two columns.
func JoinTables(a, b *Texts, places []uint32) []string {
	for i := range places {
		places[i] += uint32(len(a.List))
	}
	return append(a.List, b.List...)
}
