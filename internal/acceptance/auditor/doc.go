// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package auditor reads the history of accounts of the bank in its journals: which node had an account when, and what
// it has booked. An auditor trusts nothing that the nodes say, but what the journals hold. Its functions may be
// called by several goroutines, and while accounts are at work.
package auditor
