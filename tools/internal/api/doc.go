// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package api keeps what the public packages of the tree declare: one line of text for
// each function, type, field, method, constant and variable, one file for each module,
// under docs/api. So a change of the interface is a change of a file that a reviewer
// reads before it is merged.
//
// The files are compared as sets of lines, as the Go project does with its own standard
// library. A line that is gone may break a program: something was removed, or has another
// type. A new line cannot, since the line of an interface that others implement names all
// its methods. This is stricter than the compiler (an argument of a wider type breaks no
// caller of a function) and blind to what a function does, which the changelog has to
// say.
//
// Text is kept and not export data, which only one version of Go can read, and no
// reviewer.
//
// The table of docs/versioning.md says whether a package promises anything. Packages
// named internal, programs, and packages that are wholly generated are not listed:
// generated packages promise the contract that they were made from, which is compared
// with its last release separately.
package api
