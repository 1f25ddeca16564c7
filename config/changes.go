// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Change is a setting whose value differs between two configurations.
type Change struct {
	// Key is the dotted path of the setting. An entry of a map that is in only one of
	// the two configurations is one change, and so is a changed list.
	Key string
	// Reload says that the setting may change while the program runs: its field, or a
	// group around it, has the tag reload:"yes".
	Reload bool
}

// Changes lists the settings that differ, sorted by key. Both arguments are structs of
// the same type, or pointers to them, as [File.Decode] fills them. Values are not
// listed: the settings of plugins may be secret.
func Changes(from, to any) ([]Change, error) {
	a, b := reflect.Indirect(reflect.ValueOf(from)), reflect.Indirect(reflect.ValueOf(to))
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() || a.Kind() != reflect.Struct {
		return nil, fmt.Errorf("config: changes from %T to %T: two structs of one type are needed", from, to)
	}
	if err := checkType(a.Type(), nil, 0); err != nil {
		return nil, fmt.Errorf("config: changes of %T: %w", from, err)
	}
	var c comparer
	c.compare(a, b, nil, false)
	slices.SortFunc(c.changes, func(a, b Change) int { return strings.Compare(a.Key, b.Key) })
	return c.changes, nil
}

type comparer struct{ changes []Change }

func (c *comparer) compare(a, b reflect.Value, path []string, reload bool) {
	switch typ := typeOf(a.Type()); {
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		c.compare(a.Elem(), b.Elem(), path, reload)
	case a.Kind() == reflect.Pointer:
		c.note(a.IsNil() == b.IsNil(), path, reload)
	case typ == TypeGroup:
		for _, f := range fieldsOf(a.Type()) {
			c.compare(a.FieldByIndex(f.index), b.FieldByIndex(f.index), extend(path, f.key), reload || f.tag.Get("reload") == "yes")
		}
	case typ == TypeMap:
		c.entries(a, b, path, reload)
	case typ == TypeList && a.Len() == 0 && b.Len() == 0: // A nil list and an empty list mean the same.
	default:
		c.note(reflect.DeepEqual(a.Interface(), b.Interface()), path, reload)
	}
}

// entries compares two maps.
func (c *comparer) entries(a, b reflect.Value, path []string, reload bool) {
	for _, name := range a.MapKeys() {
		if other := b.MapIndex(name); other.IsValid() {
			c.compare(a.MapIndex(name), other, extend(path, name.String()), reload)
		} else {
			c.note(false, extend(path, name.String()), reload)
		}
	}
	for _, name := range b.MapKeys() {
		c.note(a.MapIndex(name).IsValid(), extend(path, name.String()), reload)
	}
}

func (c *comparer) note(same bool, path []string, reload bool) {
	if !same {
		c.changes = append(c.changes, Change{Key: display(path), Reload: reload})
	}
}
