// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/rpc"
	rpcv1 "github.com/quorate/quorate/rpc/proto/quorate/rpc/v1"
)

type text = *wrapperspb.StringValue

// entity answers with what it was given, and refuses and fails on demand.
type entity struct{ told []string }

func (e *entity) echo(_ string, m text) (text, error) {
	switch m.GetValue() {
	case "refuse":
		return nil, rpc.Refuse("bad", "no %d", 7)
	case "refuse with more":
		return nil, fmt.Errorf("more: %w", rpc.Refuse("bad", "no %d", 7))
	case "fail":
		return nil, errors.New("broken")
	case "nothing":
		return nil, nil
	}
	return m, nil
}

func (e *entity) note(_ string, m text) error {
	e.told = append(e.told, m.GetValue())
	if m.GetValue() == "refuse" {
		return rpc.Refuse("bad", "no %d", 7)
	}
	return nil
}

func service() rpc.Service[*entity, string] {
	return rpc.NewService("test.Echo", rpc.Asked("Echo", (*entity).echo), rpc.Told("Note", (*entity).note))
}

// What is written by hand is what the generated code reads, and the other way round.
func TestCallsAndRepliesAreTheirProto(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		method := rapid.StringMatching(`[A-Z][a-z_0-9]{0,20}`).Draw(t, "method")
		m := wrapperspb.String(rapid.String().Draw(t, "text"))
		call := &rpc.Call{Method: method, OneWay: rapid.Bool().Draw(t, "one way"), Message: m}
		b, err := call.Append(nil)
		require.NoError(t, err)
		var generated rpcv1.Call
		require.NoError(t, proto.Unmarshal(b, &generated))
		encoded, err := proto.Marshal(m)
		require.NoError(t, err)
		require.True(t, proto.Equal(&rpcv1.Call{Method: method, OneWay: call.OneWay, Message: encoded}, &generated))

		other, err := proto.Marshal(&generated)
		require.NoError(t, err)
		gotMethod, gotMessage, oneWay, err := rpc.DecodeCall(other)
		require.NoError(t, err)
		require.Equal(t, []any{method, call.OneWay}, []any{gotMethod, oneWay})
		require.Equal(t, string(encoded), string(gotMessage))

		reply := &rpc.Reply{Message: m}
		if rapid.Bool().Draw(t, "refused") {
			reply = &rpc.Reply{Fault: &rpc.Fault{Code: rapid.StringN(0, 100, 128).Draw(t, "code"), Text: rapid.StringN(0, 100, 900).Draw(t, "why")}}
		}
		b, err = reply.Append(nil)
		require.NoError(t, err)
		var out rpcv1.Reply
		require.NoError(t, proto.Unmarshal(b, &out))
		var back rpc.Reply
		require.NoError(t, back.Decode(b))
		if reply.Fault != nil {
			require.Equal(t, reply.Fault, back.Fault)
			require.Equal(t, reply.Fault.Code, out.GetFault().GetCode())
			require.Equal(t, reply.Fault.Text, out.GetFault().GetText())
			return
		}
		require.Equal(t, string(encoded), string(back.Encoded))
		require.Equal(t, string(encoded), string(out.GetMessage()))
	})
}

func TestServiceFindsItsMethods(t *testing.T) {
	s, e := service(), new(entity)
	reply, err := s.Handle(e, "", &rpc.Call{Method: "Echo", Message: wrapperspb.String("a")})
	require.NoError(t, err)
	require.Equal(t, "a", reply.Message.(text).GetValue())

	reply, err = s.Handle(e, "", &rpc.Call{Method: "Note", OneWay: true, Message: wrapperspb.String("b")})
	require.NoError(t, err)
	require.Nil(t, reply)
	reply, err = s.Handle(e, "", &rpc.Call{Method: "Note", Message: wrapperspb.String("c")})
	require.NoError(t, err)
	require.NotNil(t, reply, "whoever asks a one-way method gets an answer")
	require.Equal(t, []string{"b", "c"}, e.told)

	for _, refuses := range []string{"refuse", "refuse with more"} {
		reply, err = s.Handle(e, "", &rpc.Call{Method: "Echo", Message: wrapperspb.String(refuses)})
		require.NoError(t, err, "a refusal is no failure")
		require.Equal(t, &rpc.Fault{Code: "bad", Text: "no 7"}, reply.Fault)
	}
	_, err = s.Handle(e, "", &rpc.Call{Method: "Note", OneWay: true, Message: wrapperspb.String("refuse")})
	_, refused := errors.AsType[*rpc.Fault](err)
	require.True(t, refused, "nobody would hear of it otherwise")

	reply, err = s.Handle(e, "", &rpc.Call{Method: "Gone"})
	require.NoError(t, err)
	require.ErrorIs(t, reply.Fault, rpc.ErrUnknownMethod)
	require.ErrorContains(t, reply.Fault, `test.Echo has no method "Gone"`)

	for _, fails := range []string{"fail", "nothing"} {
		_, err = s.Handle(e, "", &rpc.Call{Method: "Echo", Message: wrapperspb.String(fails)})
		require.Error(t, err)
	}
	_, err = s.Handle(e, "", &rpc.Call{Method: "Echo", Message: wrapperspb.Bool(true)})
	require.ErrorIs(t, err, rpc.ErrInvalid)
}

