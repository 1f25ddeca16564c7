// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package component is what a component of a node hears of its node, and what it says
// to it. A component is a machine that shares the driver of a node ([machine.Component]):
// sharding is one, and so may be yours. It imports this package, and not the node.
//
//	     from the node                      to the node
//	Changed   members, leader        Services  "I serve this number here"
//	Standing  until when to host     Busy      "wait, I hand my work over"
//	Fenced    who hosts no more      Drained   "I host nothing any more"
//	Stopping  the end
//
// # Life cycle
//
// A component that is attached hears Changed and Standing as they are, and Fenced once
// for each member that was removed before. From then on it hears each change, in the
// order in which the node made it. Stopping is the last event. When the node leaves
// in order, a component that has said Busy is waited for until it says Drained, for as
// long as the node's settings allow.
//
// Who was fenced a component keeps in one [Fences], which its parts share.
//
// # Guarantees
//
// Values are immutable and may be kept. What is said here is kept by later versions:
// fields are added, never taken away or given another meaning.
package component
