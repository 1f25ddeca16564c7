// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package top shows a running cluster in a terminal, as one of its nodes sees it, and goes on
// showing it: members, standing, shards, moves, rates and decisions.
//
// A [Source] asks the node; [Gather] makes a [Snapshot] of its answers, in which what the node does
// not answer is missing and said to be. [Print] writes one snapshot as text. [Model] is the program for
// a terminal (bubbletea): it polls, keeps a bounded history for rates and moves, and renders lines of any
// width from 20 columns on. A node that does not answer is shown with what it said last, and found again.
//
// A model is owned by the goroutine of its program. A poll runs beside it, one at a time, and ends within
// the time-out of the source.
package top
