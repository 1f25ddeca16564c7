// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
)

// onlineKey has for each name the identities of the nodes that the name is connected to. It
// is in memory alone: after a restart of the whole cluster nobody is connected.
func onlineKey() ddata.Key[crdt.ORMultiMap[string, string]] {
	return ddata.NewKey[crdt.ORMultiMap[string, string]]("online")
}

// seenPrefix begins the names of the keys that tell when a name was last seen. They are
// durable: cluster.yaml says so.
const seenPrefix = "seen/"

func seenKey(name string) ddata.Key[crdt.LWWRegister[seen]] {
	return ddata.NewKey[crdt.LWWRegister[seen]](seenPrefix + name)
}

// place is a name that is connected to a node.
type place struct{ name, node string }

// writeOnline adds places to the online key and removes others. It waits for no other node:
// who is online is told on both sides of a partition.
func writeOnline(ctx context.Context, h ddata.Host, add, remove []place) error {
	_, err := ddata.Update(ctx, h, onlineKey(), ddata.Local(),
		func(at crdt.Origin, m crdt.ORMultiMap[string, string]) (crdt.ORMultiMap[string, string], error) {
			for _, p := range remove {
				m = m.Remove(p.name, p.node)
			}
			for _, p := range add {
				m = m.Add(at, p.name, p.node)
			}
			return m, nil
		})
	return err
}

// writeSeen says that a name is seen now. It returns when a majority of the nodes have it on
// their disks.
func writeSeen(ctx context.Context, h ddata.Host, name string, s seen) error {
	_, err := ddata.Update(ctx, h, seenKey(name), ddata.Majority(),
		func(at crdt.Origin, r crdt.LWWRegister[seen]) (crdt.LWWRegister[seen], error) {
			return r.Set(at, s.milli, s), nil
		})
	return err
}

// seen says when a name was seen, and at the address of which node. The time is in what is
// encoded, milliseconds since 1970, so that a value is the same before and after.
type seen struct {
	milli int64
	node  string
}

func (s seen) time() time.Time { return time.UnixMilli(s.milli).UTC() }

// TypeName is what the type is called on disk and on the wire, whatever Go calls it.
func (seen) TypeName() string { return "presence.seen" }

// AppendBinary appends the milliseconds as a varint, and the address.
//
//nolint:unparam // The signature is that of encoding.BinaryAppender.
func (s seen) AppendBinary(dst []byte) ([]byte, error) {
	return append(binary.AppendVarint(dst, s.milli), s.node...), nil
}

// errSeen is wrapped by the errors of bytes that are not the encoding of a seen.
var errSeen = errors.New("not a time and an address")

// UnmarshalBinary decodes what AppendBinary has written.
func (s *seen) UnmarshalBinary(b []byte) error {
	milli, n := binary.Varint(b)
	if n <= 0 || n != len(binary.AppendVarint(nil, milli)) {
		return fmt.Errorf("presence: %d bytes: %w", len(b), errSeen)
	}
	s.milli, s.node = milli, string(b[n:])
	return nil
}

// plan says what a node has to change in the online key. Here are the names that are
// connected to the node itself. The leader alone takes away what other nodes have left
// behind: whatever belongs to no member.
func plan(m crdt.ORMultiMap[string, string], self string, here []string, leads bool, member func(node string) bool) (add, remove []place) {
	for _, name := range here {
		if !m.Has(name, self) {
			add = append(add, place{name, self})
		}
	}
	for name, node := range m.All() {
		gone := node == self && !slices.Contains(here, name)
		left := node != self && leads && !member(node)
		if gone || left {
			remove = append(remove, place{name, node})
		}
	}
	return add, remove
}
