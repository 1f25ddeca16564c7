// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package transport carries messages between the nodes of a cluster. It knows
// services by number and carries opaque bytes: what is in a message is the
// business of the component that sent it.
//
// The package holds the contract: [Transport], [Lane], the notices, the errors
// and the configuration. Two implementations keep it: transport/grpc over TCP,
// with or without TLS, and transport/memory inside one process, with links
// that can be cut. Both run the suite in transport/transporttest.
//
//	 node A                                                   node B
//	┌──────────────────────┐   connection opened by A   ┌─────────────────┐
//	│ Lane(B, control) ────┼──── frames 1 2 3 ... ─────>│ Handler(A, ...) │
//	│                      │<─── acknowledged 2 ... ────┤                 │
//	│ Lane(B, message) ────┼──── a connection of its own>│                 │
//	│ Lane(B, bulk)    ────┼──── a connection of its own>│                 │
//	└──────────────────────┘                            └─────────────────┘
//
// # Lanes
//
// Each of the three lanes to a peer is a connection of its own, because the
// streams of one connection share one TCP flow and bulk would delay
// heartbeats. What A sends to B travels on connections that A opened; the
// other direction of such a connection only carries acknowledgements. A lane
// opens at first use and closes when it has been idle; heartbeats keep the
// control lane open between nodes that monitor each other.
//
// # Frames
//
// [Lane.Append] writes a message into the batch that is being filled. The
// writer sends whatever is queued as one frame as soon as the connection takes
// it, and never waits to fill a batch: alone, a message leaves at once; under
// load, batches grow by themselves.
//
// # Sessions
//
// A lane to one incarnation of a peer is a session. Its frames are numbered,
// and acknowledged, cumulatively, when their handlers have returned.
// Unacknowledged frames are kept. When the connection breaks, the lane dials
// anew, soon at first and then each second, learns what the peer has handled, and sends the rest
// again; the peer drops what it knows by its number. So, within a session,
// every message is handled once and in the order of the appends.
//
//	         Append                  handshake                     idle
//	(none) ─────────> dialling ──────────────────> up ─────────────────────> (none)
//	                   ^   │                        │
//	                   │   │ away for GiveUpAfter,  │ connection broke, or
//	                   │   │ other incarnation,     │ silent for MaxSilence
//	                   │   │ refused, blocked       │
//	                   │   v                        │
//	                   │ over: PeerDown{Err, Lost}  │
//	                   └────────────────────────────┘
//
// A session ends when the peer is refused or refuses, turns out to be another
// incarnation, or stays away for Config.GiveUpAfter. What was not acknowledged
// by then is reported as lost in [PeerDown]: lost means that the outcome is
// unknown: the peer may have handled messages whose acknowledgement did not
// arrive, and may yet handle what is still in the network, until the next
// session begins. Nothing of an earlier session is handled after that. The next
// Append begins a new session.
//
// # Back-pressure
//
// What is kept for a lane is bounded by Config.WindowBytes and one message.
// Beyond it, Append returns [ErrFull] on every lane, the control lane too:
// nothing that was accepted is dropped to make room, so that the sender is
// always the one who knows. A handler that blocks holds up its own lane of its
// own peer and no other.
//
// # Identity
//
// The first message each way is a handshake: cluster name, cluster id,
// protocol range, who speaks and who is meant. A connection has one sender for
// its whole life, the node of the handshake. With TLS, both sides show a
// certificate, and the host of the handshake must be among the certificate's
// names. Certificates that name their cluster and roles, as
// quorate://<cluster>/<role>, are held to them, and required to do so by
// Config.RequireIdentity. Of several processes that say that they are one node, as
// those of one host can, the one that listens at the address of the node is believed.
// Each refusal is typed ([RefusedError]), counted, and noticed on both
// ends.
//
// # What is not guaranteed
//
// Nothing is kept over a restart of either process. There is no order between
// lanes. A message that was accepted is not thereby delivered; only PeerDown
// tells of losses, and [Transport.Close] abandons what is still queued after
// Config.Linger.
package transport
