// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// listen takes a free port.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// overGRPC is the configuration of a lone node over TCP, at a free port.
func overGRPC(t *testing.T) membership.Config {
	t.Helper()
	patience.Watch(t)
	l := listen(t)
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address = "test", l.Addr().String()
	cfg.Membership.SeedNodes = []string{cfg.Node.Address}
	require.NoError(t, l.Close())
	return cfg
}

// A lone node over TCP comes up at once and ends without leaving a goroutine,
// which TestMain looks for.
func TestALoneNodeOverTCP(t *testing.T) {
	n, err := membership.Start(t.Context(), overGRPC(t), membership.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	require.NoError(t, n.AwaitUp(t.Context()))
	require.NoError(t, n.Leave(t.Context()))
	require.NoError(t, n.Close())
}

// covers F38: what cannot start says why, with the address, and leaves nothing
// behind.
func TestWhatCannotStartSaysWhy(t *testing.T) {
	taken := listen(t).Addr().String()
	tests := map[string]struct {
		change func(*membership.Config)
		wants  []string
	}{
		"port in use":     {func(c *membership.Config) { c.Node.Address = taken }, []string{taken, "in use"}},
		"foreign address": {func(c *membership.Config) { c.Node.Address, c.Transport.AllowInsecure = "192.0.2.1:7946", true }, []string{"192.0.2.1:7946"}},
		"no TLS beyond loopback": {
			func(c *membership.Config) { c.Node.Address = "192.0.2.1:7946" }, []string{"192.0.2.1:7946", "transport.tls", "allow-insecure"},
		},
		"bad bind": {func(c *membership.Config) { c.Transport.Bind = "here" }, []string{"transport.bind", "here"}},
		"certificate missing": {
			func(c *membership.Config) {
				c.Transport.TLS = transport.TLSFiles{Certificate: "/none/c", Key: "/none/k", Authorities: "/none/a"}
			},
			[]string{"/none/"},
		},
		"wildcard":         {func(c *membership.Config) { c.Node.Address = "0.0.0.0:7946" }, []string{"node.address", "0.0.0.0"}},
		"no port":          {func(c *membership.Config) { c.Node.Address = "localhost" }, []string{"node.address", "localhost"}},
		"no address":       {func(c *membership.Config) { c.Node.Address = "" }, []string{"node.address", "must be set"}},
		"no name":          {func(c *membership.Config) { c.Cluster.Name = "" }, []string{"cluster.name", "must be set"}},
		"bad seed":         {func(c *membership.Config) { c.Membership.SeedNodes = []string{"a", "b:1", ":0"} }, []string{"membership.seed-nodes", `"a"`}},
		"bad role":         {func(c *membership.Config) { c.Node.Roles = []string{"a\nb"} }, []string{"node.roles"}},
		"empty role":       {func(c *membership.Config) { c.Node.Roles = []string{""} }, []string{"node.roles", "empty"}},
		"version as text":  {func(c *membership.Config) { c.Node.AppVersion = "build-9" }, []string{"node.app-version", "build-9", "numbers"}},
		"threshold":        {func(c *membership.Config) { c.Membership.FailureDetector.Threshold = -1 }, []string{"membership.failure-detector.threshold: "}},
		"window":           {func(c *membership.Config) { c.Transport.WindowBytes = 1 }, []string{"transport.window-bytes: "}},
		"fence":            {func(c *membership.Config) { c.Membership.Fence = 0 }, []string{"membership.fence: "}},
		"downing":          {func(c *membership.Config) { c.Downing.DownOwnSideAfter = 0 }, []string{"downing.down-own-side-after: "}},
		"unknown strategy": {func(c *membership.Config) { c.Downing.Strategy = "coin" }, []string{"coin"}},
		"stable-after below the fence": {
			func(c *membership.Config) { c.Downing.StableAfter = 1 }, []string{"downing.stable-after: ", "fence"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := overGRPC(t)
			test.change(&cfg)
			_, err := membership.Start(t.Context(), cfg)
			for _, want := range test.wants {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// Every fault is in the one error, each with the method that names its key.
func TestAllFaultsAreReportedTogether(t *testing.T) {
	cfg := membership.Default()
	cfg.Membership.FailureDetector.Threshold, cfg.Membership.FailureDetector.MaxSampleSize = -1, 0
	cfg.Transport.WindowBytes, cfg.Downing.DownOwnSideAfter = 1, 0
	var keys []string
	var look func(error)
	look = func(err error) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				look(e)
			}
			return
		}
		keys = append(keys, err.(interface{ Field() string }).Field())
	}
	look(cfg.Validate())
	require.Equal(t, []string{
		"cluster.name", "node.address", "membership.failure-detector.threshold", "membership.failure-detector.max-sample-size",
		"transport.window-bytes", "downing.down-own-side-after",
	}, keys)
}

// refusals returns how many connections to n were refused for a reason.
func refusals(n *membership.Node, r transport.Reason) uint64 {
	return n.Stats().Transport.RefusedInbound[r]
}

// Each sort of refusal of one host is logged, not only the first; and each only once in a
// while.
func TestEachSortOfRefusalIsSaid(t *testing.T) {
	ca, dir := mutualtest.NewAuthority(t, "ca"), t.TempDir()
	cfg := overGRPC(t)
	cfg.Transport.TLS = ca.Write(t, dir, ca.Issue(t, mutualtest.Leaf{}))
	cfg.Transport.TLS.Revocations = filepath.Join(dir, "revoked")
	require.NoError(t, os.WriteFile(cfg.Transport.TLS.Revocations, ca.Revoke(t, 1, 99), 0o600))
	log := new(lines)
	n, err := membership.Start(t.Context(), cfg, membership.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	require.NoError(t, err)
	defer func() { _ = n.Close() }()
	revoked, other := ca.Issue(t, mutualtest.Leaf{Serial: 99}), mutualtest.NewAuthority(t, "other").Issue(t, mutualtest.Leaf{})
	for i, certificate := range []tls.Certificate{{}, revoked, other, {}, revoked, other} {
		naked, err := net.Dial("tcp", cfg.Node.Address)
		require.NoError(t, err)
		conn := tls.Client(naked, &tls.Config{
			RootCAs: ca.Pool(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
			// Whatever authorities the node names.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil },
		})
		_ = conn.HandshakeContext(t.Context()) // The refusal comes with the first reading at the latest.
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err)
		require.NoError(t, naked.Close())
		patience.Eventually(t, func() bool { return refusals(n, transport.ReasonCertificate) == uint64(i+1) }, "the refusal is counted")
	}
	require.NoError(t, n.Close())
	require.Equal(t, 1, strings.Count(log.String(), "was revoked"))
	require.Equal(t, 1, strings.Count(log.String(), "unknown authority"))
	require.Equal(t, 3, strings.Count(log.String(), "connection refused"))
}

// A node whose certificate is one for the role edge cannot join as a teller, though
// its own side would let it: the member that it asks dials it back, looks at its
// certificate, and says which one it needs.
//
// covers B26, I32.
func TestARoleNeedsACertificateForIt(t *testing.T) {
	a := mutualtest.NewAuthority(t, "ca")
	first := overGRPC(t)
	first.Transport.RequireIdentity, first.Node.Roles = true, []string{"teller"}
	first.Transport.TLS = a.Write(t, t.TempDir(), a.Issue(t, mutualtest.Leaf{Identities: []string{"quorate://test/teller"}}))
	n, err := membership.Start(t.Context(), first, membership.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { _ = n.Close() }()
	require.NoError(t, n.AwaitUp(t.Context()))

	second := overGRPC(t)
	second.Membership.SeedNodes, second.Node.Roles = first.Membership.SeedNodes, []string{"teller"}
	second.Transport.TLS = a.Write(t, t.TempDir(), a.Issue(t, mutualtest.Leaf{Identities: []string{"quorate://test/edge"}}))
	_, err = membership.Start(t.Context(), second, membership.WithLogger(slog.New(slog.DiscardHandler)))
	require.ErrorContains(t, err, "quorate://test/teller", "an honest node does not start")

	log := new(lines)
	rogue, err := membership.Start(t.Context(), second, membership.WithLogger(slog.New(slog.NewTextHandler(log, nil))),
		membership.WithTransport(func(id transport.Identity, cfg transport.Config, notices func(transport.Notice)) (transport.Transport, error) {
			id.Roles = nil
			return grpc.New(id, cfg, grpc.WithNotices(notices))
		}))
	require.NoError(t, err)
	defer func() { _ = rogue.Close() }()
	patience.Eventually(t, func() bool { return strings.Contains(log.String(), "quorate://test/teller") }, "the refusal is logged")
	require.Len(t, n.State().Members(), 1)
	require.NotZero(t, n.Stats().Transport.RefusedOutbound[transport.ReasonCertificate])
}

// covers F34, I35: with TLS, a client without a certificate and one without TLS
// are refused, counted and logged with a reason; two nodes with certificates
// form a cluster.
func TestOnlyACertificateOpensTheDoor(t *testing.T) {
	a := mutualtest.NewAuthority(t, "ca")
	files := a.Write(t, t.TempDir(), a.Issue(t, mutualtest.Leaf{}))
	first := overGRPC(t)
	first.Transport.TLS = files
	log := new(lines)
	n, err := membership.Start(t.Context(), first, membership.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	require.NoError(t, err)
	defer func() { _ = n.Close() }()

	second := overGRPC(t)
	second.Transport.TLS, second.Membership.SeedNodes = files, first.Membership.SeedNodes
	m, err := membership.Start(t.Context(), second, membership.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { _ = m.Close() }()
	ctx := patience.Context(t)
	require.NoError(t, m.AwaitUp(ctx))

	naked, err := net.Dial("tcp", first.Node.Address)
	require.NoError(t, err)
	conn := tls.Client(naked, &tls.Config{RootCAs: a.Pool(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}})
	require.NoError(t, conn.HandshakeContext(ctx), "in TLS 1.3 the client learns of the refusal at its first reading")
	_, err = conn.Read(make([]byte, 1))
	require.ErrorContains(t, err, "certificate required")
	require.NoError(t, naked.Close())
	patience.Eventually(t, func() bool { return refusals(n, transport.ReasonCertificate) == 1 }, "the refusal is counted")

	plain := overGRPC(t)
	plain.Membership.SeedNodes = first.Membership.SeedNodes
	stranger, err := membership.Start(t.Context(), plain, membership.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { _ = stranger.Close() }()
	patience.Eventually(t, func() bool { return refusals(n, transport.ReasonInsecure) > 0 }, "the stranger is refused")
	require.NoError(t, stranger.Close())
	require.Len(t, n.State().Members(), 2)
	require.NoError(t, m.Leave(ctx))
	require.NoError(t, n.Close())
	require.Contains(t, log.String(), "not in certificate")
	require.Contains(t, log.String(), "insecure")
}
