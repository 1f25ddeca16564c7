// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package protocol

// searches are the searches of a run of the tests with the race detector, which makes each
// several times slower, and can find nothing in functions without goroutines.
func searches() []search { return smallSearches()[:3] }
