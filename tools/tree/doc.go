// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package tree checks the repository as a whole, for faults that neither the compiler nor
// a linter of single packages can see.
//
// [Load] reads go.work, every go.mod and every Go file; each of [Checks] walks over that
// and returns faults. The package's own tests run all checks on the tree that they stand
// in, and prove on a small tree with one planted fault that each check finds its fault.
// Faults that a linter finds are left to the linter: with the build tag lint the tests
// plant the faults that .golangci.yml must find, and run the linters on them.
//
// A package is a core, and so without goroutines, clock, locks, global randomness
// and map order, when a part of its path is "protocol" or when one of its files
// has the line
//
//	//quorate:core
//
// A loop over a map in a core needs a comment, on its line or the one above, that
// says why the order does not matter:
//
//	//quorate:unordered The sum is the same in any order.
//
// A test waits in real time by internal/patience. A limit that is none of the test has, on its line or the
// one above, the reason:
//
//	//quorate:realtime So long the server waits, as is documented.
//
// Nothing here is changed after Load, and nothing is written.
package tree
