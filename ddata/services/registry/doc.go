// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package registry tells every node of a cluster where services are: programs register a
// name with an address and metadata, and find what is registered under a name, or subscribe
// to it. What a node has registered vanishes with the node.
//
// # Life cycle
//
// [New] puts a registry on a node with distributed data, once for each node, and the
// registry ends with the node. [Registry.Register] registers an [Entry] and returns a
// [Registration], by which the entry is changed and taken back. Several entries may have one
// name, on one node too: each is told apart by its node and a number. An entry lasts until
// its registration is closed, or its node is downed or removed from the cluster. A node that
// was restarted is another node: what it registered before is gone.
//
// # Guarantees
//
// A registration is at once in what its own node finds, and within moments
// (ddata.spread-interval) in what the others find, in a partition on each side for itself.
// Nothing is ever decided: two nodes may have registered the same address, and whoever finds
// an entry may find its service gone. [WithConsistency] makes registering wait for more
// nodes.
//
// Each node hides the entries of nodes that are downed, or that are no members, as soon as
// it knows of that itself. Afterwards one of the nodes that hold the name removes the
// entries for good. An entry that was lost or removed although its node lives is put back by
// that node.
//
// A subscriber is told of the entries that are there, and then of changes. A subscriber that
// does not read costs no more than the entries that it was told of: it is told at last how
// each of them has changed altogether, with [Event.Missed] counting the updates that it was
// not told of. Entries that have come and gone in the meantime are not told.
//
// # Limits
//
// Names have 1 to 255 bytes of UTF-8, addresses as many; an entry has up to 64 items of
// metadata with keys of 1 to 255 bytes and texts of up to 4,096 bytes. All entries of a name
// are one value of the distributed data, under the key "registry/" with the name behind it,
// and ddata.max-value-bytes bounds them together. A name that was registered once costs an
// empty map when nobody registers it any more. On nodes that do not hold the key, finding
// asks a node that does, which may be another one each time, and a subscriber learns of
// changes within two seconds.
package registry
