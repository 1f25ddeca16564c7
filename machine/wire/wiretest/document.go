// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"os"
	"slices"
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

// Document is what the .proto files of a module say, with which its tests compare what tables write and read. A
// Document may be used by several goroutines.
type Document struct {
	of    protoreflect.FullName
	files func() (*protoregistry.Files, error)
}

// NewDocument returns the document of a package of protobuf, such as "quorate.membership.v1". Its file is a set of
// descriptors, as buf builds it, and is read when a message is made.
func NewDocument(of protoreflect.FullName, file string) *Document {
	return &Document{of, sync.OnceValues(func() (*protoregistry.Files, error) {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var all descriptorpb.FileDescriptorSet
		if err := proto.Unmarshal(b, &all); err != nil {
			return nil, err
		}
		return protodesc.NewFiles(&all)
	})}
}

// New returns an empty message of the document.
func (d *Document) New(t require.TestingT, name protoreflect.Name) *dynamicpb.Message {
	files, err := d.files()
	require.NoError(t, err)
	m, err := files.FindDescriptorByName(d.of.Append(name))
	require.NoError(t, err)
	return dynamicpb.NewMessage(m.(protoreflect.MessageDescriptor))
}

// Parse returns the message of the document that the bytes hold.
func (d *Document) Parse(t require.TestingT, name protoreflect.Name, b []byte) *dynamicpb.Message {
	m := d.New(t, name)
	require.NoError(t, proto.Unmarshal(b, m))
	return m
}

// RequireWritten fails unless the messages, by their names for people, have together each field that the file of their
// types describes, and no other field. Messages of the types named last keep fields that the document does not have.
func RequireWritten(t testing.TB, messages map[string]*dynamicpb.Message, keepers ...protoreflect.Name) {
	t.Helper()
	written := map[protoreflect.FullName]bool{}
	var file protoreflect.FileDescriptor
	for name, m := range messages {
		file = m.Descriptor().ParentFile()
		note(m, written, func(m protoreflect.Message) {
			require.True(t, len(m.GetUnknown()) == 0 || slices.Contains(keepers, m.Descriptor().Name()),
				"%s has a field in %s that is not in the document", name, m.Descriptor().FullName())
		})
	}
	var missing []protoreflect.FullName
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

// note notes the fields of a message and of those inside it, and visits all of them.
func note(m protoreflect.Message, written map[protoreflect.FullName]bool, visit func(protoreflect.Message)) {
	visit(m)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		written[f.FullName()] = true
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				note(v.List().Get(i).Message(), written, visit)
			}
		default:
			note(v.Message(), written, visit)
		}
		return true
	})
}
