// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"strconv"
	"strings"

	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// texts is a table of texts being written. Neighbours often say the same, so the
// last answer is tried before the map.
type texts struct {
	list  []string
	at    map[string]uint32
	last  string
	place uint32
}

// add returns the place of s, which becomes an element if it is none yet.
func (t *texts) add(s string) uint32 {
	if len(t.list) > 0 && s == t.last {
		return t.place
	}
	place, ok := t.at[s]
	if !ok {
		if t.at == nil {
			t.at = make(map[string]uint32)
		}
		place = uint32(len(t.list))
		t.at[s] = place
		t.list = append(t.list, s)
	}
	t.last, t.place = s, place
	return place
}

// roleSets is a table of sets of roles being written.
type roleSets struct {
	keys texts
	list []*pluginv1.RoleSet
	last []string
}

// add returns the place of the set, which becomes an element if it is none yet.
func (t *roleSets) add(roles []string) uint32 {
	if len(t.list) > 0 && slices.Equal(roles, t.last) {
		return t.keys.place
	}
	place := t.keys.add(keyOf(roles))
	if int(place) == len(t.list) {
		t.list = append(t.list, &pluginv1.RoleSet{Role: roles})
	}
	t.last = roles
	return place
}

// keyOf returns a text that no other list has.
func keyOf(list []string) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
	}
	return b.String()
}
