// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package lanes runs the tests of the repository, and knows which there are.
//
// `make test` is what needs no other program than Go, make and git. All that is more is a lane, with a
// name, a reason and a need ([Lanes]); a long lane has parts. [Turn] says which of them a run of
// continuous integration takes.
//
// A [Step] is one call of go test, or of another command. [Runner.Run] runs steps, prints a line
// for each package as it ends, repeats alone what could not be judged since the machine stood still
// (see internal/patience), and prints at the end the slowest packages, what failed and the command that repeats
// it.
//
// The package uses the standard library alone: it is compiled before anything else is.
package lanes
