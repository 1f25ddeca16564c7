// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package akka translates the settings of a node of Akka or Pekko into those of a node of Quorate.
//
// [Rules] says which setting becomes which, and [ObsoleteKeys] which have no meaning here and why: the command quorate
// config from-akka and the tables of docs/choosing.md are both made from them. [Translate] takes the settings of a
// file and returns a [Translation]: what was translated, what is not needed, and what nobody knows. It returns no
// part of it when a value cannot be what its key needs.
package akka
