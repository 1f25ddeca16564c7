// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/gossip"
	pb "github.com/quorate/quorate/membership/internal/proto/quorate/membership/v1"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// The .proto file says what the tables do: each field that a table writes is in the document with its number and type,
// each field of the document is written, and protobuf writes what it has read as the tables do.
func TestTheDocumentDescribesTheBytes(t *testing.T) {
	written := map[protoreflect.FullName]bool{}
	all := messages()
	all["a delta with all of a config and the registers"] = protocol.GossipDelta{Delta: gossip.Delta{
		Config: &gossip.Voters{
			Gen: 1, By: 2, Voters: []gossip.NodeID{node(1)}, Previous: []gossip.NodeID{node(2)}, Data: []gossip.DataID{3}, PreviousData: []gossip.DataID{4},
		},
		Registers: &gossip.Registers{LastUpNumber: 1, PrunedBefore: 2, EpochBorn: 3, Yielded: all["init-join"].(protocol.InitJoin).Claim.Record.Yielded},
	}}
	for name, message := range all {
		b := encode(t, message)
		m := new(pb.Message)
		require.NoError(t, proto.Unmarshal(b, m), name)
		note(t, name, m.ProtoReflect(), written)
		again, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, b, again, name)
	}
	var missing []protoreflect.FullName
	file := (*pb.Message)(nil).ProtoReflect().Descriptor().ParentFile()
	for i := range file.Messages().Len() {
		fields := file.Messages().Get(i).Fields()
		for k := range fields.Len() {
			if name := fields.Get(k).FullName(); !written[name] {
				missing = append(missing, name)
			}
		}
	}
	require.Empty(t, missing, "no table writes these fields, or no message of the test has them")
}

// note notes the fields of a message and of those inside it, and fails for one that the document does not have.
func note(t *testing.T, name string, m protoreflect.Message, written map[protoreflect.FullName]bool) {
	t.Helper()
	require.Empty(t, m.GetUnknown(), "%s has a field in %s that is not in the document", name, m.Descriptor().FullName())
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		written[f.FullName()] = true
		if f.Message() != nil {
			require.False(t, f.IsList(), "lists of messages are columns")
			note(t, name, v.Message(), written)
		}
		return true
	})
}