func TestServiceDecodesWhatItKnows(t *testing.T) {
	s := service()
	encode := func(c *rpc.Call) []byte {
		b, err := c.Append(nil)
		require.NoError(t, err)
		return b
	}
	call, err := s.Decode(encode(&rpc.Call{Method: "Echo", Message: wrapperspb.String("a")}))
	require.NoError(t, err)
	require.Equal(t, "a", call.Message.(text).GetValue())

	call, err = s.Decode(encode(&rpc.Call{Method: "New", Message: wrapperspb.String("a")}))
	require.NoError(t, err, "whoever asks hears of it from the service")
	require.Equal(t, rpc.Call{Method: "New"}, call)
	_, err = s.Decode(encode(&rpc.Call{Method: "New", OneWay: true, Message: wrapperspb.String("a")}))
	require.ErrorIs(t, err, rpc.ErrUnknownMethod, "nobody else would hear of it")

	_, err = s.Decode([]byte{0xff})
	require.Error(t, err)
	_, err = s.Decode(nil)
	require.ErrorContains(t, err, "without a method")
	broken, err := proto.Marshal(&rpcv1.Call{Method: "Echo", Message: []byte{0xff}})
	require.NoError(t, err)
	_, err = s.Decode(broken)
	require.ErrorContains(t, err, "rpc: Echo")
}

// What later versions put beside the fields of this one is passed over, whatever its type, and what is read is
// no part of the bytes that were given.
func TestFieldsOfLaterVersionsArePassedOver(t *testing.T) {
	var later []byte
	later = protowire.AppendVarint(protowire.AppendTag(later, 100, protowire.VarintType), 1)
	later = protowire.AppendString(protowire.AppendTag(later, 101, protowire.BytesType), "text")
	later = protowire.AppendFixed32(protowire.AppendTag(later, 102, protowire.Fixed32Type), 1)
	later = protowire.AppendFixed64(protowire.AppendTag(later, 103, protowire.Fixed64Type), 1)
	with := func(b []byte, err error) []byte {
		require.NoError(t, err)
		return append(append(slices.Clone(later), b...), later...)
	}
	requireDecoded := func(b []byte, want rpc.Reply) {
		t.Helper()
		var r rpc.Reply
		require.NoError(t, r.Decode(b))
		clear(b)
		require.Equal(t, want, r)
	}

	b := with((&rpc.Call{Method: "Echo", Message: wrapperspb.String("a")}).Append(nil))
	call, err := service().Decode(b)
	require.NoError(t, err)
	clear(b)
	require.Equal(t, "Echo", call.Method)
	require.Equal(t, "a", call.Message.(text).GetValue())
	requireDecoded(with((&rpc.Reply{Encoded: []byte("a")}).Append(nil)), rpc.Reply{Encoded: []byte("a")})
	fault := with(proto.Marshal(&rpcv1.Fault{Code: "c", Text: "t"}))
	refusal := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), fault) // Field fault.
	requireDecoded(with(refusal, nil), rpc.Reply{Fault: &rpc.Fault{Code: "c", Text: "t"}})

	require.ErrorContains(t, new(rpc.Reply).Decode(later), "without a message")
	require.ErrorContains(t, new(rpc.Reply).Decode(nil), "without a message")
}

// direct is a caller without a wire between, or with one.
type direct struct {
	encoded bool
	reply   *rpc.Reply
	err     error
	calls   []*rpc.Call
}

func (d *direct) Ask(_ context.Context, _ string, call *rpc.Call) (*rpc.Reply, error) {
	d.calls = append(d.calls, call)
	if d.err != nil || !d.encoded {
		return d.reply, d.err
	}
	b, err := d.reply.Append(nil)
	if err != nil {
		return nil, err
	}
	back := new(rpc.Reply)
	return back, back.Decode(b)
}

