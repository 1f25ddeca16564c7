// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package kinds is the table of the kinds of plugins that hosts run. A new kind is a
// package beside those here, which describes it, and a row of [All].
//
// # Lifecycle and concurrency
//
// The table never changes.
package kinds

import (
	"reflect"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/contract"
	"github.com/quorate/quorate/plugins/internal/kinds/allocationkind"
	"github.com/quorate/quorate/plugins/internal/kinds/downingkind"
)

// All returns the table.
func All() []contract.Kind {
	return []contract.Kind{
		downingkind.Contract().Kind(),
		allocationkind.Contract().Kind(),
	}
}

// Named returns the kind with a name, and false if hosts run none of that name.
func Named(name plugins.Kind) (contract.Kind, bool) {
	return find(func(k contract.Kind) bool { return k.Name() == name })
}

// Of returns the kind whose strategies are a T, and false if there is none.
func Of[T any]() (contract.Kind, bool) {
	return find(func(k contract.Kind) bool { return k.Strategy == reflect.TypeFor[T]() })
}

// Names returns the names of the kinds, in the order of the table.
func Names() []plugins.Kind {
	var names []plugins.Kind
	for _, k := range All() {
		names = append(names, k.Name())
	}
	return names
}

func find(matches func(contract.Kind) bool) (contract.Kind, bool) {
	for _, k := range All() {
		if matches(k) {
			return k, true
		}
	}
	return contract.Kind{}, false
}
