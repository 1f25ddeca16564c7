// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/client"
	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// raw speaks the protocol without module client, as a program in another language does.
func raw(t *testing.T, n *node) clientv1.EntitiesClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+n.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return clientv1.NewEntitiesClient(conn)
}

// One request a call needs no client but the generated code.
func TestSingleCalls(t *testing.T) {
	t.Parallel()
	w := start(t, 1, nil)
	c := raw(t, w.nodes[0])
	out, err := c.Ask(t.Context(), &clientv1.Request{Kind: "echo", Entity: "a", Payload: []byte("x")})
	require.NoError(t, err)
	require.Equal(t, clientv1.Code_CODE_OK, out.GetCode())
	require.Equal(t, "a x 127.0.0.1:7946", string(out.GetPayload()))
	out, err = c.Tell(t.Context(), &clientv1.Request{Kind: "echo", Entity: "a"})
	require.NoError(t, err)
	require.Equal(t, clientv1.Code_CODE_OK, out.GetCode())
	for _, r := range []*clientv1.Request{
		{},
		{Kind: "hidden", Entity: "a"},
		{Kind: "echo"},
		{Kind: "echo", Entity: strings.Repeat("x", 600)},
		{Kind: "echo", Entity: "a", Payload: make([]byte, 1<<20+1)},
		{Kind: "echo", Entity: "a", Traceparent: strings.Repeat("x", 600)},
	} {
		out, err := c.Ask(t.Context(), r)
		require.NoError(t, err)
		require.Contains(t, []clientv1.Code{clientv1.Code_CODE_INVALID, clientv1.Code_CODE_UNKNOWN_KIND}, out.GetCode(), "%.80s", r.String())
	}
	out, err = c.Ask(t.Context(), &clientv1.Request{Kind: "echo", Entity: "a", TimeoutMicros: 1})
	require.NoError(t, err)
	require.NotEqual(t, clientv1.Code_CODE_ENTITY_FAILED, out.GetCode())
	out, err = c.Ask(patience.Expiring(t, 50*time.Millisecond), &clientv1.Request{Kind: "echo", Entity: "a", Payload: []byte("wait")})
	if err != nil { // The gateway knows the deadline too, and either end may find first that it is over.
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	} else {
		require.Contains(t, []clientv1.Code{clientv1.Code_CODE_UNKNOWN_OUTCOME, clientv1.Code_CODE_EXPIRED}, out.GetCode())
	}
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Requests == 0 }, "the request is over")
}

// Who has more requests under way than the welcome says is closed.
func TestClientsKeepToTheirWindow(t *testing.T) {
	t.Parallel()
	w := start(t, 1, func(c *gateway.Config) { c.Window = 2 })
	stream, err := raw(t, w.nodes[0]).Exchange(t.Context())
	require.NoError(t, err)
	first, err := stream.Recv()
	require.NoError(t, err)
	require.EqualValues(t, 2, first.GetWelcome().GetWindow())
	require.EqualValues(t, 1<<20, first.GetWelcome().GetPayloadBytes())
	require.Equal(t, "127.0.0.1:7946", first.GetWelcome().GetNode())
	var many clientv1.Requests
	for i := range 3 {
		many.Requests = append(many.Requests, &clientv1.Request{Id: uint64(i), Kind: "echo", Entity: "a", Payload: []byte("wait"), TimeoutMicros: 500_000})
	}
	require.NoError(t, stream.Send(&many))
	for err == nil {
		_, err = stream.Recv()
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Requests == 0 && w.nodes[0].Stats().Calls == 0 }, "nothing is kept of it")
}

// A client that sends no more gets what it has asked.
func TestClientsMayEndTheirSide(t *testing.T) {
	t.Parallel()
	w := start(t, 1, nil)
	stream, err := raw(t, w.nodes[0]).Exchange(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&clientv1.Requests{Requests: []*clientv1.Request{{Id: 7, Kind: "echo", Entity: "a"}}}))
	require.NoError(t, stream.CloseSend())
	var got []*clientv1.Outcome
	for err == nil {
		var out *clientv1.Outcomes
		out, err = stream.Recv()
		got = append(got, out.GetOutcomes()...)
	}
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, got, 1)
	require.EqualValues(t, 7, got[0].GetId())
}

// A client that never reads is closed, after its time or at its bound, counted, and the others notice nothing.
func TestClientsThatNeverReadAreClosed(t *testing.T) {
	t.Parallel()
	requireClosedUnread(t, 1, 200, func(c *gateway.Config) { c.WriteTimeout = 300 * time.Millisecond })
}

