// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package actors measures libraries of actors, all in one way: a [Library] says how its actors are started, told and
// asked, and the methods of Library are the experiments. [Quiet] measures clusters that nobody uses.
//
// A message is a new [wrapperspb.BytesValue] each time ([Value]), which begins with its sender and its number, and the
// actor that receives it checks it ([Take]). A library whose mailboxes have no bound would keep what its senders are
// ahead of its receivers in memory. There the senders wait for the receivers instead, see [Library.Unbounded].
package actors
