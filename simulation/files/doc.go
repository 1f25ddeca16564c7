// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package files is a directory in memory with the faults of a disk, for tests and simulated worlds of what keeps its
// own files: it loses what was not synced when the machine crashes, of each write any sectors, of the changes of names
// any but the first; it is full or fails from an operation on, and can be put back to an earlier copy.
//
//	d := files.New(source)
//	f, err := d.Create("log")
//	...
//	d.Crash() // What the next start finds.
//
// # Life cycle and concurrency
//
// A directory lives as long as somebody has it; [Directory.Crash] and [Directory.Die] end what was open: files that
// were opened before are not used any more. Its methods may be called from any goroutine, its fields changed only while
// none is called.
//
// # Guarantees
//
// What a file held when it was synced, and the names when the directory was, is there after a crash, but where
// something was written over it later. Given a source, what a crash leaves is a function of its seed.
//
// # Limits
//
// There are no directories within it, no permissions, and no rot: change the data of a file for that. A write that
// fails has written its first half.
package files
