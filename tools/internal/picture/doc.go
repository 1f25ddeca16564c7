// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package picture draws a run of a simulated cluster as a page: one file in which time goes from
// left to right and each node has a lane, to be looked at and played.
//
// [New] makes an observer, whose method Begin is given to the options of the run. The observer looks
// at the world from outside and changes nothing in it, so that the run stays that of its seed.
// [Observer.Finish] returns what was seen, [Run.Write] writes the page. Equal runs give equal bytes.
//
// An observer keeps what its bounds allow, however long the run and large the cluster, and counts
// what it leaves out; the page says so. Lanes are for the addresses that were used first. Changes
// of state are kept from the last ones back, so that the end, where a violation is, is complete; the
// state at the first kept moment is known. Of messages each kind has the first few of every second,
// and the last of all kinds; how many there were in each second is always complete.
//
// An observer belongs to the goroutine of its world.
package picture