func TestClientsThatLeaveTooMuchUnreadAreClosed(t *testing.T) {
	t.Parallel()
	// Replies count as unread once they are bytes, as those of another node are. They are few enough for its lane.
	requireClosedUnread(t, 2, 14, func(c *gateway.Config) { c.WriteTimeout, c.UnreadBytes = 5*time.Minute, 64<<10 })
}

func requireClosedUnread(t *testing.T, nodes, requests int, change func(*gateway.Config)) {
	t.Helper()
	w := start(t, nodes, change)
	stream, err := raw(t, w.nodes[0]).Exchange(t.Context())
	require.NoError(t, err)
	for i := range requests {
		r := &clientv1.Request{Id: uint64(i), Kind: "echo", Entity: fmt.Sprint(i), Payload: []byte("large")}
		if stream.Send(&clientv1.Requests{Requests: []*clientv1.Request{r}}) != nil {
			break // It is closed already.
		}
	}
	other := w.ready(nil)
	_, err = other.Ask(patience.Context(t), "echo", "b", []byte("x"))
	require.NoError(t, err)
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Unread == 1 }, "it is closed")
	patience.Eventually(t, func() bool { return w.nodes[0].Stats().Requests == 0 }, "nothing is kept of it")
}

// What is no gRPC is closed.
func TestGarbageIsClosed(t *testing.T) {
	t.Parallel()
	w := start(t, 1, nil)
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", strings.Repeat("\xff", 1000), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\x7f", 5000)} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", w.nodes[0].Address())
		require.NoError(t, err)
		_, err = conn.Write([]byte(text))
		require.NoError(t, err)
		patience.Bound(t, conn)
		_, err = io.Copy(io.Discard, conn)
		require.NotErrorIs(t, err, net.ErrClosed, "the node closes the connection")
		require.NoError(t, conn.Close())
	}
	// A message that is none of the protocol's: as bytes that no message begins with.
	c := w.ready(nil)
	_, err := c.Ask(patience.Context(t), "echo", "a", []byte("x"))
	require.NoError(t, err)
}

const token = "correct-horse-battery-staple"

// tokenFiles writes a file of tokens for nodes, and one with a token for clients.
func tokenFiles(t *testing.T, given string) (tokens, mine string) {
	t.Helper()
	dir := t.TempDir()
	tokens, mine = filepath.Join(dir, "tokens"), filepath.Join(dir, "mine")
	require.NoError(t, os.WriteFile(tokens, fmt.Appendf(nil, "shop never %x\n", sha256.Sum256([]byte(token))), 0o600))
	require.NoError(t, os.WriteFile(mine, []byte(given+"\n"), 0o600))
	return tokens, mine
}

func TestTokensMakeClients(t *testing.T) {
	t.Parallel()
	tokens, mine := tokenFiles(t, token)
	w := start(t, 1, func(c *gateway.Config) { c.TokenFile = tokens })
	ask := func(c *client.Client) error {
		_, err := c.Ask(patience.Context(t), "echo", "a", []byte("x"))
		return err
	}
	with := func(file string) *client.Client {
		return w.client(func(c *client.Config) { c.TokenFile = file })
	}
	good := with(mine)
	require.NoError(t, ask(good))
	_, wrong := tokenFiles(t, "wrong")
	require.ErrorIs(t, ask(with(wrong)), client.ErrRefused)
	require.ErrorIs(t, ask(w.client(nil)), client.ErrRefused)
	require.Positive(t, w.nodes[0].Stats().Refused)
	_, err := raw(t, w.nodes[0]).Ask(t.Context(), &clientv1.Request{Kind: "echo", Entity: "a"})
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Basic x")
	_, err = raw(t, w.nodes[0]).Ask(ctx, &clientv1.Request{Kind: "echo", Entity: "a"})
	require.Equal(t, codes.Unauthenticated, status.Code(err))

	// A token that is taken out counts no more, also for who is connected.
	require.NoError(t, os.WriteFile(tokens, nil, 0o600))
	patience.Eventually(t, func() bool { return errors.Is(ask(good), client.ErrRefused) }, "the client is refused")
}

