// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/sharding"
)

type note struct {
	Text  string         `json:"text"`
	Lines []int          `json:"lines,omitempty"`
	Tags  map[string]int `json:"tags,omitempty"`
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := &note{
			Text:  rapid.String().Draw(t, "text"),
			Lines: rapid.SliceOfN(rapid.Int(), 1, 5).Draw(t, "lines"),
			Tags:  rapid.MapOfN(rapid.StringMatching(`[a-z]+`), rapid.Int(), 1, 3).Draw(t, "tags"),
		}
		b, err := sharding.JSON{}.Append([]byte("before"), in)
		require.NoError(t, err)
		require.Equal(t, "before", string(b[:6]), "what was there stays")
		out := new(note)
		require.NoError(t, sharding.JSON{}.Decode(b[6:], out))
		require.Equal(t, in, out)
	})
}

func TestJSONSaysWhatItCannotEncode(t *testing.T) {
	c := sharding.JSON{}
	require.Equal(t, "json", c.Name())
	require.NoError(t, c.Check(new(note)))
	bad := &struct{ C chan int }{}
	require.ErrorContains(t, c.Check(bad), "cannot be encoded as JSON")
	_, err := c.Append(nil, bad)
	require.ErrorContains(t, err, "chan int")
	require.ErrorContains(t, c.Decode([]byte("{"), new(note)), "JSON")
}

func TestRawPassesBytesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := sharding.Bytes(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		b, err := sharding.Raw{}.Append([]byte("before"), &in)
		require.NoError(t, err)
		var out sharding.Bytes
		require.NoError(t, sharding.Raw{}.Decode(b[6:], &out))
		require.Equal(t, string(in), string(out))
		clear(b)
		require.Equal(t, string(in), string(out), "the decoded bytes are a copy")
	})
}

func TestCodecsRefuseOtherTypes(t *testing.T) {
	require.Equal(t, "raw", sharding.Raw{}.Name())
	require.Equal(t, "protobuf", sharding.Protobuf{}.Name())
	for _, v := range []struct {
		codec     sharding.Codec
		good, bad any
		want      string
	}{
		{sharding.Raw{}, new(sharding.Bytes), new(note), "*sharding_test.note is not a *sharding.Bytes"},
		{sharding.Protobuf{}, new(wrapperspb.StringValue), new(note), "is not a generated protocol buffer message"},
	} {
		require.NoError(t, v.codec.Check(v.good))
		require.ErrorContains(t, v.codec.Check(v.bad), v.want)
		_, err := v.codec.Append(nil, v.bad)
		require.ErrorContains(t, err, v.want)
		require.ErrorContains(t, v.codec.Decode(nil, v.bad), v.want)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"text":"a","lines":[1]}`))
	f.Add([]byte(`{"lines":"no"}`))
	f.Add([]byte("\x0a\x01a"))
	f.Add([]byte("\x0a\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for codec, message := range map[sharding.Codec]func() any{
			sharding.JSON{}:     func() any { return new(note) },
			sharding.Raw{}:      func() any { return new(sharding.Bytes) },
			sharding.Protobuf{}: func() any { return new(wrapperspb.StringValue) },
		} {
			m := message()
			if codec.Decode(b, m) != nil {
				continue
			}
			again, err := codec.Append(nil, m)
			require.NoError(t, err, codec.Name())
			require.NoError(t, codec.Decode(again, message()), codec.Name())
		}
	})
}

// leaver is a codec that ends its goroutine in place of decoding certain messages.
type leaver struct{ sharding.Protobuf }

func (c leaver) Decode(b []byte, message any) error {
	if err := c.Protobuf.Decode(b, message); err != nil {
		return err
	}
	if strings.HasPrefix(message.(text).GetValue(), "exit") {
		runtime.Goexit()
	}
	return nil
}

// A codec that ends its goroutine fails its message, and not those that come by the same
// connection: nobody reads a connection whose goroutine has ended, and who reads it anew finds the
// same message first.
func TestACodecThatEndsItsGoroutine(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Codec = leaver{} }
		w.start(2)
		asker, host := w.nodes[0], w.nodes[1]
		ids := asker.hosted(host, 2)
		asker.must(ids[0], "x")
		for range 3 {
			for _, command := range []string{"x", "x", "exit", "x", "exit", "x"} { // Some of them come in one frame.
				asker.tell(ids[0], command)
			}
			asker.must(ids[1], "x")
			_, err := asker.ask(ids[0], "exit", limit)
			require.ErrorIs(t, err, sharding.ErrEntityFailed)
			require.ErrorContains(t, err, "it ended its goroutine")
			pass(5 * time.Second) // An entity that fails again and again rests.
		}
		require.Len(t, w.journal.of(ids[0], "x"), 1+3*4, "each once")
	})
}

// parrot replies with what it is told.
type parrot struct{}

func (parrot) Receive(c *sharding.Context, m text) error { return c.Reply(say(m.GetValue())) }

// A message whose encoding has no bytes leaves nothing behind for the messages after it, which go to
// shards that nobody on this node has written to before.
func TestAMessageWithoutBytesIsNotTakenForAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(_ *node, k *sharding.Kind[text]) {
			k.New = func(*sharding.Context) sharding.Entity[text] { return parrot{} }
		}
		w.form(4)
		for _, n := range w.nodes {
			n.startKind()
		}
		for i := range 20 {
			id := strings.Repeat("x", i)
			reply, err := w.nodes[0].ask(id+"x", id, limit)
			require.NoError(t, err)
			require.Equal(t, id, reply)
		}
	})
}
