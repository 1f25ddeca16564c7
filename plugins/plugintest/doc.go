// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package plugintest tells the author of a plugin whether the binary keeps the
// contract, in whatever language it is written.
//
//	func TestThePlugin(t *testing.T) {
//		plugintest.Test(t, plugins.Config{
//			Policy: plugins.Downing, Path: plugintest.Build(t, "./cmd/mine"), Settings: map[string]any{"url": url},
//		})
//	}
//
// The kit runs the binary as a node would: pinned by its checksum, with its own
// environment, checked at each start. It runs the suite of the policy, such as
// downingtest.TestProvider, and besides:
//
//	Describe     it says what it is before it has settings, and its schema takes those of the test
//	Settings     an unknown setting is refused, with its key
//	Restart      killed, it is started again, and decides as before if it is pure
//	Interrupt    an interrupt, which terminals send to all children, does not end it
//	Termination  SIGTERM ends it within 5 s
//	Stop         closing it, as its host does, ends it within 2.5 s
//	ByHand       started by hand it ends, says something and does not succeed
//	Concurrency  asked by several at once, it answers each as if it were alone
//	BadRequests  it answers or refuses what no host sends, such as 64 MiB, and goes on
//	GivenUp      calls that are cancelled, or too late, return at once and do it no harm
//	Hang         stopped, it is given up in time, replaced, and decides again
//	Memory       asked often, its process does not grow (on Linux)
//
// # Lifecycle and concurrency
//
// Each part starts processes of its own and leaves none behind. The parts do not run
// in parallel: some of them measure time.
//
// # Limits
//
// That a plugin ends when its host is killed cannot be seen from inside the host: on
// Linux the kernel does that, elsewhere package sdk, and a plugin without package sdk
// should watch its parent (see [plugins.HostPID]).
package plugintest
