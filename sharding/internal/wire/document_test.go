// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// document is what the .proto files of this module say.
var document = sync.OnceValues(func() (*protoregistry.Files, error) {
	b, err := os.ReadFile("../proto/descriptor.binpb")
	if err != nil {
		return nil, err
	}
	var all descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	return protodesc.NewFiles(&all)
})

// described returns an empty message of the document: Envelope or Control.
func described(t require.TestingT, name protoreflect.FullName) proto.Message {
	files, err := document()
	require.NoError(t, err)
	d, err := files.FindDescriptorByName("quorate.sharding.v1." + name)
	require.NoError(t, err)
	return dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
}

// Each field of a control message in the document is written by a table; that tables write nothing else say the tests
// that read again what the document knows.
func TestTheDocumentDescribesTheBytes(t *testing.T) {
	written := map[protoreflect.FullName]bool{}
	for _, m := range controls() {
		b, err := codec.Append(nil, m)
		require.NoError(t, err)
		read := described(t, "Control")
		require.NoError(t, proto.Unmarshal(b, read))
		note(t, read.ProtoReflect(), written)
	}
	var missing []protoreflect.FullName
	messages := described(t, "Control").ProtoReflect().Descriptor().ParentFile().Messages()
	for i := range messages.Len() {
		fields := messages.Get(i).Fields()
		for k := range fields.Len() {
			if name := fields.Get(k).FullName(); !written[name] {
				missing = append(missing, name)
			}
		}
	}
	require.Empty(t, missing)
}

// note notes the fields of a message and of those inside it, and fails for one that the document does not have.
func note(t *testing.T, m protoreflect.Message, written map[protoreflect.FullName]bool) {
	t.Helper()
	require.Empty(t, m.GetUnknown(), "%s has a field that is not in the document", m.Descriptor().FullName())
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		written[f.FullName()] = true
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				note(t, v.List().Get(i).Message(), written)
			}
		default:
			note(t, v.Message(), written)
		}
		return true
	})
}
