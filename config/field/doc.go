// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package field holds the errors by which a Validate method says which field of a
// configuration is wrong.
//
// A fault is an [Error]: the key of the field as in a file, and the reason. Faults are
// collected in a [Faults], so that all of them are reported together, and [Within] puts
// the faults of a section below the key of the section:
//
//	func (c Config) Validate() error {
//		var faults field.Faults
//		faults.Refuse(c.Port < 1, "port", "%d is below 1", c.Port)
//		faults.Add(field.Within("limits", c.Limits.Validate()))
//		return faults.Err()
//	}
//
// A caller gets the *Error by [errors.As], or takes the fault apart with [Parts] and [Of].
// These two also read the faults of modules that do not import this package:
// any error with a method Field() string points at a field.
//
// The package has no state; a Faults belongs to one goroutine. It uses the standard
// library alone, so that every module can import it.
//
// The module keeps its API within a major version. The words of a reason may change.
package field
