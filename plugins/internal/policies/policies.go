// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package policies is the table of the policies that hosts run. A new policy is a package
// beside those here, which describes it, and a row of [All].
//
// # Lifecycle and concurrency
//
// The table never changes.
package policies

import (
	"reflect"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/contract"
	"github.com/quorate/quorate/plugins/internal/policies/allocationpolicy"
	"github.com/quorate/quorate/plugins/internal/policies/discoverypolicy"
	"github.com/quorate/quorate/plugins/internal/policies/downingpolicy"
	"github.com/quorate/quorate/plugins/internal/policies/failuredetectorpolicy"
	"github.com/quorate/quorate/plugins/internal/policies/joindeciderpolicy"
)

// All returns the table.
func All() []contract.Policy {
	return []contract.Policy{
		downingpolicy.Contract().Policy(),
		allocationpolicy.Contract().Policy(),
		failuredetectorpolicy.Contract().Policy(),
		joindeciderpolicy.Contract().Policy(),
		discoverypolicy.Contract().Policy(),
	}
}

// Named returns the policy with a name, and false if hosts run none of that name.
func Named(name plugins.Policy) (contract.Policy, bool) {
	return find(func(k contract.Policy) bool { return k.Name() == name })
}

// Of returns the policy whose strategies are a T, and false if there is none.
func Of[T any]() (contract.Policy, bool) {
	return find(func(k contract.Policy) bool { return k.Strategy == reflect.TypeFor[T]() })
}

// Names returns the names of the policies, in the order of the table.
func Names() []plugins.Policy {
	var names []plugins.Policy
	for _, k := range All() {
		names = append(names, k.Name())
	}
	return names
}

func find(matches func(contract.Policy) bool) (contract.Policy, bool) {
	for _, k := range All() {
		if matches(k) {
			return k, true
		}
	}
	return contract.Policy{}, false
}
