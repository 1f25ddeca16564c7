// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package bank is a bank whose accounts are sharded entities. It shows what a program
// that keeps money, carts or game state in a cluster looks like, and is what the demo
// runs while it kills nodes and counts every cent.
//
// An [Account] appends each change to a journal in a directory that all nodes
// share, and is rebuilt from it wherever it starts. The directory stands for
// the user's database. The epoch of the account's home is the fencing token of
// that database: an owner that was replaced without noticing cannot get a
// write acknowledged, see package journal.
//
// A transfer has two legs, [Accounts.Transfer] asks first the paying account,
// then the receiving one. Each account books a transfer id once, so that a
// client which got no answer simply asks again.
package bank
