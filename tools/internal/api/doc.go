// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package api keeps what the public packages of the tree declare: one line of text
// for each function, type, field, method, constant and variable, one file for each
// module, under docs/api. A change of the interface is thereby a change of a file
// that somebody reads before it is merged.
//
// The files are compared as sets of lines, as the Go project does with its own
// standard library. A line that is gone may break a program: something was removed,
// or has another type. A line that is new may not, since the line of an interface
// that others implement names all its methods. That is stricter than the compiler (an
// argument of a wider type breaks nobody who calls a function) and blind to what a
// function does, which the changelog has to say.
//
// Text and not export data is kept, because the latter can be read by one version
// of Go alone, and by no reviewer.
//
// Whether a package promises anything is said by the table of docs/versioning.md.
// Packages named internal, programs, and packages that are wholly generated are not
// listed: what the generated ones promise is the contract that they were made from,
// which is compared with its last release by itself.
package api
