// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package field_test

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/config/field"
)

type limits struct{ Requests, Connections int }

func (l limits) Validate() error {
	var faults field.Faults
	faults.Refuse(l.Requests < 1, "requests", "%d is below 1", l.Requests)
	faults.Refuse(l.Connections < 1, "connections", "%d is below 1", l.Connections)
	return faults.Err()
}

func Example() {
	err := field.Within("limits", limits{Connections: 8}.Validate())
	fmt.Println(err)

	if fault, ok := errors.AsType[*field.Error](err); ok {
		fmt.Printf("at %s because %s\n", fault.Key, fault.Reason)
	}
	// Output:
	// limits.requests: 0 is below 1
	// at limits.requests because 0 is below 1
}
