// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package file finds contact points in a file that a script or a person keeps: one a line,
// written like those of the configured list.
//
//	# The nodes of the bank. Words after a hash sign are for people.
//	node-1.bank.example:7946
//	10.0.0.2:7946   # the one in the cellar
//	[fd00::3]:7946
//
// # Use
//
//	config := file.Default()
//	config.Path = "/etc/bank/nodes"
//	found, err := file.New(config)
//
// The file may change at any time. What was read is given again for a short interval;
// then the file is read anew. New content counts when it is the same twice, a moment
// apart, so that a list which is being written does not count before it is whole:
//
//	read --as before--> the same answer
//	  |
//	  '--new--> wait a moment --> read --as just now--> new answer
//	                  ^             |
//	                  '----changed--'
//
// The file lists the contact points of one service: whatever a query asks for, the answer
// is the whole list.
//
// # Lifecycle and concurrency
//
// A [Discovery] is safe for concurrent use. It keeps no file open and starts no
// goroutine, so that there is nothing to close.
//
// # Guarantees
//
//   - An answer is the whole content of the file at one moment, also when the file, or a
//     link on the way to it, is exchanged for another: every read opens the path anew.
//   - A file that is missing, unreadable, no regular file, larger than 4 MiB, cut off, or
//     has a bad line is an error that says so, never an empty answer and never the answer
//     of before.
//   - A file that has comments or empty lines only says that there are no contact points.
//     A file of no bytes at all is an error, since a crash leaves such a file behind.
//
// # Non-guarantees
//
// A list that is written in place counts as whole after each pause at the end of a line that
// is longer than [Config.Settle]. Write another file and rename it. A file system that hangs
// holds a lookup up beyond its context.
package file
