// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/client"
	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// Who may not ask costs a node next to nothing, and who may costs it no more than the bounds say: what is held is
// counted in this process, by the test of one side and the gateway of the other. The tests that count memory come first
// and run alone. Peers here speak HTTP/2 frame by frame ([peer]), so that a message can be announced and not sent.

// peer is one end of a connection of HTTP/2.
type peer struct {
	conn  net.Conn
	fr    *http2.Framer
	heads bytes.Buffer
	enc   *hpack.Encoder

	mu       sync.Mutex
	statuses map[uint32]string // The status of gRPC of each call that has ended.
	windows  map[uint32]int64  // How much a call may send, beyond what its first window allows.
	pongs    int
	news     chan struct{} // Has a token when the node has said something. Capacity one.
	ended    chan struct{} // Closed when the connection is.
}

// dialPeer connects and says that it speaks HTTP/2.
func dialPeer(t *testing.T, address string) *peer {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	p := &peer{conn: conn, fr: http2.NewFramer(conn, conn), statuses: map[uint32]string{}, windows: map[uint32]int64{}, ended: make(chan struct{}), news: make(chan struct{}, 1)}
	p.enc = hpack.NewEncoder(&p.heads)
	p.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, err = io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	require.NoError(t, p.fr.WriteSettings())
	go p.read() // Ends with the connection.
	t.Cleanup(func() {
		_ = conn.Close()
		<-p.ended
	})
	return p
}

// read notes what the node says.
func (p *peer) read() {
	defer close(p.ended)
	for {
		f, err := p.fr.ReadFrame()
		if err != nil {
			return
		}
		p.mu.Lock()
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			for _, h := range f.Fields {
				if h.Name == "grpc-status" {
					p.statuses[f.StreamID] = h.Value
				}
			}
		case *http2.WindowUpdateFrame:
			p.windows[f.StreamID] += int64(f.Increment)
		case *http2.PingFrame:
			p.pongs++
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = p.fr.WriteSettingsAck()
			}
		}
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default: // A token is there already.
		}
	}
}

// begin begins a call, and sends nothing of its message.
func (p *peer) begin(id uint32, method string) error {
	p.heads.Reset()
	head := []string{":method", "POST", ":scheme", "http", ":path", "/quorate.client.v1.Entities/" + method, ":authority", "x", "content-type", "application/grpc", "te", "trailers"}
	for i := 0; i < len(head); i += 2 {
		if err := p.enc.WriteField(hpack.HeaderField{Name: head[i], Value: head[i+1]}); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.heads.Bytes(), EndHeaders: true})
}

// send sends a part of a message.
func (p *peer) send(id uint32, data []byte) error {
	for len(data) > 0 {
		n := min(len(data), 16<<10)
		p.mu.Lock()
		err := p.fr.WriteData(id, false, data[:n])
		p.mu.Unlock()
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// announce is how a message of n bytes begins.
func announce(n int) []byte { return binary.BigEndian.AppendUint32([]byte{0}, uint32(n)) }

// answered waits until the node has taken all that was said, and has said what it says to that at once.
func (p *peer) answered(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	want := p.pongs + 1
	err := p.fr.WritePing(false, [8]byte{})
	p.mu.Unlock()
	require.NoError(t, err)
	patience.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.pongs == want
	}, "the answer to a ping")
}

func (p *peer) status(id uint32) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.statuses[id]
}

// room is how many bytes a call may send beyond its first window.
func (p *peer) room(id uint32) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.windows[id]
}

