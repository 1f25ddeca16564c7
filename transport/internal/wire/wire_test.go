// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/machinetest"
	numbers "github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/machine/wire/wiretest"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
)

// The encoding of the wire: bytes that never change and that are those of the document,
// malformed frames and fields of later versions; then handshakes and answers, good and
// malformed; last memory, any bytes, benchmarks, and a refusal with bytes that are no text.

var rewrite = flag.Bool("rewrite", false, "write the golden bytes anew")

func hello() wire.Hello {
	return wire.Hello{
		Cluster:   "bank",
		ClusterID: gossip.ClusterID{Born: 1_700_000_000_000, Nonce: 0xfeed},
		Protocol:  gossip.ProtocolRange{Min: 1, Max: 3},
		From:      gossip.NodeID{Address: gossip.Address{Host: "127.0.0.1", Port: 7946}, UID: 0xa},
		To:        gossip.NodeID{Address: gossip.Address{Host: "127.0.0.2", Port: 7946}, UID: 0xb},
		Lane:      machine.LaneBulk,
		Session:   9,
		Resumed:   true,
		MaxFrame:  4 << 20,
		Token:     wire.Token{0: 1, 15: 0xff},
	}
}

// question is a Hello that asks whether a token is the addressed node's own.
func question() wire.Hello {
	h := hello()
	h.Session, h.Resumed, h.Token, h.Asked = 0, false, wire.Token{}, h.Token
	return h
}

func frame(number uint64, payloads ...string) []byte {
	b := wire.Begin(nil)
	for i, p := range payloads {
		b, _ = wire.AppendEnvelope(b, uint16(i+1), func(b []byte) []byte { return append(b, p...) })
	}
	wire.SetNumber(b, number)
	return b
}

// golden returns a message of every sort; their bytes must never change.
func golden() map[string][]byte {
	receipt, _ := wire.AppendReceipt(nil, 300, []wire.Unhandled{{Service: 4711, Messages: 2}})
	plain, _ := wire.AppendReceipt(nil, 300, nil)
	taker := hello()
	taker.Answers = true
	return map[string][]byte{
		"frame":   frame(7, "heartbeat", "", "gossip"),
		"hello":   wire.AppendHello(nil, hello()),
		"welcome": wire.AppendWelcome(nil, wire.Welcome{Node: hello().To, Protocol: 3, Known: true, Acknowledged: 6}),
		"refusal": wire.AppendRefusal(nil, hello().To, &transport.RefusedError{Reason: transport.ReasonBlocked, Detail: "why"}),
		"receipt": receipt,
		"plain":   plain,
		"answers": wire.AppendAnswer(wire.AppendAnswer(slices.Clip(plain), 1, []byte("heartbeat")), 4711, nil),
		"taker":   wire.AppendHello(nil, taker),
		"said":    wire.AppendSaid(wire.AppendSaid(nil, 1, []byte("heartbeat")), 4711, nil),
		"hearing": wire.AppendWelcome(nil, wire.Welcome{Node: hello().To, Protocol: 3, Known: true, Answers: true}),

		"question": wire.AppendHello(nil, question()),
		"stale":    wire.AppendRefusal(nil, hello().To, &transport.RefusedError{Reason: transport.ReasonStale, Session: 9}),
		"own":      wire.AppendWelcome(nil, wire.Welcome{Node: hello().To, Protocol: 3, Own: true}),
	}
}

func TestTheBytesOnTheWireDoNotChange(t *testing.T) {
	for name, b := range golden() {
		machinetest.Bytes(t, filepath.Join("testdata", name+".hex"), *rewrite, b)
	}
}

// document is transport.proto.
var document = wiretest.NewDocument("quorate.transport.v1", "../proto/descriptor.binpb")

// The messages are those that transport.proto describes, and have all of its fields.
func TestTheDocumentDescribesTheBytes(t *testing.T) {
	messages := map[string]*dynamicpb.Message{}
	for name, b := range golden() {
		of := protoreflect.Name("Downstream")
		if slices.Contains([]string{"hello", "taker", "question", "frame", "said"}, name) {
			of = "Upstream"
		}
		messages[name] = document.Parse(t, of, b)
	}
	wiretest.RequireWritten(t, messages)
}

