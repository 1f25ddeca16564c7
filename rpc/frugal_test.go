// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/rpc"
)

// What others send costs no more than its bytes, times a small number.
func TestDecodersAreFrugal(t *testing.T) {
	frugal.Require(t, func(b []byte) { _, _, _, _ = rpc.DecodeCall(b) })
	frugal.Require(t, func(b []byte) { _ = new(rpc.Reply).Decode(b) })
}

// Messages of programs take what their types do: the page about security says how much that is.
func TestMessagesTakeWhatTheirTypesDo(t *testing.T) {
	for _, v := range []struct {
		message proto.Message // Made anew for each decoding.
		largest uintptr       // The size of the largest struct among its messages, in bytes.
	}{
		{new(structpb.ListValue), reflect.TypeFor[structpb.Value]().Size()},
		{new(structpb.Struct), reflect.TypeFor[structpb.Value]().Size()},
		{new(fieldmaskpb.FieldMask), 0},
		{new(descriptorpb.SourceCodeInfo_Location), 0},
		{new(descriptorpb.FileDescriptorSet), reflect.TypeFor[descriptorpb.FileDescriptorProto]().Size()},
		{new(descriptorpb.FileDescriptorProto), reflect.TypeFor[descriptorpb.DescriptorProto]().Size()},
	} {
		t.Run(string(v.message.ProtoReflect().Descriptor().Name()), func(t *testing.T) {
			perByte := 48 + int(v.largest)/2
			frugal.RequireWithin(t, perByte, func(b []byte) { _ = rpc.Unmarshal(b, v.message.ProtoReflect().New().Interface()) })
		})
	}
}
