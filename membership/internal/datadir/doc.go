// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package datadir keeps, in a directory of one node, the little that has to
// outlive its process: the birth of the last cluster that the node was a member
// of. With it, the epochs of a cluster that starts anew after all its nodes have
// ended are above those of the one before, even if a wall clock was set back.
//
//	data-dir/
//	  lock    held by the process that uses the directory, empty
//	  birth   one line: "quorate-birth 1 <born> <cluster> <check>"
//
// [Open] takes the directory, [Dir.Remember] replaces what it holds, [Dir.Close]
// gives it back.
//
// A write goes to a temporary file, which is synced, renamed, and the directory
// synced: after a crash at any moment the old or the new content is there, whole.
// Content that is damaged, of another cluster, or of a newer format is an error
// and is never written over: somebody has to look at it. A directory that cannot
// be written is no error of Open's beyond [ErrUnwritable]: what it holds still
// counts.
//
// A Dir is safe for concurrent use. The lock ends with the process, however that
// ends.
package datadir
