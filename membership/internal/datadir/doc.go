// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package datadir keeps, in a directory of one node, the little that has to
// outlive its process: its [protocol.Record], by which of an old cluster and those
// that are founded later one at most goes on.
//
//	data-dir/
//	  lock    held by the process that uses the directory, empty
//	  record  lines of a keyword and values, the last one a check sum
//
// [Open] takes the directory, [Dir.Keep] replaces what it holds, [Dir.Close] gives
// it back.
//
// A write goes to a temporary file, which is synced, renamed, and the directory
// synced: after a crash at any moment the old or the new content is there, whole.
// When that fails the record is removed: a node without one speaks for nobody,
// while an old one would speak for voters that are none any more. Never restore a
// directory from a backup, and never copy one: delete it, and the node comes back
// without a vote. Content that is damaged, of another cluster, or of a newer format
// is an error and is never written over: somebody has to look at it.
//
// A Dir is safe for concurrent use. The lock ends with the process, however that
// ends.
package datadir