func (d *direct) Tell(_ context.Context, _ string, call *rpc.Call) error {
	d.calls = append(d.calls, call)
	return d.err
}

func TestAskTurnsRepliesIntoMessages(t *testing.T) {
	ask := func(d *direct) (text, error) {
		return rpc.Ask[wrapperspb.StringValue](t.Context(), d, "x", "Echo", wrapperspb.String("a"))
	}
	for _, encoded := range []bool{false, true} {
		got, err := ask(&direct{encoded: encoded, reply: &rpc.Reply{Message: wrapperspb.String("b")}})
		require.NoError(t, err)
		require.Equal(t, "b", got.GetValue())
		_, err = ask(&direct{encoded: encoded, reply: &rpc.Reply{Fault: &rpc.Fault{Code: "bad"}}})
		fault, ok := errors.AsType[*rpc.Fault](err)
		require.True(t, ok)
		require.Equal(t, "bad", fault.Code)
		require.EqualError(t, fault, "refused: bad")
	}
	_, err := ask(&direct{reply: &rpc.Reply{Message: wrapperspb.Bool(true)}})
	require.ErrorIs(t, err, rpc.ErrInvalid)
	_, err = ask(&direct{reply: &rpc.Reply{Encoded: []byte{0xff}}})
	require.ErrorIs(t, err, rpc.ErrInvalid)
	_, err = ask(&direct{err: context.Canceled})
	require.ErrorIs(t, err, context.Canceled)

	d := new(direct)
	var none text
	_, err = rpc.Ask[wrapperspb.StringValue](t.Context(), d, "x", "Echo", none)
	require.ErrorIs(t, err, rpc.ErrInvalid)
	require.ErrorIs(t, rpc.Tell(t.Context(), d, "x", "Note", none), rpc.ErrInvalid)
	require.Empty(t, d.calls, "nothing was sent")
	require.NoError(t, rpc.Tell(t.Context(), d, "x", "Note", wrapperspb.String("n")))
	require.True(t, d.calls[0].OneWay)
}

// A fault of an unknown method says so, and no other one.
func TestFaultsSayWhatTheyAre(t *testing.T) {
	require.ErrorIs(t, rpc.Unimplemented("test.Echo", "New"), rpc.ErrUnknownMethod)
	require.NotErrorIs(t, rpc.Refuse("bad", "no"), rpc.ErrUnknownMethod)
	require.NotErrorIs(t, rpc.Refuse(rpc.CodeUnknownMethod, "no"), rpc.ErrInvalid)
	require.EqualError(t, rpc.Refuse("bad", "no %d", 7), "refused: bad: no 7")
}

// A fault travels whatever is in it, within its bounds.
func TestFaultsAreBounded(t *testing.T) {
	long := &rpc.Reply{Fault: &rpc.Fault{Code: strings.Repeat("c", 200), Text: "\xff" + strings.Repeat("ä", 900)}}
	b, err := long.Append(nil)
	require.NoError(t, err)
	var back rpc.Reply
	require.NoError(t, back.Decode(b))
	require.Len(t, back.Fault.Code, 128)
	require.LessOrEqual(t, len(back.Fault.Text), 1000)
	require.NoError(t, proto.Unmarshal(b, new(rpcv1.Reply)), "no letter is cut in two")
	require.True(t, strings.HasPrefix(back.Fault.Text, "?ä"))
}

func FuzzDecode(f *testing.F) {
	for _, m := range []proto.Message{
		&rpcv1.Call{Method: "Echo", Message: []byte("\n\x01a")}, &rpcv1.Call{Method: "Note", OneWay: true},
		&rpcv1.Reply{Outcome: &rpcv1.Reply_Message{Message: []byte("a")}},
		&rpcv1.Reply{Outcome: &rpcv1.Reply_Fault{Fault: &rpcv1.Fault{Code: "c", Text: "t"}}},
	} {
		b, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(b)
	}
	s := service()
	f.Fuzz(func(t *testing.T, b []byte) {
		if call, err := s.Decode(b); err == nil && call.Message != nil {
			again, err := call.Append(nil)
			require.NoError(t, err)
			_, err = s.Decode(again)
			require.NoError(t, err)
		}
		var r rpc.Reply
		if r.Decode(b) == nil {
			again, err := r.Append(nil)
			require.NoError(t, err)
			require.NoError(t, new(rpc.Reply).Decode(again))
		}
	})
}
