// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/machine/wire"
)

// A plugin is another process, and may answer anything. What it answers is decoded within what its bytes allow: the
// lists of an answer are counted first, and made once. An answer that would take more than eight bytes for each of its
// own is refused.

// Answer is an answer that decodes itself.
type Answer interface {
	// Decode reads the answer off its bytes, and keeps none of them. The error is a defect of the answer.
	Decode(b []byte) error
}

// answers is the codec of calls.
type answers struct{ encoding.CodecV2 }

func codec() answers { return answers{encoding.GetCodecV2(proto.Name)} }

// Unmarshal decodes an answer.
func (answers) Unmarshal(data mem.BufferSlice, answer any) error {
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	switch answer := answer.(type) {
	case Answer:
		return answer.Decode(b.ReadOnlyData())
	case protobuf.Message:
		return unmarshal(b.ReadOnlyData(), answer)
	default:
		return fmt.Errorf("%T is no answer", answer)
	}
}

// unmarshal decodes a message whose lists are its own fields.
func unmarshal(b []byte, message protobuf.Message) error {
	budget := wire.BudgetOf(b)
	fields := reflect.ValueOf(message).Elem()
	for i := range fields.NumField() {
		number, ok := numberOf(fields.Type().Field(i))
		if !ok || fields.Type().Field(i).Type.Kind() != reflect.Slice {
			continue
		}
		if err := makeList(&budget, b, number, fields.Field(i)); err != nil {
			return err
		}
	}
	return protobuf.UnmarshalOptions{Merge: true, DiscardUnknown: true}.Unmarshal(b, message)
}

// numberOf returns the number of a field of a generated message.
func numberOf(field reflect.StructField) (wire.Number, bool) {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 2 || !field.IsExported() {
		return 0, false
	}
	number, err := strconv.ParseUint(parts[1], 10, 29)
	return wire.Number(number), err == nil
}

// makeList gives a list the capacity for all elements that the message has for it. Numbers that are packed in a field
// get theirs from that; in several fields the list would be copied for each.
func makeList(budget *wire.Budget, b []byte, number wire.Number, list reflect.Value) error {
	n, element := wire.Count(b, number), list.Type().Elem()
	size := int(element.Size())
	switch kind := element.Kind(); {
	case list.Type().Elem().Kind() == reflect.Uint8 || n == 0: // Bytes are no list.
		return nil
	case kind == reflect.Pointer:
		size += int(element.Elem().Size())
	case kind != reflect.String && kind != reflect.Slice && n > 1:
		return wire.Malformed("field %d has its numbers in %d fields", number, n)
	}
	if err := budget.Take(n, size); err != nil {
		return err
	}
	list.Set(reflect.MakeSlice(list.Type(), 0, n))
	return nil
}
