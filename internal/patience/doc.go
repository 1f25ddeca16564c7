// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package patience gives tests waits in real time that a busy machine does not turn red.
//
// A test that waits for a socket, a process or a timer of real time needs a limit, or it could
// hang for ever. If the machine has other work, the limit ends before the code under test had
// its time. So the waits of this package stretch by the time that the process lost:
//
//	answer := patience.Receive(t, answers, "the answer of the peer")
//	patience.Eventually(t, func() bool { return node.Ready() }, "the node is ready")
//	balance, err := accounts.Ask(patience.Context(t), "acct-42", deposit)
//
// # What is lost
//
// While a test waits, one goroutine of the process wakes up every ten milliseconds. A wake-up that
// is late means that the whole process stood still: that time is lost. In addition, where the
// system tells how many threads want to run (Linux), the share of time that a thread does not get
// is lost: with ten runnable threads on two processors, four fifths.
//
// # Three results
//
// A test that waited by this package, fails, and lost much of its time is not judged: the limits
// of the program under test (heartbeats, time-outs, leases) may have ended only because the
// program did not run. The test fails, and says so in its last line. What runs the tests of the repository
// repeats such a test alone, and counts it as neither passed nor failed when it could not be
// judged three times. [Watch] makes that so for a test that has no wait of its own.
//
// # In virtual time
//
// In a bubble of testing/synctest all of this is plain virtual time: nothing is lost there. So a
// function that both kinds of tests use can wait by this package.
//
// The functions may be called from any goroutine where [testing.TB] allows it: those that end
// the test, from the goroutine of the test only.
package patience
