// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package storetest checks that an implementation keeps the contract of [store.Store].
//
// Call [TestStore] from a test of the implementation, with a function that makes an empty
// disk and returns how stores are opened on it:
//
//	func TestMyStoreKeepsTheContract(t *testing.T) {
//		storetest.TestStore(t, func(tb testing.TB) storetest.Open {
//			dir := tb.TempDir()
//			return func(cluster string) (store.Store, error) { return mine.Open(dir, cluster) }
//		})
//	}
//
// The suite closes every store that it opens. What a disk does wrong (no room, torn writes,
// flipped bytes) is for the tests of the implementation: the suite knows no files.
package storetest
