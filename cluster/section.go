// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"reflect"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/machine/optional"
	"github.com/quorate/quorate/membership"
)

// WithSection gives the program a section of its own in the files of the node. The struct
// holds the defaults, and is described by tags like those of package config. The section
// is as strict as all others: an unknown key is refused with the nearest known one,
// environment variables override it, its Validate is called if it has one, and its faults
// are reported with file, line and key together with those of all sections. The name of a
// section that the node has, or that was given before, is an error of [Start].
//
// Start fills the struct before any part of the node starts, and not at all if the
// configuration has a fault. After that the struct belongs to the program: a reload hands
// the new section to prepare, as a part of the reload that is taken over whole or not at
// all, see [Prepare]. It is called when something in the section has changed, and
// everything that has changed may change: it has the tag reload:"yes". Without prepare
// nothing in the section may change while the node runs.
//
// A struct with a method Compared has members compare settings, see [Comparer]. Package
// manual prints the reference of a section.
func WithSection[T any](name string, into *T, prepare ...func(ctx context.Context, from, to T) (Prepared, error)) Option {
	s := &section[T]{name: name, into: into, prepare: prepare}
	return func(o *options) { o.sections = append(o.sections, s) }
}

// Comparer is implemented by the struct of a program's section, or by a pointer to it, if
// it has settings that all nodes should have alike.
type Comparer interface {
	// Compared returns the settings, with keys relative to the section. Start calls it
	// when the section has been checked.
	Compared() []membership.Setting
}

// ownSection is a section of the program, of any type. Values are pointers to structs of
// that type.
type ownSection interface {
	// target returns a new value that holds the defaults, under the name of the section.
	target() (config.Section, error)
	// fill hands the value to the program.
	fill(value any)
	// part returns the section as a part of a node, whose value is the one at an index.
	part(index int) part
	// changes lists the keys in which two values differ.
	changes(from, to any) ([]config.Change, error)
	// values lists the settings of a value that was filled from a file.
	values(file *config.File, value any) ([]config.Value, error)
}

// section is a section of the program with a struct of one type.
type section[T any] struct {
	name     string
	into     *T
	defaults *T // Content of into at the start; nil until then.
	prepare  []func(ctx context.Context, from, to T) (Prepared, error)
}

func (s *section[T]) target() (config.Section, error) {
	if s.into == nil || reflect.TypeFor[T]().Kind() != reflect.Struct {
		return config.Section{}, fmt.Errorf("cluster: the section %q needs a pointer to a struct with its defaults, not %T", s.name, s.into)
	}
	if err := optional.Check(s.into, nil, reflect.TypeFor[Comparer]()); err != nil {
		return config.Section{}, fmt.Errorf("cluster: the section %q: %w", s.name, err)
	}
	if s.defaults == nil {
		d := *s.into
		s.defaults = &d
	}
	value := *s.defaults
	return config.Section{Name: s.name, Into: &value}, nil
}

func (s *section[T]) fill(value any) { *s.into = *s.at(value) }

func (*section[T]) at(value any) *T { return value.(*T) } // Values are made by target.

func (s *section[T]) part(index int) part {
	p := part{name: s.name, settings: func(c configuration) []membership.Setting { return s.compared(c.own[index]) }}
	if len(s.prepare) > 0 {
		p.prepare = func(ctx context.Context, _ *Node, from, to configuration) (Prepared, error) {
			return s.prepareAll(ctx, from.own[index], to.own[index])
		}
	}
	return p
}

// compared returns the settings of a value that members compare, under their whole keys.
func (s *section[T]) compared(value any) []membership.Setting {
	c, ok := value.(Comparer) // A pointer has the methods of its struct too.
	if !ok {
		return nil
	}
	settings := c.Compared()
	for i := range settings {
		settings[i].Key = s.name + "." + settings[i].Key
	}
	return settings
}

// prepareAll calls all prepare functions of the program, if the section has changed.
func (s *section[T]) prepareAll(ctx context.Context, from, to any) (Prepared, error) {
	if changes, err := s.changes(from, to); err != nil || len(changes) == 0 {
		return Prepared{}, err
	}
	var all []Prepared
	for _, prepare := range s.prepare {
		p, err := prepare(ctx, *s.at(from), *s.at(to))
		if err != nil {
			discard(all)
			return Prepared{}, err
		}
		all = append(all, p)
	}
	return Prepared{Commit: func() { commit(all) }, Discard: func() { discard(all) }}, nil
}

func (s *section[T]) changes(from, to any) ([]config.Change, error) {
	changes, err := config.Changes(from, to)
	for i := range changes {
		changes[i].Key = s.name + "." + changes[i].Key
		changes[i].Reload = changes[i].Reload && len(s.prepare) > 0
	}
	return changes, err
}

func (s *section[T]) values(file *config.File, value any) ([]config.Value, error) {
	all, err := file.Values(s.name, value)
	for i := range all {
		all[i].Reload = all[i].Reload && len(s.prepare) > 0
	}
	return all, err
}
