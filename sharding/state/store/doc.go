// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package store has the interface of a storage for the state of entities, and what a storage must promise so that an
// owner that was replaced cannot write.
//
// # Records
//
// A record belongs to one entity. It is made by its first claim, and has a head, which decides about claims and writes,
// and the content, which is the state of the entity:
//
//	head      owner (epoch, instance)    version
//	content   snapshot at some version   the events after it, up to the version
//
// # The two operations
//
// [Store.Load] claims records and reads them; [Store.Save] changes them. Each looks at the head and
// changes the record in one step, so that nothing comes in between:
//
//	Load   if owner <= claim's:                           owner := claim's
//	Save   if owner = write's and version = its expected: content and version := write's
//	both   answer with the head as it is then
//
// The caller learns from the head whether its write was made, by this attempt or an earlier one: if and only if the
// head has its owner and the version of the write. So a store need not know of attempts, and a call whose answer was
// lost is repeated.
//
// # Guarantees
//
// Package statetest checks them for every store.
//
//   - Claims and writes of a record take effect one after the other, each whole or not at all.
//   - A change that was answered is kept, also for the next process, unless the store says that it is in memory.
//   - An operation whose context has ended may still take effect, once, at any time.
//
// # Concurrency
//
// A Store is safe for concurrent use. The package has no state.
package store
