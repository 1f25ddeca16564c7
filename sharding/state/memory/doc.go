// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package memory keeps the state of entities in the memory of this process: for tests, and for
// clusters whose nodes live in one process. What it holds ends with the process.
//
//	keeper, err := state.NewKeeper(memory.New(), state.Default())
//
// A store is safe for concurrent use.
package memory
