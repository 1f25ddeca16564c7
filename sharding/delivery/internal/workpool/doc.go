// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package workpool is the machine of a pool of workers: it holds jobs until a worker has done them, and gives each
// worker as many as that has asked for. It decides which worker gets what and when, and what becomes of the jobs
// of a worker that does not answer: another one gets them. It sends nothing and reads no clock.
//
// Invariants, between calls:
//
//	P1  each job that is held is either queued, or in the frame under way to one worker;
//	P2  a worker has one frame under way at most, and never more jobs than it has asked for;
//	P3  the numbers of the jobs that go to a worker rise, so that its inbox takes none for one that it has seen.
package workpool
