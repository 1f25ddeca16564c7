// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/gossip"
)

// The fields of a node id.
const (
	nodeHost = 1
	nodePort = 2
	nodeUID  = 3
)

// AppendNode appends a field with the id of a node, and nothing for the zero id.
// [SetNode] reads it.
func AppendNode(b []byte, n Number, id gossip.NodeID) []byte {
	if id.IsZero() {
		return b
	}
	b, at := Begin(b, n)
	b = AppendString(b, nodeHost, id.Address.Host)
	b = AppendUint(b, nodePort, uint64(id.Address.Port))
	b = AppendFixed64(b, nodeUID, uint64(id.UID))
	return End(b, at)
}

// SetNode stores the id of a node, which must be valid: see [gossip.NodeID.Validate].
func SetNode(dst *gossip.NodeID, f *Field) error {
	b, err := f.Data(math.MaxInt)
	if err != nil {
		return err
	}
	*dst, err = node(b)
	return err
}

// node loops around Next by itself: nodes are in every message, and Each allocates.
func node(b []byte) (id gossip.NodeID, err error) {
	for len(b) > 0 {
		var f Field
		if f, b, err = Next(b); err != nil {
			return id, err
		}
		switch f.Number {
		case nodeHost:
			err = SetText(&id.Address.Host, &f, gossip.MaxHostBytes)
		case nodePort:
			err = Set(&id.Address.Port, &f, math.MaxUint16)
		case nodeUID:
			err = SetFixed(&id.UID, &f)
		}
		if err != nil {
			return id, err
		}
	}
	return id, valid(id.Validate())
}

// NodeOf returns the id of a node from the values of generated code. A port above
// 65535 is malformed. NodeOf does not validate the id: a list of nodes is often
// validated together with the message that it is part of, and a node that is searched
// by address has no uid.
func NodeOf(host string, port uint32, uid uint64) (gossip.NodeID, error) {
	if port > math.MaxUint16 {
		return gossip.NodeID{}, Malformed("port %d", port)
	}
	return gossip.NodeID{Address: gossip.Address{Host: host, Port: uint16(port)}, UID: gossip.UID(uid)}, nil
}

// valid turns the error of a validation into one that wraps [ErrMalformed].
func valid(err error) error {
	if err != nil {
		err = Malformed("%w", err)
	}
	return err
}
