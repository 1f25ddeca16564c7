// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
	"github.com/quorate/quorate/transport/session"
)

// What comes first on a connection, then messages of all sizes there and back, and bytes
// that are refused: too large, cut off, or announced and never sent.

// stream is a connection that reads from and writes to what it is given.
type stream struct {
	net.Conn
	io.Reader
	io.Writer
}

func (s stream) Read(b []byte) (int, error)  { return s.Reader.Read(b) }
func (s stream) Write(b []byte) (int, error) { return s.Writer.Write(b) }

// pipe returns a pipe that reads from r and writes to w.
func pipe(r io.Reader, w io.Writer, limit int) *Pipe {
	c := stream{Reader: r, Writer: w}
	return New(Config{Conn: c, Out: c, Limit: limit, Buffer: 1 << 10, Pool: new(wire.Pool), Close: func(bool) {}})
}

func TestAnOpenerIsRecognizedByItsFirstBytes(t *testing.T) {
	for what, c := range map[string]struct {
		said string
		want OpenerProtocol
		fail bool
	}{
		"the preface":           {Preface + "more", Lane, false},
		"that of gRPC":          {http2Preface, HTTP2, false},
		"TLS":                   {"\x16\x03\x01", TLS, false},
		"another protocol":      {"GET / HTTP/1.1\r\n", Unknown, false},
		"another version":       {strings.Replace(Preface, "/1", "/2", 1), Unknown, false},
		"half a preface":        {Preface[:11], Unknown, true},
		"nothing":               {"", Unknown, true},
		"a preface with a typo": {Preface[:23] + "x", Unknown, false},
	} {
		for how, r := range map[string]io.Reader{"at once": strings.NewReader(c.said), "byte by byte": iotest.OneByteReader(strings.NewReader(c.said))} {
			got, head, err := Recognize(r)
			require.Equal(t, c.want, got, "%s %s", what, how)
			require.Equal(t, c.fail, err != nil, "%s %s: %v", what, how, err)
			require.True(t, strings.HasPrefix(c.said, string(head)), "%s %s", what, how)
			rest, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, c.said, string(head)+string(rest), "%s %s: not a byte is lost", what, how)
		}
	}
}

// The preface has the length of that of HTTP/2: a server that reads so many bytes has
// read all of it.
func TestThePrefacesAreOfOneLength(t *testing.T) { require.Len(t, Preface, len(http2Preface)) }

func TestTheAnswerToAPrefaceTellsWhetherTheWireIsSpoken(t *testing.T) {
	for answer, want := range map[string]bool{Preface: true, "\x00\x00\x06\x04\x00": false} {
		var said bytes.Buffer
		spoken, err := ExchangePreface(stream{Reader: strings.NewReader(answer), Writer: &said})
		require.NoError(t, err)
		require.Equal(t, want, spoken)
		require.Equal(t, Preface, said.String())
	}
	_, err := ExchangePreface(stream{Reader: strings.NewReader(""), Writer: io.Discard})
	require.ErrorIs(t, err, io.EOF)
	_, err = ExchangePreface(stream{Reader: strings.NewReader(""), Writer: failing{}})
	require.ErrorIs(t, err, net.ErrClosed)
}

// failing is a writer of a connection that is closed.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, net.ErrClosed }

