// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package journal keeps states in a directory that all processes of one host share. It stands for the
// database of a real program, and shows how small a [store.Store] can be.
//
// A record is one file, to which each claim and each write adds a line, with all that it asks for:
//
//	{"at":1,"node":"a","claim":{…,"Owner":{"Epoch":"…1","Instance":1}}}
//	{"at":2,"node":"a","write":{…,"Owner":{"Epoch":"…1","Instance":1},"Expected":0,"Version":1,"Events":[…]}}
//	{"at":3,"node":"b","claim":{…,"Owner":{"Epoch":"…2","Instance":1}}}
//	{"at":2,"node":"a","write":{…,"Owner":{"Epoch":"…1","Instance":1},"Expected":1,"Version":2,"Events":[…]}}
//
// Whoever reads the lines in their order, and does what each asks for if it may, has the record. The last
// line above does nothing, since b has claimed the record before. So the order of the lines decides, and
// the file system gives it: a line is appended by one write. Nobody takes a lock, which a process that was
// frozen would keep.
//
// # Limits
//
// The page cache outlives a killed process but not a power cut: lines are not synced to the disk. Files
// only grow, and are read as a whole when an entity starts.
//
// # Concurrency
//
// A [Store] is safe for concurrent use, by any number of processes.
package journal
