// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package processes has the tests of a cluster of real processes. They run the program of the bank,
// examples/bank/cmd/bank, as it is, while they kill and freeze it, cut it off, give it wrong files and
// certificates, and change its plugins; then they compare what clients were told with what the journals hold.
//
//	go test -tags process -v ./internal/acceptance/processes
package processes
