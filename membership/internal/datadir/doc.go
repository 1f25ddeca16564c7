// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package datadir keeps, in a directory of one node, the little that has to survive its
// process: its [protocol.Record], by which at most one cluster goes on of an old one and
// those founded later.
//
//	data-dir/
//	  lock    held by the process that uses the directory, empty
//	  record  lines of a keyword and values, the last one a check sum
//
// [Open] takes the directory, [Dir.Keep] replaces what it holds, [Dir.Close] gives
// it back.
//
// A write goes to a temporary file, which is synced and renamed, and then the directory
// is synced: after a crash at any moment the old or the new content is there, whole. When
// a write fails the record is removed: a node without a record speaks for no voter, while
// an outdated record would speak for former voters. Never restore a directory from a
// backup, and never copy one: delete it, and the node comes back without a vote. Content
// that is damaged, of another cluster, or of a newer format is an error and is never
// overwritten: a person has to look at it.
//
// A Dir is safe for concurrent use. The lock ends with the process, however that
// ends.
package datadir
