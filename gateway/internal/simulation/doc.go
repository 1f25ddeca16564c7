// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation is a world in virtual time for clients that are no members: clients, which are the broker of
// production (client/clientsim), and nodes with gateways, whose calls are the machine of production
// (internal/exchange), over connections that are cut, stall and break, and with a model of entities behind the
// gateways. Nodes crash, come back at the same address, end in order, stand still and lose standing; replies are lost
// after their requests were handled; entities fail, are full, and move; clients do not read, give up at any moment, and
// begin anew. Given a seed a run repeats to the byte.
//
// # What must hold
//
//   - C1: a request ends once, and no later than [clientsim.Sweep] after its deadline.
//   - C2: what has ended as not handled was not handled, and never is.
//   - C3: nothing is handled twice.
//   - C4: a reply is that of its request, whose entity has handled it; a tell that is accepted was accepted by a node.
//   - C5: no client has more requests at a node than its window, or waiting than its bound, but for those that nodes
//     have sent back; none waits for room while there is some; no node has more than its bounds, and none counts a
//     request that is done.
//   - C6: what is told over a node, and accepted, comes before what is sent over it later to the same entity.
//   - C7: when faults are over, every request ends well within its time.
//   - C8: while nodes do nothing but leave in order and come back ([RunOrderly]), every request succeeds.
package simulation
