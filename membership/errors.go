// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import "errors"

var (
	// ErrDown is in [Node.Err] when the other members declared this node down, or it
	// downed itself because its side of a partition had to go. The work of this node runs
	// elsewhere. The process should end, or start a new node.
	ErrDown = errors.New("membership: this node was declared down")

	// ErrRefused is in [Node.Err] when the cluster refused this node for good;
	// the message names the setting and both values, where that is the reason.
	ErrRefused = errors.New("membership: the cluster refused this node")

	// ErrJoinFailed is in [Node.Err] when no contact let this node join within the
	// configured time.
	ErrJoinFailed = errors.New("membership: could not join")

	// ErrYielded is in [Node.Err] when this node's cluster met another cluster of its
	// name, which goes on. A new node, or the process when it is started again, joins the
	// other cluster.
	ErrYielded = errors.New("membership: this node's cluster has yielded to another one")

	// ErrDisk is in [Node.Err] when the node's record in node.data-dir could be
	// neither written nor removed, or the disk did not answer.
	ErrDisk = errors.New("membership: the data directory failed")

	// ErrFormRefused is returned by [Node.Form] when no cluster was founded; the
	// message says why.
	ErrFormRefused = errors.New("membership: no cluster was founded")

	// ErrClosed is returned by methods of a node that has ended, and is in
	// [Node.Err] after [Node.Close].
	ErrClosed = errors.New("membership: node closed")

	// ErrUnknownMember is returned by [Node.LeaveMember], [Node.Down] and [View.Find] for a
	// name that no member has; it is an [*UnknownMemberError], which tells what became of it.
	ErrUnknownMember = errors.New("membership: no member of this name")

	// ErrNotUp is returned by [Node.PrepareShutdown] of a node that is not up, and by
	// [Node.Down] of one that is on its way out, where others do not go by its word.
	ErrNotUp = errors.New("membership: this node is not up")
)
