// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"testing"

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
		require.Equal(t, sharding.JSON{}.Size(in), len(b)-6)
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
	require.Zero(t, c.Size(bad))
	_, err := c.Append(nil, bad)
	require.ErrorContains(t, err, "chan int")
	require.ErrorContains(t, c.Decode([]byte("{"), new(note)), "JSON")
}

func TestRawPassesBytesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := sharding.Bytes(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		b, err := sharding.Raw{}.Append([]byte("before"), &in)
		require.NoError(t, err)
		require.Equal(t, sharding.Raw{}.Size(&in), len(b)-6)
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
		require.Zero(t, v.codec.Size(v.bad))
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
