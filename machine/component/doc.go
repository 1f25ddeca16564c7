// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package component holds the events that a node publishes to its components, and those
// that they publish to the node. A component is a machine that shares the driver of a node ([machine.Component]):
// sharding is one, and yours may be another. It imports this package, and not the node.
//
//	     from the node                      to the node
//	Changed   members, leader        Services  "I serve this number here"
//	Standing  until when to host     Busy      "wait, I hand my work over"
//	Fenced    a node hosts no more   Drained   "I host nothing any more"
//	Stopping  the end
//
// # Life cycle
//
// A component that is attached is fed the present Changed and Standing, and Fenced once
// for each member that was removed before. From then on it is fed each change, in the
// order in which the node made it. Stopping is the last event. When the node leaves
// in order, it waits for each component that has published Busy until the component
// publishes Drained, for as long as the node's settings allow.
//
// Who was fenced a component keeps in one [Fences], which its parts share.
//
// # Guarantees
//
// Values are immutable and may be kept. Later versions add fields, and never remove one
// or give it another meaning.
package component
