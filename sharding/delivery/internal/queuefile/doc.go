// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package queuefile is the file of a queue of deliveries: its form, what is synced when, and what of a file is left
// after a crash. Records are told from what messages hold by a salt, which the caller draws. The package does its input
// and output by [Files], so that a world with a simulated disk runs it; package delivery/filequeue opens it in a
// directory of the file system.
package queuefile