// Messages of every size come as they were sent, over TCP, where the large ones are not
// copied, and over other connections.
func TestMessagesOfAllSizesArrive(t *testing.T) {
	sizes := []int{0, 1, 9, maxCopied - lengthBytes - 1, maxCopied - lengthBytes, maxCopied - lengthBytes + 1, maxCopied, 3 * maxCopied, 200 << 10, 1 << 20}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	out, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	in, err := l.Accept()
	require.NoError(t, err)
	r, w := io.Pipe()
	for _, c := range []struct{ from, to *Pipe }{
		{New(Config{Conn: out, Out: out, Pool: new(wire.Pool), Close: func(bool) { _ = out.Close() }}), pipe(in, io.Discard, 1<<20)},
		{pipe(nil, w, 0), pipe(iotest.HalfReader(r), io.Discard, 1<<20)},
	} {
		sent := make(chan error, 1)
		go func() { // Owner: the test, which waits for what it sends.
			var pool wire.Pool
			for i, n := range sizes {
				b := pool.Get()
				b.B = append(b.B, bytes.Repeat([]byte{byte(i + 1)}, n)...)
				if err := c.from.Send(b); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		for i, n := range sizes {
			var got session.Incoming
			require.NoError(t, c.to.Recv(&got))
			require.Equal(t, bytes.Repeat([]byte{byte(i + 1)}, n), append([]byte{}, got.Bytes...), "%d bytes", n)
			got.Free()
		}
		require.NoError(t, <-sent)
		c.from.Close()
	}
	require.NoError(t, in.Close())
}

// A message that a sender may not send is refused by its length alone.
func TestLengthsAreCheckedBeforeBytesAreRead(t *testing.T) {
	announced := func(n uint32) io.Reader {
		return io.MultiReader(bytes.NewReader(binary.LittleEndian.AppendUint32(nil, n)), iotest.ErrReader(errors.New("it was read")))
	}
	var in session.Incoming
	for _, n := range []uint32{1<<20 + 1, 1 << 31, 1<<32 - 1} {
		require.ErrorIs(t, pipe(announced(n), nil, 1<<20).Recv(&in), session.ErrOversize)
	}
	in.Large = func() bool { return false }
	err := pipe(announced(transport.StrangerFrameBytes+1), nil, 1<<20).Recv(&in)
	require.ErrorIs(t, err, session.ErrOversize)
	require.ErrorContains(t, err, "who is no member here")
	in.Large = func() bool { return true }
	require.ErrorContains(t, pipe(announced(transport.StrangerFrameBytes+1), nil, 1<<20).Recv(&in), "it was read")
}

// Who announces much and sends little has little memory taken.
func TestMemoryIsTakenAsBytesCome(t *testing.T) {
	const announced, sent, callers = 64 << 20, 3 << 10, 64 // More is sent than a new buffer holds.
	said := append(binary.LittleEndian.AppendUint32(nil, announced), make([]byte, sent)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range callers {
		var in session.Incoming
		require.ErrorIs(t, pipe(bytes.NewReader(said), nil, announced).Recv(&in), io.ErrUnexpectedEOF)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(callers*64<<10))
}

// A pipe knows, when it is closed, whether its other end is gone.
func TestWhoClosesHearsWhetherTheOtherEndIsGone(t *testing.T) {
	for said, want := range map[string]bool{"\x01\x00\x00\x00x": false, "\x02\x00\x00\x00x": true, "\x02\x00": true, "": true, "\xff\xff\xff\xff": false} {
		var closed []bool
		c := stream{Reader: strings.NewReader(said)}
		p := New(Config{Conn: c, Limit: 8, Buffer: 16, Pool: new(wire.Pool), Close: func(gone bool) { closed = append(closed, gone) }})
		var in session.Incoming
		err := p.Recv(&in)
		require.Equal(t, want, errors.Is(err, ErrBroken), "%q: %v", said, err)
		p.Close()
		p.Close()
		require.Equal(t, []bool{want}, closed, "%q", said)
	}
	require.ErrorIs(t, pipe(nil, failing{}, 0).Send(new(wire.Pool).Get()), ErrBroken)
}

// Whatever comes is taken as messages within the limit or ends the pipe, and what is taken
// is what was sent, however the bytes are cut into reads.
func FuzzRecv(f *testing.F) {
	const limit = 4 << 10
	message := func(n int) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(n)), bytes.Repeat([]byte{7}, n)...)
	}
	f.Add([]byte{})
	f.Add([]byte{1, 0})
	f.Add(message(0))
	f.Add(append(message(3), message(3<<10)...))
	f.Add(message(limit))
	f.Add(message(limit + 1))
	f.Add(message(100)[:50])
	f.Fuzz(func(t *testing.T, said []byte) {
		var ends []string
		for _, r := range []io.Reader{bytes.NewReader(said), iotest.HalfReader(bytes.NewReader(said)), iotest.DataErrReader(bytes.NewReader(said))} {
			p, at := pipe(r, nil, limit), 0
			var end error
			for end == nil {
				var in session.Incoming
				if end = p.Recv(&in); end != nil {
					break
				}
				n := len(in.Bytes)
				if n > limit || !bytes.Equal(in.Bytes, said[at+lengthBytes:at+lengthBytes+n]) {
					t.Fatalf("%d bytes at %d are not those that were sent", n, at)
				}
				at += lengthBytes + n
				in.Free()
			}
			if !errors.Is(end, ErrBroken) && !errors.Is(end, session.ErrOversize) {
				t.Fatalf("ended with %v", end)
			}
			ends = append(ends, fmt.Sprintf("%d: %v", at, end))
		}
		if ends[0] != ends[1] || ends[0] != ends[2] {
			t.Fatalf("it depends on how the bytes come: %q", ends)
		}
	})
}

// Recognize takes no byte that it does not return, and never calls anything but the
// preface a lane.
func FuzzRecognize(f *testing.F) {
	for _, s := range []string{"", Preface, Preface + "x", Preface[:5], http2Preface, "\x16\x03\x01", "P", "q"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		r := bytes.NewReader(said)
		got, head, err := Recognize(iotest.HalfReader(r))
		if len(head)+r.Len() != len(said) || !bytes.HasPrefix(said, head) {
			t.Fatalf("%q taken of %q, %d bytes left", head, said, r.Len())
		}
		if (got == Lane) != bytes.HasPrefix(said, []byte(Preface)) {
			t.Fatalf("%q is recognized as %d, %v", said, got, err)
		}
	})
}
