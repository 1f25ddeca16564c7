// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package memory is a store of leases within one process, for tests: what downing decides
// with a lease, without a server.
//
//	leases := memory.New()
//	keeper, err := lease.NewKeeper(leases, lease.Default(), "bank", "a")
//
// The time is that of package time, so that it is virtual in testing/synctest. All methods
// are safe for concurrent use. A store starts no goroutine and needs no Close.
package memory
