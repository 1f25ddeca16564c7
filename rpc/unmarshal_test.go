// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/rpc"
)

// everything returns a message type with each sort of field that may hold a list of numbers: lists (n, and far with a
// large number) and messages (one, many, by, grouped, and the extension extended).
func everything(tb testing.TB) protoreflect.MessageDescriptor {
	tb.Helper()
	field := func(name string, number int32, typ descriptorpb.FieldDescriptorProto_Type, label descriptorpb.FieldDescriptorProto_Label, of string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &typ, Label: &label}
		if of != "" {
			f.TypeName = &of
		}
		return f
	}
	const (
		one, many = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL, descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		number    = descriptorpb.FieldDescriptorProto_TYPE_INT64
		message   = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
		group     = descriptorpb.FieldDescriptorProto_TYPE_GROUP
		text      = descriptorpb.FieldDescriptorProto_TYPE_STRING
	)
	extended := field("extended", 2000, message, one, ".test.Everything")
	extended.Extendee = new(".test.Everything")
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("everything.proto"), Package: new("test"), Syntax: new("proto2"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: new("Everything"),
			Field: []*descriptorpb.FieldDescriptorProto{
				field("n", 1, number, many, ""), field("far", 1000, number, many, ""), field("texts", 2, text, many, ""),
				field("one", 3, message, one, ".test.Everything"), field("many", 4, message, many, ".test.Everything"),
				field("by", 5, message, many, ".test.Everything.ByEntry"), field("grouped", 6, group, one, ".test.Everything.Grouped"),
			},
			NestedType: []*descriptorpb.DescriptorProto{
				{
					Name: new("ByEntry"), Options: &descriptorpb.MessageOptions{MapEntry: new(true)},
					Field: []*descriptorpb.FieldDescriptorProto{field("key", 1, number, one, ""), field("value", 2, message, one, ".test.Everything")},
				},
				{Name: new("Grouped"), Field: []*descriptorpb.FieldDescriptorProto{field("n", 1, number, many, "")}},
			},
			ExtensionRange: []*descriptorpb.DescriptorProto_ExtensionRange{{Start: proto.Int32(2000), End: proto.Int32(3000)}},
		}},
		Extension: []*descriptorpb.FieldDescriptorProto{extended},
	}, nil)
	require.NoError(tb, err)
	if _, err := protoregistry.GlobalTypes.FindExtensionByName("test.extended"); err != nil { // Of an earlier run.
		require.NoError(tb, protoregistry.GlobalTypes.RegisterExtension(dynamicpb.NewExtensionType(file.Extensions().Get(0))))
	}
	return file.Messages().Get(0)
}

func within(number protowire.Number, content ...byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// What no encoder writes and the library decodes at a cost that grows with the square of its bytes is refused, wherever
// in a message it is; what encoders write is decoded, and so are two of their messages one after the other.
func TestListsInManyPiecesAreRefused(t *testing.T) {
	everything := everything(t)
	list := within(1, 7, 8)
	group := protowire.AppendTag(append(protowire.AppendTag(nil, 6, protowire.StartGroupType), list...), 6, protowire.EndGroupType)
	long := bytes.Repeat([]byte{1}, 200)
	for name, unit := range map[string][]byte{
		"a list":                       list,
		"one of a large number":        within(1000, 7, 8),
		"in a message":                 within(3, list...),
		"in a message of a message":    within(3, within(3, list...)...),
		"in a group":                   group,
		"in a message of many pieces":  within(4, bytes.Repeat(list, 100)...),
		"in a value of a map":          within(5, append([]byte{1 << 3, 1}, within(2, bytes.Repeat(list, 100)...)...)...),
		"in a value that comes twice":  within(5, bytes.Repeat(within(2, list...), 100)...),
		"in an extension":              within(2000, list...),
		"behind a field of no message": append(within(900, 1, 2, 3), list...),
	} {
		err := rpc.Unmarshal(bytes.Repeat(unit, 100), dynamicpb.NewMessage(everything))
		require.ErrorContains(t, err, "packed in more fields", name)
	}
	for name, b := range map[string][]byte{
		"two messages one after the other":        append(within(1, long...), within(1, long...)...),
		"numbers one by one":                      bytes.Repeat([]byte{1 << 3, 1}, 1000),
		"texts":                                   bytes.Repeat(within(2, 'x'), 1000),
		"a list in each of many messages":         bytes.Repeat(within(4, within(1, long...)...), 100),
		"a list in each value of a map":           bytes.Repeat(within(5, within(2, within(1, long...)...)...), 100),
		"in the messages of one that comes twice": bytes.Repeat(within(3, within(4, list...)...), 100),
		"bytes that nobody knows":                 bytes.Repeat(append(within(900, 7), within(2500, list...)...), 1000),
	} {
		require.NoError(t, rpc.Unmarshal(b, dynamicpb.NewMessage(everything)), name)
	}
	for name, b := range map[string][]byte{
		"cut off":             bytes.Repeat(list, 100)[:250],
		"a group's wrong end": append(append([]byte(nil), group[:len(group)-1]...), long...),
		"too deep":            bytes.Repeat(protowire.AppendTag(nil, 6, protowire.StartGroupType), 1<<20),
	} {
		require.Error(t, rpc.Unmarshal(b, dynamicpb.NewMessage(everything)), name)
	}
}

// Whatever an encoder writes is decoded.
func TestWhatIsEncodedIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := new(descriptorpb.FileDescriptorProto)
		for range rapid.IntRange(0, 40).Draw(t, "locations") {
			numbers := rapid.SliceOf(rapid.Int32())
			if in.SourceCodeInfo == nil {
				in.SourceCodeInfo = new(descriptorpb.SourceCodeInfo)
			}
			in.SourceCodeInfo.Location = append(in.SourceCodeInfo.Location, &descriptorpb.SourceCodeInfo_Location{
				Path: numbers.Draw(t, "path"), Span: numbers.Draw(t, "span"), LeadingDetachedComments: rapid.SliceOf(rapid.StringMatching(`[a-z]*`)).Draw(t, "comments"),
			})
		}
		in.PublicDependency = rapid.SliceOf(rapid.Int32()).Draw(t, "dependencies")
		b, err := proto.Marshal(in)
		require.NoError(t, err)
		out := new(descriptorpb.FileDescriptorProto)
		require.NoError(t, rpc.Unmarshal(b, out))
		require.True(t, proto.Equal(in, out))
	})
}

func BenchmarkUnmarshal(b *testing.B) {
	for _, n := range []int{4, 40, 4000} {
		in := new(structpb.ListValue)
		for i := range n {
			in.Values = append(in.Values, structpb.NewStringValue(fmt.Sprint("value ", i)))
		}
		encoded, err := proto.Marshal(in)
		require.NoError(b, err)
		for name, decode := range map[string]func([]byte, proto.Message) error{"rpc": rpc.Unmarshal, "proto": proto.Unmarshal} {
			b.Run(fmt.Sprintf("bytes=%d/%s", len(encoded), name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if decode(encoded, new(structpb.ListValue)) != nil {
						b.Fatal("it cannot be decoded")
					}
				}
			})
		}
	}
}
