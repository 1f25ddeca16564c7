// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package singleton decides which node of a cluster runs the single instance of
// something.
//
// # The rule
//
// A node starts its instance when it is a member that is up and has the role,
// and for each older member with the role one of these holds:
//
//   - it was removed, and fenced: nothing of it can be running any more;
//   - it is leaving, and has confirmed that its instance stopped.
//
// A member that was removed before this node knew it counts as older until it is fenced,
// since its age is not known. Age is the order in which members became up, which never
// changes; so a joining member never takes the instance away from another.
//
//	           oldest but for some that          all have confirmed
//	           are leaving or not fenced         or are fenced
//	younger ─────────────────────────> becoming ────────────────> oldest
//	   ^                                                             │ leaving
//	   └──────────── ended <──────── handing-over <──────────────────┘
//	                         stopped
//
// Each start has a [Term], which is higher than the terms of all earlier starts in the
// cluster, even if two nodes disagree about which is the oldest. A party that obeys the
// instance can therefore refuse an outdated one.
//
// # Use
//
// [Core] is the rule alone, for machines that embed it. It is fed with states,
// fenced nodes, messages of other nodes and ticks, and fills [Actions]. Who is fenced
// is kept in one [component.Fences], which all cores of a component share:
//
//	case component.Changed:
//		fences.Forget(in.State)
//		core.Update(now, in.Self, in.State, &actions)
//	case component.Fenced:
//		fences.Add(in.Node)
//		core.Fenced(now, in.Node, &actions)
//
// # Guarantees
//
// Two instances run at the same time only if membership reports a node as fenced
// that is still hosting. A hand-over that takes too long is reported and repeated
// but never passed over: it ends at the latest when the leaving node is removed.
//
// # Concurrency
//
// A Core belongs to one goroutine.
package singleton