// heap is how many bytes of memory are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// It is decided who asks before a byte of a message is taken.
func TestWhoAsksIsDecidedBeforeItsMessage(t *testing.T) {
	tokens, _ := tokenFiles(t, token)
	w := start(t, 1, func(c *gateway.Config) { c.TokenFile = tokens })
	p := dialPeer(t, w.nodes[0].Address())
	for i, method := range []string{"Ask", "Tell", "Exchange"} {
		id := uint32(2*i + 1)
		require.NoError(t, p.begin(id, method))
		p.answered(t)
		require.Equal(t, "16", p.status(id), "%s is refused as unauthenticated", method)
	}
	require.NoError(t, p.begin(9, "Nothing"))
	patience.Eventually(t, func() bool { return p.status(9) == "12" }, "there is no such call")
	require.EqualValues(t, 3, w.nodes[0].Stats().Refused)
}

// strangersBytes is what all strangers together may cost a node.
const strangersBytes = 64 << 20

// Strangers that announce messages of the largest size, and send all of them but the last byte, cost nothing.
func TestStrangersCostANodeLittle(t *testing.T) {
	tokens, _ := tokenFiles(t, token)
	w := start(t, 1, func(c *gateway.Config) { c.TokenFile = tokens })
	before := heap()
	var waits sync.WaitGroup
	hold(t, w.nodes[0].Address(), 4, &waits)
	waits.Wait()
	held := heap() - before
	t.Logf("4 connections with 100 calls each of %d bytes hold %d KiB", hostileBytes, held>>10)
	require.Less(t, held, int64(strangersBytes))
}

// hostileBytes is the size of the messages that hostile peers announce: the largest that a gateway takes has been 4
// MiB.
const hostileBytes = 1 << 20

// hold has peers send 100 calls each, all but the last byte of each message, as far as they may.
func hold(t *testing.T, address string, peers int, waits *sync.WaitGroup) {
	t.Helper()
	for range peers {
		p := dialPeer(t, address)
		waits.Go(func() {
			part := make([]byte, 16<<10)
			for i := range 100 {
				id := uint32(2*i + 1)
				if p.begin(id, "Ask") != nil || p.send(id, announce(hostileBytes)) != nil {
					return
				}
				deadline := time.Now().Add(200 * time.Millisecond) // It is refused, or may send the rest.
				for p.room(id) == 0 && p.status(id) == "" && time.Now().Before(deadline) {
					runtime.Gosched()
				}
				for sent := 0; sent+len(part) < hostileBytes && p.status(id) == ""; sent += len(part) {
					if p.send(id, part) != nil {
						return
					}
				}
			}
		})
	}
}

// Clients that announce and do not send hold as many bytes as the bounds say, all of them together; the others go on.
func TestWhatArrivesIsBounded(t *testing.T) {
	w := start(t, 1, func(c *gateway.Config) { c.MaxBytes = 8 << 20 })
	before := heap()
	var waits sync.WaitGroup
	hold(t, w.nodes[0].Address(), 8, &waits)
	waits.Wait()
	held := heap() - before
	t.Logf("8 clients with 100 calls each of %d bytes hold %d KiB", hostileBytes, held>>10)
	require.Less(t, held, int64(48<<20))
	require.LessOrEqual(t, w.nodes[0].Stats().Arriving, 8<<20)
	require.Positive(t, w.nodes[0].Stats().Crowded)
	c := w.ready(nil)
	_, err := c.Ask(patience.Context(t), "echo", "a", []byte("x"))
	require.NoError(t, err)
}

// hostileClientsBytes is what docs/security.md says that sixteen hostile clients of one address cost by messages that
// they do not end, with the default settings.
const hostileClientsBytes = 96 << 20

func TestHostileClientsCostWhatThePageSays(t *testing.T) {
	w := start(t, 1, nil)
	before := heap()
	var waits sync.WaitGroup
	hold(t, w.nodes[0].Address(), 16, &waits)
	most := int64(0)
	ended := make(chan struct{})
	go func() { // Ends with the clients.
		defer close(ended)
		waits.Wait()
	}()
	for measuring := true; measuring; {
		select {
		case <-ended:
			measuring = false
		default:
		}
		most = max(most, heap()-before)
	}
	t.Logf("16 clients with 100 calls each of %d bytes held at most %d MiB, and %d MiB arriving", hostileBytes, most>>20, w.nodes[0].Stats().Arriving>>20)
	require.Less(t, most, int64(hostileClientsBytes))
}

