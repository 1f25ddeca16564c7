// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package process runs the executable of a plugin and connects to it, with bounds for
// everything: time, memory, and what is left behind.
//
//	path ──copy and hash──> [Binary] ──exec──> handshake line ──dial──> [Process]
//	         0700 directory           own process group, own socket directory
//
// It uses the client of hashicorp/go-plugin for what the two sides must agree on:
// the environment, the negotiation of the version, and the certificates of one run.
// The process itself, its pipes, its connection and its end are handled here,
// because the client waits for them without an end: its Kill blocks on a stopped
// process and on grandchildren that hold a pipe, its Client leaks a connection
// when the process ends during the dial, and its pipe readers stop reading after
// 64 KiB without a newline.
//
// # The binary
//
// A file could change between its check and its launch. So the file is opened once,
// hashed while it is copied into a directory that only this user can enter, and the copy
// is run. A restart hashes the copy again and runs it, not the file that is at the path
// by then: an executable changes only by a swap. A sealed file in memory (memfd) would do
// the same, but it runs no scripts, has no name that tools show, counts as memory of the
// host, and exists on Linux alone.
//
// # Life cycle
//
// [Open] makes a [Launcher] with its directory; [Launcher.Close] removes it, when all its
// processes have ended. [Launcher.Launch] returns a process that has shaken
// hands and is connected. [Process.Exited] is closed when the process has ended,
// [Process.Kill] ends it.
//
// # Concurrency
//
// Everything may be called from any goroutine.
//
// # Guarantees
//
//   - A launch ends with its context. Kill ends within twice its grace, and a second
//     for what the kernel needs.
//   - A process leads its own process group, and the whole group is killed with it
//     and after it; on Linux also processes that have left the group, see package strays.
//   - The environment is the one that was given and what the handshake needs;
//     standard input is empty, and no other descriptor of the host is open. The working
//     directory is the host's.
//   - A process keeps its [Confinement], as far as the system can: [Confinement.Lacks].
//   - On Linux the kernel kills a process whose host has died, for whatever reason.
//     Elsewhere plugins must watch their parent, as package sdk does.
//   - Output is read for as long as the process lives and logged line by line within a
//     rate. What is left out is counted, also in the log.
//
// # Non-guarantees
//
//   - It is no sandbox: a plugin has the rights of its user. If the host is killed, the
//     processes that the plugin has forked are ended only by a guard of the plugin's
//     own, as package sdk starts it.
package process