// Protobuf reads the frames that are encoded by hand, and they are read as protobuf writes them.
func TestFramesAreThoseOfTheDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Uint64Min(1).Draw(t, "number")
		payloads := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), 1, 20).Draw(t, "payloads")
		b := wire.Begin(nil)
		for i, p := range payloads {
			var n int
			b, n = wire.AppendEnvelope(b, uint16(i*1000+1), func(b []byte) []byte { return append(b, p...) })
			require.Equal(t, len(p), n)
		}
		wire.SetNumber(b, number)

		m := document.Parse(t, "Upstream", b)
		f, err := wire.ParseFrame(b)
		require.NoError(t, err)
		require.Equal(t, number, f.Number)
		require.Equal(t, len(payloads), f.Messages)
		i := 0
		for service, payload := range f.Envelopes() {
			require.Equal(t, uint16(i*1000+1), service)
			require.True(t, bytes.Equal(payloads[i], payload))
			i++
		}
		require.Equal(t, len(payloads), i)

		// The lengths that protobuf writes are as short as possible.
		canonical, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		require.NoError(t, err)
		again, err := wire.ParseFrame(canonical)
		require.NoError(t, err)
		require.Equal(t, number, again.Number)
		i = 0
		for _, payload := range again.Envelopes() {
			require.True(t, bytes.Equal(payloads[i], payload))
			i++
		}
		require.Equal(t, len(payloads), i)
	})
}