// A message has a time in which it must arrive, and a call one in which its message must.
func TestMessagesMustArrive(t *testing.T) {
	t.Parallel()
	w := start(t, 1, func(c *gateway.Config) { c.ReadTimeout = 200 * time.Millisecond })
	p := dialPeer(t, w.nodes[0].Address())
	require.NoError(t, p.begin(1, "Ask"))
	require.NoError(t, p.begin(3, "Ask"))
	require.NoError(t, p.send(3, append(announce(1000), 1, 2, 3)))
	require.NoError(t, p.begin(5, "Exchange"))
	require.NoError(t, p.begin(7, "Exchange"))
	require.NoError(t, p.send(7, append(announce(1000), 1, 2, 3)))
	over := func() bool { return p.status(1) != "" && p.status(3) != "" && p.status(7) != "" }
	for ended := patience.Expiring(t, 20*time.Second); !over() && ended.Err() == nil; {
		select {
		case <-p.news:
		case <-ended.Done():
		}
	}
	require.True(t, over(), "the times of the calls are over: %v", p.statuses)
	require.Empty(t, p.status(5), "a client may have nothing to ask")
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Late == 3 }, "they are counted")
	require.NoError(t, p.send(5, append(announce(2), 0x0a, 0)))
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Answered == 1 }, "an empty request is answered")
}

// A message above the size of the largest request is refused as soon as it is announced.
func TestLargerMessagesAreRefused(t *testing.T) {
	t.Parallel()
	w := start(t, 1, nil)
	p := dialPeer(t, w.nodes[0].Address())
	for i, method := range []string{"Ask", "Exchange"} {
		id := uint32(2*i + 1)
		require.NoError(t, p.begin(id, method))
		require.NoError(t, p.send(id, announce(1<<20+128<<10)))
		patience.Eventually(t, func() bool { return p.status(id) == "8" }, "%s is refused", method)
	}
}

// A message of requests that are nothing but their tags ends the call at the first beyond the window, and costs no more
// than the requests before that.
func TestRequestsAreReadOneByOne(t *testing.T) {
	w := start(t, 1, nil)
	stream, err := raw(t, w.nodes[0]).Exchange(t.Context())
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	bomb := bytes.Repeat([]byte{0x0a, 0}, 500_000)
	var allocated runtime.MemStats
	runtime.ReadMemStats(&allocated)
	before := allocated.TotalAlloc
	require.NoError(t, stream.SendMsg(rawMessage(t, bomb)))
	for err == nil {
		_, err = stream.Recv()
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	runtime.ReadMemStats(&allocated)
	took := allocated.TotalAlloc - before
	t.Logf("%d bytes allocated for %d", took, len(bomb))
	require.Less(t, took, uint64(8*len(bomb)+4<<20), "client and node together")
}

// rawMessage is a message whose encoding is the given bytes.
func rawMessage(t *testing.T, b []byte) proto.Message {
	t.Helper()
	m := new(clientv1.Welcome) // It knows no field of the bytes, and keeps them.
	m.ProtoReflect().SetUnknown(b)
	got, err := proto.Marshal(m)
	require.NoError(t, err)
	require.Len(t, got, len(b))
	return m
}

// busyPeers keep connections that are opened again when they are closed, each with one byte a second, until the
// test ends.
func busyPeers(t *testing.T, address string, n int, first byte, each time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	var begun sync.WaitGroup
	begun.Add(n)
	for range n {
		all.Go(func() {
			met := sync.OnceFunc(begun.Done)
			defer met()
			for ctx.Err() == nil {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				for {
					_, err = conn.Write([]byte{first})
					met()
					if err != nil {
						break
					}
					_ = conn.SetReadDeadline(time.Now().Add(each)) //quorate:realtime It is how often something is sent.
					if _, err := conn.Read(make([]byte, 64)); err != nil && !isTimeout(err) {
						break
					}
				}
				stop()
				_ = conn.Close()
			}
		})
	}
	begun.Wait()
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error) //nolint:errorlint // As package net returns it.
	return ok && timeout.Timeout()
}

