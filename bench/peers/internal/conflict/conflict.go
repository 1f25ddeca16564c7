// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package conflict lets one program have libraries whose protocol buffer messages have the same names: hollywood and
// protoactor-go both have an actor.PID, and the registry of protocol buffers ends a program with two of them. Neither
// looks its own messages up there: they are found by their Go types. So the second of a name can be left out.
//
// Who imports such a library imports this package too. It needs os alone, so that it is initialized as soon as os is,
// while the packages of protocol buffers come later: of those that are ready, the first by its path is initialized.
package conflict

import "os"

// variable is where the registry looks, at each conflict, what to do about it.
const variable = "GOLANG_PROTOBUF_REGISTRATION_CONFLICT"

func init() { //nolint:gochecknoinits // It has to come before other packages.
	_ = os.Setenv(variable, "ignore") // If it fails, the program ends and says why.
}