func TestCertificatesMakeClients(t *testing.T) {
	t.Parallel()
	authority, other := mutualtest.NewAuthority(t, "clients"), mutualtest.NewAuthority(t, "others")
	files := authority.Write(t, t.TempDir(), authority.Issue(t, mutualtest.Leaf{}))
	const uri = "quorate://test/client"
	w := start(t, 1, func(c *gateway.Config) { c.TLS, c.CertificateURI = files, uri })
	ask := func(ctx context.Context, of *mutualtest.Authority, l mutualtest.Leaf) error {
		dir := t.TempDir()
		own := of.Write(t, dir, of.Issue(t, l))
		c := w.client(func(c *client.Config) {
			c.TLS = client.TLSFiles{Certificate: own.Certificate, Key: own.Key, Authorities: files.Authorities}
		})
		_, err := c.Ask(ctx, "echo", "a", []byte("x"))
		return err
	}
	require.NoError(t, ask(patience.Context(t), authority, mutualtest.Leaf{Identities: []string{uri}}))
	require.ErrorIs(t, ask(patience.Context(t), authority, mutualtest.Leaf{}), client.ErrRefused)
	require.ErrorIs(t, ask(patience.Context(t), authority, mutualtest.Leaf{Identities: []string{uri + "s"}}), client.ErrRefused)
	require.ErrorIs(t, ask(patience.Expiring(t, 500*time.Millisecond), other, mutualtest.Leaf{Identities: []string{uri}}), client.ErrNotDelivered)
	require.ErrorIs(t, ask(patience.Expiring(t, 500*time.Millisecond), authority, mutualtest.Leaf{Identities: []string{uri}, From: -2 * time.Hour, Until: -time.Hour}), client.ErrNotDelivered)
	plain := w.client(nil)
	_, err := plain.Ask(patience.Expiring(t, 500*time.Millisecond), "echo", "a", nil)
	require.ErrorIs(t, err, client.ErrNotDelivered)
}

func TestConfigsThatAreRefused(t *testing.T) {
	require.NoError(t, gateway.Default().Validate())
	var none sharding.Host
	s, err := gateway.Serve(t.Context(), gateway.Default(), none)
	require.NoError(t, err, "by default nothing listens")
	require.Empty(t, s.Address())
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	for want, change := range map[string]func(*gateway.Config){
		"address: \"x\" is not":               func(c *gateway.Config) { c.Address = "x" },
		"address: \"99999\" is not a port":    func(c *gateway.Config) { c.Address = "127.0.0.1:99999" },
		"is not on the loopback interface":    func(c *gateway.Config) { c.Address = ":7947" },
		"tls: must be set":                    func(c *gateway.Config) { c.Address, c.AllowRemote = ":7947", true },
		"kinds: names no kind":                func(c *gateway.Config) { c.Address, c.Kinds = "127.0.0.1:0", nil },
		"kinds: has * beside names":           func(c *gateway.Config) { c.Kinds = []string{"a", "*"} },
		"kinds: has \"a\" twice":              func(c *gateway.Config) { c.Kinds = []string{"a", "a"} },
		"kinds: has an empty name":            func(c *gateway.Config) { c.Kinds = []string{""} },
		"certificate-uri: is set without tls": func(c *gateway.Config) { c.CertificateURI = "quorate://bank/client" },
		"certificate-uri: \"x\" is no URI":    func(c *gateway.Config) { c.CertificateURI = "x" },
		"token-file: is set, and nothing":     func(c *gateway.Config) { c.TokenFile = "t" },
		"tls: certificate, key and":           func(c *gateway.Config) { c.TLS.Key = "k" },
		"window: 0 is not from":               func(c *gateway.Config) { c.Window = 0 },
		"max-requests: 0 is not from":         func(c *gateway.Config) { c.MaxRequests = 0 },
		"max-bytes: 1 is not from":            func(c *gateway.Config) { c.MaxBytes = 1 },
		"unread-bytes: 1 is not from":         func(c *gateway.Config) { c.UnreadBytes = 1 },
		"max-connections: 0 is not":           func(c *gateway.Config) { c.MaxConnections = 0 },
		"write-timeout: 0s is not from":       func(c *gateway.Config) { c.WriteTimeout = 0 },
		"read-timeout: 0s is not from":        func(c *gateway.Config) { c.ReadTimeout = 0 },
	} {
		cfg := gateway.Default()
		cfg.Kinds = []string{"a"}
		change(&cfg)
		require.ErrorContains(t, cfg.Validate(), want)
	}
	cfg := gateway.Default()
	cfg.Kinds, cfg.Address, cfg.TokenFile = []string{"a"}, "127.0.0.1:0", filepath.Join(t.TempDir(), "none")
	_, err = gateway.Serve(t.Context(), cfg, none)
	require.ErrorContains(t, err, "token-file")
	cfg.TokenFile, cfg.Address, cfg.AllowRemote, cfg.AllowInsecure = "", "0.0.0.0:0", true, true
	require.NoError(t, cfg.Validate(), "whoever says so twice")
}
