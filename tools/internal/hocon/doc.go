// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package hocon reads configuration files of Akka and Pekko, for their translation. The language is HOCON,
// "Human-Optimized Config Object Notation" (the specification is HOCON.md of lightbend/config).
//
// [Read] parses a file and what it includes, merges what is written twice, and puts values in the place of
// substitutions. It returns the scalars and lists of the file by their dotted keys ([Setting]), or the first fault,
// with file and line ([Error]), and nothing else then.
//
// Not read: files from a class path, from a URL, or outside of the directory of the first file; .properties; references
// to an item of a list. A file has at most 1 MiB, all of them together 20,000 values, 32 levels, and 8 levels of
// includes.
//
// The functions may be called by several goroutines.
package hocon