// covers B1, B2, B3, B4, B5, B6.
func TestMalformedFramesAreErrors(t *testing.T) {
	good := frame(1, "abc")
	envelope := func(fields ...byte) []byte {
		return append(frame(1), append([]byte{0x1a, byte(len(fields))}, fields...)...)
	}
	bad := map[string][]byte{
		"empty":                   nil,
		"no number":               good[wire.HeaderBytes:],
		"number zero":             frame(0, "abc"),
		"no envelope":             frame(1),
		"trailing zero":           append(bytes.Clone(good), 0),
		"a second number":         append(bytes.Clone(good), frame(2)...),
		"hello beside":            append(bytes.Clone(good), 0x0a, 0),
		"envelopes as a varint":   append(bytes.Clone(good), 0x18, 1),
		"empty envelope":          envelope(),
		"service zero":            envelope(0x08, 0),
		"service above 16 bits":   envelope(0x08, 0x80, 0x80, 0x04),
		"service as bytes":        envelope(0x0a, 1, 1),
		"payload as varint":       envelope(0x08, 1, 0x10, 1),
		"payload without service": envelope(0x12, 1, 1),
		"payload longer than all": envelope(0x08, 1, 0x12, 9),
		"varint overflow":         envelope(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"envelope of 4 GiB":       append(frame(1), 0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"bad tag in envelope":     envelope(0x08, 1, 0x07),
		"unknown field truncated": append(bytes.Clone(good), 0xfa, 0x01, 5),
	}
	for name, b := range bad {
		_, err := wire.ParseFrame(b)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	for n := range len(good) {
		_, err := wire.ParseFrame(good[:n])
		require.ErrorIs(t, err, wire.ErrMalformed, "truncated at %d", n)
	}
}

// covers B30, I33.
func TestFieldsOfLaterVersionsArePassedOver(t *testing.T) {
	b := frame(1, "abc")
	b = protowire.AppendTag(b, 31, protowire.BytesType)
	b = protowire.AppendBytes(b, []byte("later"))
	f, err := wire.ParseFrame(b)
	require.NoError(t, err)
	count := 0
	for _, payload := range f.Envelopes() {
		require.Equal(t, "abc", string(payload))
		count++
	}
	require.Equal(t, 1, count)
}

func TestHandshakesRoundTrip(t *testing.T) {
	all := golden()
	h, err := wire.ParseHello(all["hello"])
	require.NoError(t, err)
	require.Equal(t, hello(), h)
	require.True(t, wire.IsHello(all["hello"]))
	require.False(t, wire.IsHello(all["frame"]))

	d, err := wire.ParseDownstream(all["welcome"])
	require.NoError(t, err)
	require.Equal(t, &wire.Welcome{Node: hello().To, Protocol: 3, Known: true, Acknowledged: 6}, d.Welcome)
	d, err = wire.ParseDownstream(all["refusal"])
	require.NoError(t, err)
	require.Equal(t, &transport.RefusedError{Reason: transport.ReasonBlocked, Peer: hello().To, Detail: "why"}, d.Refusal)
	d, err = wire.ParseDownstream(all["receipt"])
	require.NoError(t, err)
	require.Equal(t, wire.Downstream{Acknowledged: 300, Unhandled: []wire.Unhandled{{Service: 4711, Messages: 2}}}, d)
	d, err = wire.ParseDownstream(all["plain"])
	require.NoError(t, err)
	require.Equal(t, wire.Downstream{Acknowledged: 300}, d)
	h, err = wire.ParseHello(all["taker"])
	require.NoError(t, err)
	require.True(t, h.Answers)
	with := append(bytes.Clone(all["answers"]), all["receipt"][len(all["plain"]):]...)
	for name, b := range map[string][]byte{"by hand": all["answers"], "beside unhandled services": with} {
		d, err = wire.ParseDownstream(b)
		require.NoError(t, err, name)
		require.Equal(t, uint64(300), d.Acknowledged, name)
		require.Len(t, d.Answers, 2, name)
		require.Equal(t, wire.Answer{Service: 1, Payload: []byte("heartbeat")}, d.Answers[0], name)
		require.Equal(t, uint16(4711), d.Answers[1].Service, name)
		require.Empty(t, d.Answers[1].Payload, name)
	}
}

// covers B12, B13, B14, B26, B28.
func TestMalformedHandshakesAreErrors(t *testing.T) {
	change := func(f func(*wire.Hello)) []byte {
		h := hello()
		f(&h)
		return wire.AppendHello(nil, h)
	}
	token := func(b []byte) []byte {
		f, _, err := numbers.Next(golden()["hello"])
		require.NoError(t, err)
		return inside(1, f.Bytes, numbers.AppendBytes(nil, 12, b)) // The last one counts.
	}
	host := func(s string) []byte { return change(func(h *wire.Hello) { h.From.Address.Host = s }) }
	bad := map[string][]byte{
		"empty":            nil,
		"a frame":          frame(1, "a"),
		"two of them":      append(golden()["hello"], golden()["hello"]...),
		"hello and frame":  append(golden()["hello"], frame(1, "a")...),
		"no cluster":       change(func(h *wire.Hello) { h.Cluster = "" }),
		"long cluster":     change(func(h *wire.Hello) { h.Cluster = strings.Repeat("c", 256) }),
		"version 0":        change(func(h *wire.Hello) { h.Protocol.Min = 0 }),
		"range upside":     change(func(h *wire.Hello) { h.Protocol.Min = 9 }),
		"lane 0":           change(func(h *wire.Hello) { h.Lane = 0 }),
		"lane 4":           change(func(h *wire.Hello) { h.Lane = 4 }),
		"uid 0":            change(func(h *wire.Hello) { h.From.UID = 0 }),
		"no token":         change(func(h *wire.Hello) { h.Token = wire.Token{} }),
		"a short token":    token(make([]byte, 15)),
		"a long token":     token(make([]byte, 17)),
		"asked in between": change(func(h *wire.Hello) { h.Asked = h.Token }),
		"session with any": change(func(h *wire.Hello) { h.To.UID = 0 }),
		"port 0":           change(func(h *wire.Hello) { h.From.Address.Port = 0 }),
		"to nowhere":       change(func(h *wire.Hello) { h.To.Address = gossip.Address{} }),
		"no host":          host(""),
		"long host":        host(strings.Repeat("h", 256)),
		"unspecified":      host("0.0.0.0"),
		"path":             host("../etc"),
		"nul":              host("a\x00b"),
		"not utf-8":        bytes.Replace(golden()["hello"], []byte("bank"), []byte("ban\xff"), 1),
		"too long":         append(golden()["hello"], append([]byte{0xfa, 0x01, 0x80, 0x80, 0x01}, make([]byte, 16<<10)...)...),
	}
	for name, b := range bad {
		_, err := wire.ParseHello(b)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	for n := range len(golden()["hello"]) {
		if _, err := wire.ParseHello(golden()["hello"][:n]); err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
		}
	}
}

func TestMalformedAnswersAreErrors(t *testing.T) {
	all := golden()
	number := func(n numbers.Number, v uint64) []byte { return numbers.AppendUint(nil, n, v) }
	good := numbers.AppendNode(nil, 1, hello().To)
	bad := map[string][]byte{
		"empty":               nil,
		"welcome and refusal": append(bytes.Clone(all["welcome"]), all["refusal"]...),
		"nobody":              inside(1, number(2, 1)),
		"no uid":              inside(1, inside(1, numbers.AppendString(nil, 1, "a"), number(2, 1)), number(2, 1)),
		"no version":          inside(1, good),
		"service 0":           inside(4, number(2, 1)),
		"too many services":   bytes.Repeat(inside(4, number(1, 1)), 257),
		"truncated":           {0x18},
		"answer to nobody":    append(bytes.Clone(all["plain"]), inside(5, numbers.AppendString(nil, 2, "x"))...),
		"answer of no number": append(number(3, 1), inside(5, number(1, 1<<16))...),
		"answer cut off":      all["answers"][:len(all["answers"])-1],
	}
	for name, b := range bad {
		_, err := wire.ParseDownstream(b)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	later := inside(2, number(1, 99), numbers.AppendString(nil, 3, strings.Repeat("d", 5000)))
	d, err := wire.ParseDownstream(later)
	require.NoError(t, err)
	require.Equal(t, transport.Reason(0), d.Refusal.Reason)
	require.LessOrEqual(t, len(d.Refusal.Detail), 1024)
}

// inside returns a field with a message of some fields.
func inside(n numbers.Number, fields ...[]byte) []byte {
	b, at := numbers.Begin(nil, n)
	return numbers.End(append(b, slices.Concat(fields...)...), at)
}

// A field of a later version in what is said outside of the frames is skipped.
func TestMessagesOutsideOfTheFrames(t *testing.T) {
	said := golden()["said"]
	for name, b := range map[string][]byte{"alone": said, "with a field of a later version": append(bytes.Clone(said), 0xfa, 0x01, 1, 0)} {
		require.True(t, wire.IsSaid(b))
		got, err := wire.ParseSaid(b)
		require.NoError(t, err, name)
		require.Len(t, got, 2, name)
		require.Equal(t, wire.Answer{Service: 1, Payload: []byte("heartbeat")}, got[0], name)
		require.Equal(t, uint16(4711), got[1].Service, name)
	}
	w, err := wire.ParseDownstream(golden()["hearing"])
	require.NoError(t, err)
	require.True(t, w.Welcome.Answers)
	for name, b := range map[string][]byte{
		"cut off":         said[:len(said)-1],
		"to nobody":       {0x22, 2, 0x12, 0},
		"beside a number": append(bytes.Clone(said), frame(1, "a")...),
		"no bytes":        {0x22, 2, 0x08, 1, 0x20, 1},
	} {
		_, err := wire.ParseSaid(b)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	for _, other := range []string{"frame", "hello", "taker"} {
		require.False(t, wire.IsSaid(golden()[other]), other)
	}
	require.False(t, wire.IsSaid(nil))
}

func TestReadingAFrameDoesNotAllocate(t *testing.T) {
	b := frame(1, strings.Split(strings.Repeat("abc ", 100), " ")...)
	total := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		f, err := wire.ParseFrame(b)
		if err != nil {
			panic(err)
		}
		for _, payload := range f.Envelopes() {
			total += len(payload)
		}
	}))
	require.NotZero(t, total)
}

func FuzzFrame(f *testing.F) {
	for _, b := range golden() {
		f.Add(b)
	}
	f.Add(append(frame(1, "a"), 0xfa, 0x01, 1, 0))
	f.Add(append(frame(1), 0x1a, 4, 0x08, 1, 0x12, 9))
	f.Add(append(frame(1), 0x1a, 2, 0x12, 0))
	f.Add(append(frame(1), 0x1a, 5, 0x0a, 3, 1, 2, 3))
	f.Add(append(frame(1), 0x18, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if said, err := wire.ParseSaid(b); err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
		} else {
			var rebuilt []byte
			for _, m := range said {
				rebuilt = wire.AppendSaid(rebuilt, m.Service, m.Payload)
			}
			again, err := wire.ParseSaid(rebuilt)
			require.NoError(t, err)
			require.Len(t, again, len(said))
		}
		parsed, err := wire.ParseFrame(b)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		count := 0
		rebuilt := wire.Begin(nil)
		for service, payload := range parsed.Envelopes() {
			rebuilt, _ = wire.AppendEnvelope(rebuilt, service, func(b []byte) []byte { return append(b, payload...) })
			count++
		}
		wire.SetNumber(rebuilt, parsed.Number)
		require.Equal(t, parsed.Messages, count)
		require.Positive(t, count)
		again, err := wire.ParseFrame(rebuilt)
		require.NoError(t, err)
		require.Equal(t, parsed.Number, again.Number)
		require.Equal(t, count, again.Messages)
	})
}

func FuzzHandshake(f *testing.F) {
	for _, b := range golden() {
		f.Add(b)
	}
	f.Add([]byte{0x0a, 0})
	f.Add([]byte{0x12, 0})
	f.Add([]byte{0x22, 2, 0x08, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := wire.ParseHello(b)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
		} else {
			back, err := wire.ParseHello(wire.AppendHello(nil, h))
			require.NoError(t, err)
			require.Equal(t, h, back)
		}
		d, err := wire.ParseDownstream(b)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
		} else {
			require.False(t, d.Welcome != nil && d.Refusal != nil)
		}
	})
}

