// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package bank is a bank whose accounts are sharded entities. It shows what a program
// that keeps money, carts or game state in a cluster looks like, and is what the demo
// runs while it kills nodes and counts every cent.
//
// An account declares its state ([Account]) and what happens to it ([Booking]);
// package sharding/state saves each booking before its reply leaves, and makes the
// account of them wherever it starts. The store is a directory that all nodes
// share, package journal, and stands for the user's database: an owner that was
// replaced without noticing cannot write there.
//
// A transfer has two legs, [Accounts.Transfer] asks first the paying account,
// then the receiving one. Each account books a transfer id once, so that a
// client which got no answer simply asks again.
package bank
