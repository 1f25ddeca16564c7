// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/quorate/quorate/config"
)

// A choice is something that a program links and that the files choose by its name: a method
// of discovery, a store of leases. Each has a section of its own in the files.

// linkedChoice is a choice that makes an M, with settings of any type.
type linkedChoice[M any] interface {
	ownSection

	called() string
	// choose tells which names the configuration chooses.
	choose(names []string)
	// make makes what was chosen, with the settings of a configuration. Relative paths in them
	// are made absolute by resolve.
	make(c configuration, resolve func(string) string) (M, error)
}

// choice is a choice whose settings have the type T. While it is not chosen its section may
// hold anything.
type choice[T, M any] struct {
	section[T]

	name   string
	keys   []string // By one of which it is chosen.
	index  int      // Of the section among those of the options.
	open   func(T) (M, error)
	chosen bool
}

// newChoice adds the section of a choice to the options. Start calls open if it is chosen.
func newChoice[T, M any](o *options, prefix, name string, defaults T, open func(T) (M, error), keys ...string) *choice[T, M] {
	c := &choice[T, M]{name: name, keys: keys, index: len(o.sections), section: section[T]{name: prefix + name, into: &defaults}, open: open}
	o.sections = append(o.sections, c)
	return c
}

func (c *choice[T, M]) called() string { return c.name }

func (c *choice[T, M]) choose(names []string) { c.chosen = slices.Contains(names, c.name) }

func (c *choice[T, M]) make(cfg configuration, resolve func(string) string) (M, error) {
	settings := *c.at(cfg.own[c.index])
	if files, ok := any(&settings).(interface{ Paths() []*string }); ok && resolve != nil {
		for _, name := range files.Paths() {
			*name = resolve(*name)
		}
	}
	return c.open(settings)
}

func (c *choice[T, M]) target() (config.Section, error) {
	if !c.chosen {
		return config.Section{Name: c.section.name, Into: new(any)}, nil
	}
	s, err := c.section.target()
	s.Chosen = c.keys
	return s, err
}

// fill does nothing: the settings are used as they are when they are needed.
func (*choice[T, M]) fill(any) {}

func (c *choice[T, M]) part(int) part { return part{name: c.section.name} }

func (c *choice[T, M]) changes(from, to any) ([]config.Change, error) {
	_, was := from.(*T)
	_, is := to.(*T)
	if !was || !is {
		return nil, nil // That another one is chosen is a change of the setting by which it is.
	}
	return c.section.changes(from, to)
}

// namesOf returns the names of choices, sorted.
func namesOf[M any](all []linkedChoice[M]) []string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.called()
	}
	slices.Sort(names)
	return names
}