func BenchmarkEncodeFrame(b *testing.B) {
	payload := bytes.Repeat([]byte{1}, 64)
	encode := func(b []byte) []byte { return append(b, payload...) }
	buf := make([]byte, 0, 128<<10)
	b.ReportAllocs()
	b.SetBytes(64 * 64)
	for b.Loop() {
		buf = wire.Begin(buf[:0])
		for range 64 {
			buf, _ = wire.AppendEnvelope(buf, 3, encode)
		}
		wire.SetNumber(buf, 1)
	}
}

func BenchmarkDecodeFrame(b *testing.B) {
	payloads := make([]string, 64)
	for i := range payloads {
		payloads[i] = strings.Repeat("x", 64)
	}
	buf := frame(1, payloads...)
	b.ReportAllocs()
	b.SetBytes(64 * 64)
	total := 0
	for b.Loop() {
		f, err := wire.ParseFrame(buf)
		if err != nil {
			b.Fatal(err)
		}
		for _, payload := range f.Envelopes() {
			total += len(payload)
		}
	}
}

// The detail of a refusal may hold bytes of a stranger. It is sent without the bytes
// that are no text, since a refusal that cannot be encoded would end the connection
// without a reason.
func TestRefusalWithoutTextIsSent(t *testing.T) {
	self := gossip.NodeID{Address: gossip.Address{Host: "a", Port: 1}, UID: 1}
	d, err := wire.ParseDownstream(wire.AppendRefusal(nil, self, &transport.RefusedError{Reason: transport.ReasonMalformed, Detail: "cluster \xff"}))
	require.NoError(t, err)
	require.Equal(t, "cluster ", d.Refusal.Detail)
}