// requireServed has honest clients come one by one, of which 99 of 100 must be served at once.
func requireServed(t *testing.T, w *world, change func(*client.Config)) {
	t.Helper()
	const clients = 100
	_, err := w.ready(change).Ask(patience.Context(t), "echo", "a", []byte("x"))
	require.NoError(t, err, "the shard has a home")
	served := 0
	for i := range clients {
		cfg := client.Default()
		cfg.Addresses, cfg.RetryInterval = w.addresses(), time.Minute // One try.
		if change != nil {
			change(&cfg)
		}
		c, err := client.Open(cfg, client.WithLogger(quiet()))
		require.NoError(t, err)
		if _, err := c.Ask(patience.Expiring(t, 2*time.Second), "echo", "a", []byte("x")); err == nil {
			served++
		} else {
			t.Logf("client %d: %v", i, err)
		}
		require.NoError(t, c.Close())
	}
	t.Logf("%d of %d are served", served, clients)
	require.GreaterOrEqual(t, served, 99)
}

// Connections that say a byte a second, more than there are places, keep nobody out.
func TestConnectionsThatSayLittleGiveWay(t *testing.T) {
	t.Parallel()
	w := start(t, 1, nil)
	busyPeers(t, w.nodes[0].Address(), 300, 'P', time.Second)
	requireServed(t, w, nil)
}

// Nor do those that begin a handshake of TLS.
func TestHandshakesThatDoNotGoOnGiveWay(t *testing.T) {
	t.Parallel()
	authority := mutualtest.NewAuthority(t, "clients")
	files := authority.Write(t, t.TempDir(), authority.Issue(t, mutualtest.Leaf{}))
	w := start(t, 1, func(c *gateway.Config) { c.TLS = files })
	busyPeers(t, w.nodes[0].Address(), 320, 0x16, 5*time.Second)
	own := authority.Write(t, t.TempDir(), authority.Issue(t, mutualtest.Leaf{}))
	requireServed(t, w, func(c *client.Config) {
		c.TLS = client.TLSFiles{Certificate: own.Certificate, Key: own.Key, Authorities: files.Authorities}
	})
}

// Nor do those that come and go.
func TestConnectionsThatComeAndGoKeepNobodyOut(t *testing.T) {
	t.Parallel()
	w := start(t, 1, nil)
	var came atomic.Int32
	var all sync.WaitGroup
	defer all.Wait()
	for range 8 {
		all.Go(func() {
			for came.Add(1) <= 10_000 {
				conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", w.nodes[0].Address())
				if err != nil {
					continue
				}
				_, _ = conn.Write([]byte("PRI"))
				_ = conn.Close()
			}
		})
	}
	requireServed(t, w, nil)
}

// Places of clients are never taken from them: who comes when there is none hears so.
func TestClientsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	w := start(t, 1, func(c *gateway.Config) { c.MaxConnections = 2 })
	first, second := w.ready(nil), w.ready(nil)
	busyPeers(t, w.nodes[0].Address(), 50, 'P', time.Second)
	third := w.client(nil)
	_, err := third.Ask(patience.Expiring(t, time.Second), "echo", "a", nil)
	require.ErrorIs(t, err, client.ErrNotDelivered)
	for _, c := range []*client.Client{first, second} {
		_, err := c.Ask(patience.Context(t), "echo", "a", []byte("x"))
		require.NoError(t, err)
	}
	require.Equal(t, 2, w.nodes[0].Stats().Connections)
}
