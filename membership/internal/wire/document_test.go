// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire/wiretest"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// document is membership.proto.
var document = wiretest.NewDocument("quorate.membership.v1", "../proto/descriptor.binpb")

// The .proto file says what the tables do: each field that a table writes is in the document with its number and type,
// each field of the document is written, and protobuf writes what it has read as the tables do.
func TestTheDocumentDescribesTheBytes(t *testing.T) {
	described := map[string]*dynamicpb.Message{}
	all := messages()
	all["a delta with all of a config and the registers"] = protocol.GossipDelta{Delta: gossip.Delta{
		Config: &gossip.Voters{
			Gen: 1, By: 2, Voters: []gossip.NodeID{node(1)}, Previous: []gossip.NodeID{node(2)}, Data: []gossip.DataID{3}, PreviousData: []gossip.DataID{4},
		},
		Registers: &gossip.Registers{LastUpNumber: 1, PrunedBefore: 2, EpochBorn: 3, Yielded: all["init-join"].(protocol.InitJoin).Claim.Record.Yielded},
	}}
	for name, message := range all {
		b := encode(t, message)
		m := parsed(t, b)
		described[name] = m.Message.(*dynamicpb.Message)
		require.Equal(t, b, m.bytes(t), name)
	}
	wiretest.RequireWritten(t, described, "More", "Config", "Downing") // These keep what the document does not have.
}

// doc is a message as the document describes it. Tests write with it what no table writes.
type doc struct{ protoreflect.Message }

// fields are values of a message by the names of their fields: numbers, texts, truth values, bytes, fields of a message
// inside, or a list of any of them. Nil stands for no value, and in a list for a zero one.
type fields map[string]any

// made returns a message with some fields.
func made(t testing.TB, f fields) doc {
	t.Helper()
	d := doc{document.New(t, "Message")}
	d.fill(f)
	return d
}

// parsed returns a message that the bytes hold.
func parsed(t testing.TB, b []byte) doc {
	t.Helper()
	return doc{document.Parse(t, "Message", b)}
}

func (d doc) bytes(t testing.TB) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(d.Interface())
	require.NoError(t, err)
	return b
}

func (d doc) fill(f fields) {
	for name, v := range f {
		d.set(name, v)
	}
}

// at returns the message at a path, such as "gossip_state.state".
func (d doc) at(path string) doc {
	for name := range strings.SplitSeq(path, ".") {
		d = doc{d.Mutable(d.field(name)).Message()}
	}
	return d
}

func (d doc) field(name string) protoreflect.FieldDescriptor {
	f := d.Descriptor().Fields().ByName(protoreflect.Name(name))
	if f == nil {
		panic(fmt.Sprintf("%s has no field %s", d.Descriptor().FullName(), name))
	}
	return f
}

// find returns the message and the field of a path, and the place in the list, -1 for none: "members.status[0]".
func (d doc) find(path string) (of doc, f protoreflect.FieldDescriptor, place int) {
	if i := strings.LastIndex(path, "."); i >= 0 {
		d, path = d.at(path[:i]), path[i+1:]
	}
	place = -1
	if i := strings.Index(path, "["); i >= 0 {
		place, _ = strconv.Atoi(strings.Trim(path[i:], "[]"))
		path = path[:i]
	}
	return d, d.field(path), place
}

func (d doc) get(path string) protoreflect.Value {
	of, f, place := d.find(path)
	if place < 0 {
		return of.Get(f)
	}
	return of.Get(f).List().Get(place)
}

// set sets the value at a path, or what a function makes of the message and the value that is there.
func (d doc) set(path string, v any) {
	of, f, place := d.find(path)
	if change, ok := v.(func(doc, protoreflect.Value) any); ok {
		v = change(d, d.get(path))
	}
	list, isList := v.([]any)
	inside, isMessage := v.(fields)
	switch {
	case place >= 0:
		of.Mutable(f).List().Set(place, valueOf(f, v))
	case v == nil:
		of.Clear(f)
	case isList:
		of.Clear(f)
		for _, v := range list {
			of.Mutable(f).List().Append(valueOf(f, v))
		}
	case isMessage:
		doc{of.Mutable(f).Message()}.fill(inside)
	default:
		of.Set(f, valueOf(f, v))
	}
}

// valueOf returns a value as the field has it.
func valueOf(f protoreflect.FieldDescriptor, v any) protoreflect.Value {
	if pv, ok := v.(protoreflect.Value); ok {
		return pv
	}
	switch f.Kind() {
	case protoreflect.MessageKind:
		m := doc{dynamicpb.NewMessage(f.Message())}
		m.fill(v.(fields))
		return protoreflect.ValueOfMessage(m.Message)
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.BoolKind:
		if v == nil {
			v = ""
		}
		return protoreflect.ValueOf(v)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(number(v)))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(number(v)))
	default:
		return protoreflect.ValueOfUint64(number(v))
	}
}

func number(v any) uint64 {
	switch v := v.(type) {
	case int:
		return uint64(v)
	case uint64:
		return v
	default:
		return 0
	}
}

// keptAs returns a message More with fields that the document does not have, and without a version.
func keptAs(t testing.TB, unknown string) protoreflect.Value {
	t.Helper()
	more := made(t, nil).at("gossip_state.state.records.registers.more")
	more.SetUnknown(protoreflect.RawFields(unknown))
	return protoreflect.ValueOfMessage(more.Message)
}

// These make a value of others: the one at another path, one more than that, one less than the value that is there, a
// list without its first values, and the other way round.

func same(path string) func(doc, protoreflect.Value) any {
	return func(d doc, _ protoreflect.Value) any { return d.get(path) }
}

func after(path string) func(doc, protoreflect.Value) any {
	return func(d doc, _ protoreflect.Value) any { return d.get(path).Uint() + 1 }
}

func less(_ doc, old protoreflect.Value) any { return old.Uint() - 1 }

func rest(n int) func(doc, protoreflect.Value) any {
	return func(_ doc, old protoreflect.Value) any { return values(old.List())[n:] }
}

func reversed(_ doc, old protoreflect.Value) any {
	all := values(old.List())
	slices.Reverse(all)
	return all
}

func values(l protoreflect.List) (all []any) {
	for i := range l.Len() {
		all = append(all, l.Get(i))
	}
	return all
}
