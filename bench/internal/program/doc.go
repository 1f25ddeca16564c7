// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package program is the command line of the benchmarks: what is measured is told to it
// ([Program]). See its help for how to call it.
//
// An experiment measures one or more figures. It is run as many times as the user wants,
// three at least unless told otherwise, each in a process of its own: memory that one run
// leaves behind does not help or hurt the next. The median counts.
//
// Beside the figures of the product stand its floors: the same work done by a goroutine
// and a channel, by a raw TCP connection, by a raw gRPC stream. Floors and figures take
// turns,
//
//	run 1:  floor, figure, floor, figure ...
//	run 2:  floor, figure, floor, figure ...
//
// so that a slow minute of the machine slows both. The ratio of the two is what can be
// compared between machines.
package program
