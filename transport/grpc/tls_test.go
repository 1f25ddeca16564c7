// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
	"github.com/quorate/quorate/transport/transporttest"
)

// TLS between nodes: the conformance suite, then certificates that name clusters and roles,
// nodes that know of their own certificate, sessions of another node, certificates that do
// not fit; last where a peer connects from, and files that are read again.

// issue signs a certificate for a host, which is an IP address.
func issue(t testing.TB, ca *mutualtest.Authority, host string) *tls.Certificate {
	t.Helper()
	cert := ca.Issue(t, mutualtest.Leaf{Host: host})
	return &cert
}

func source(cert *tls.Certificate, trusted *mutualtest.Authority) *grpc.TLS {
	return &grpc.TLS{
		Certificate: func() (*tls.Certificate, error) { return cert, nil },
		Authorities: func() (*x509.CertPool, error) { return trusted.Pool(), nil },
	}
}

func TestConformanceWithTLS(t *testing.T) {
	t.Parallel()
	ca := mutualtest.NewAuthority(t, "ca")
	overBoth(t, func(t *testing.T, network func(bool) *network) {
		t.Helper()
		transporttest.Test(t, transporttest.Plain, func(t testing.TB) transporttest.World {
			n := network(false)
			n.tls = func(a gossip.Address) *grpc.TLS { return source(issue(t, ca, a.Host), ca) }
			return n
		})
	})
}

// identified starts a node on a network whose certificate has URI names.
func identified(t *testing.T, n *network, ca *mutualtest.Authority, uid gossip.UID, required bool, identities ...string) *transporttest.Node {
	t.Helper()
	n.tls = func(a gossip.Address) *grpc.TLS {
		cert := ca.Issue(t, mutualtest.Leaf{Host: a.Host, Identities: identities})
		return source(&cert, ca)
	}
	cfg := transporttest.Config()
	cfg.RequireIdentity = required
	return transporttest.Start(t, n, transporttest.Spec{UID: uid, Config: cfg}, nil)
}

// A certificate of another cluster, or one that names no cluster where that is
// required, is refused on both ends, and the refusal says which name the certificate
// should have. No message of its node is handled.
//
// covers B26, I32.
func TestCertificatesOfOtherClustersAreRefused(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	for name, c := range map[string]struct {
		dialler, acceptor []string
		required          bool // Whether the acceptor requires an identity.
		refuses           bool
	}{
		"the same cluster":                  {[]string{"quorate://bank/a"}, []string{"quorate://bank/b"}, true, false},
		"no cluster, and none required":     {nil, nil, false, false},
		"no cluster, where one is required": {nil, []string{"quorate://bank/b"}, true, true},
		"a cluster where none is required":  {[]string{"quorate://bank/a"}, nil, false, false},
	} {
		n := newNetwork(false)
		b := identified(t, n, ca, 2, c.required, c.acceptor...)
		a := identified(t, n, ca, 1, false, c.dialler...)
		require.NoError(t, a.Lane(b.Self(), machine.LaneControl).Append(transporttest.Service, transporttest.Number(0)), name)
		if !c.refuses {
			b.UntilReceived(t, 1)
			continue
		}
		down := transporttest.UntilNotice(t, a, func(transport.PeerDown) bool { return true })
		refused := transporttest.Refusal(t, down.Err)
		require.Equal(t, transport.ReasonCertificate, refused.Reason, name)
		require.ErrorContains(t, refused, "quorate://bank/<role>", name)
		inbound := transporttest.UntilNotice(t, b, func(n transport.Refused) bool { return n.Inbound })
		require.Equal(t, transport.ReasonCertificate, inbound.Err.Reason, name)
		require.NotZero(t, b.Counters().RefusedInbound[transport.ReasonCertificate], name)
		require.Zero(t, b.Counters().Received, name)
	}
}

// A dialled node must be of the cluster too and, when a joining node is dialled back,
// its certificate must allow the roles that the node wants.
func TestWhoIsDialledIsHeldToItsIdentity(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	n := newNetwork(false)
	b := identified(t, n, ca, 2, false)
	a := identified(t, n, ca, 1, true, "quorate://bank/a")
	_, err := a.Probe(t.Context(), b.Self().Address)
	refused := transporttest.Refusal(t, err)
	require.Equal(t, transport.ReasonCertificate, refused.Reason)
	require.ErrorContains(t, refused, "quorate://bank/<role>")

	c := identified(t, n, ca, 3, true, "quorate://bank/edge")
	node, err := a.Probe(t.Context(), c.Self().Address, "edge")
	require.NoError(t, err)
	require.Equal(t, c.Self(), node)
	_, err = a.Probe(t.Context(), c.Self().Address, "edge", "teller")
	refused = transporttest.Refusal(t, err)
	require.Equal(t, transport.ReasonCertificate, refused.Reason)
	require.ErrorContains(t, refused, "quorate://bank/teller")
	require.Equal(t, uint64(2), a.Counters().RefusedOutbound[transport.ReasonCertificate])
}

// A node does not start with a certificate that the others would refuse.
func TestANodeKnowsThatItsCertificateIsNotForIt(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	for name, c := range map[string]struct {
		cluster    string
		identities []string
		roles      []string
		required   bool
		wants      string
	}{
		"another cluster":               {"bank", []string{"quorate://shop/a"}, nil, false, "quorate://bank/<role>"},
		"another role":                  {"bank", []string{"quorate://bank/a"}, []string{"b"}, false, "quorate://bank/b"},
		"no name where one is required": {"bank", nil, nil, true, "quorate://bank/<role>"},
		"no possible name of a cluster": {"the bank", nil, nil, true, "the bank"},
	} {
		cert := ca.Issue(t, mutualtest.Leaf{Identities: c.identities})
		cfg := transporttest.Config()
		cfg.RequireIdentity = c.required
		id := identity(transporttest.Spec{Address: gossip.Address{Host: "127.0.0.1", Port: 1}, UID: 1, Cluster: c.cluster, Protocol: gossip.ProtocolRange{Min: 1, Max: 1}})
		id.Roles = c.roles
		_, err := grpc.New(id, cfg, grpc.WithTLS(source(&cert, ca)))
		require.ErrorContains(t, err, c.wants, name)
		_, err = grpc.New(id, cfg)
		if c.required {
			require.ErrorContains(t, err, "transport.tls", name)
		}
	}
}

// A connected node is not displaced by another node of its host whose certificate has
// other names.
//
// covers B24, B26.
func TestNodesOfOneHostCannotTakeEachOthersSessions(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	n := newNetwork(false)
	b := identified(t, n, ca, 2, true, "quorate://bank/b")
	victim := identified(t, n, ca, 1, true, "quorate://bank/teller")
	lane := victim.Lane(b.Self(), machine.LaneControl)
	transporttest.Send(t, lane, 0)
	b.UntilReceived(t, 1)

	cert := ca.Issue(t, mutualtest.Leaf{Identities: []string{"quorate://bank/edge"}})
	cfg := transporttest.Config()
	cfg.RequireIdentity = true
	spec := transporttest.Spec{Address: victim.Self().Address, UID: victim.Self().UID, Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 3}}
	posing, err := grpc.New(identity(spec), cfg, grpc.WithTLS(source(&cert, ca)), grpc.WithListener(noListener{}))
	require.NoError(t, err)
	require.NoError(t, posing.Start(t.Context()))
	defer func() { _ = posing.Close() }()
	require.NoError(t, posing.Lane(b.Self(), machine.LaneControl).Append(transporttest.Service, transporttest.Number(666)))
	refused := transporttest.UntilNotice(t, b, func(n transport.Refused) bool { return n.Inbound })
	require.Equal(t, transport.ReasonTaken, refused.Err.Reason)
	require.Contains(t, refused.Err.Detail, "quorate://bank/teller")
	require.Contains(t, refused.Err.Detail, "quorate://bank/edge")
	transporttest.Send(t, lane, 1)
	b.UntilReceived(t, 2)
	b.RequireSequence(t, victim.Self(), 2)
	require.Zero(t, victim.Counters().Breaks)
}

// noListener is a listener that no connection reaches.
type noListener struct{}

func (noListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (noListener) Close() error              { return nil }
func (noListener) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// each runs a test for the control lane, and for message lanes on each of the two wires.
func each(t *testing.T, name string, f func(*testing.T, *network, transport.LaneClass)) {
	t.Helper()
	t.Run(name+", control", func(t *testing.T) { f(t, newNetwork(false), machine.LaneControl) })
	t.Run(name, func(t *testing.T) {
		overBoth(t, func(t *testing.T, network func(bool) *network) {
			t.Helper()
			f(t, network(false), machine.LaneMessage)
		})
	})
}

// covers I35, and the rule that TLS is mutual or absent: no message of a node without
// a valid certificate is ever handled.
func TestCertificatesThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	ca, other := mutualtest.NewAuthority(t, "ca"), mutualtest.NewAuthority(t, "ca")
	const host = "127.0.0.1"
	good, expired := source(issue(t, ca, host), ca), ca.Issue(t, mutualtest.Leaf{Host: host, From: -2 * time.Hour, Until: -time.Hour})
	tests := []struct {
		name   string
		dialer *grpc.TLS
		server *grpc.TLS
		reason transport.Reason
	}{
		{"no certificate", source(&tls.Certificate{}, ca), good, transport.ReasonCertificate},
		{"signed by another authority", source(issue(t, other, host), ca), good, transport.ReasonCertificate},
		{"expired", source(&expired, ca), good, transport.ReasonCertificate},
		{"for another host", source(issue(t, ca, "127.0.0.99"), ca), good, transport.ReasonCertificate},
		{"no TLS at all", nil, good, transport.ReasonInsecure},
		{"server without TLS", good, nil, transport.ReasonInsecure},
		{"server of another authority", good, source(issue(t, other, host), ca), transport.ReasonCertificate},
		{"server of another host", good, source(issue(t, ca, "127.0.0.99"), ca), transport.ReasonCertificate},
	}
	for _, test := range tests {
		each(t, test.name, func(t *testing.T, n *network, class transport.LaneClass) {
			t.Helper()
			n.tls = func(gossip.Address) *grpc.TLS { return test.server }
			if test.server == nil {
				n.tls = nil
			}
			b := transporttest.Start(t, n, transporttest.Spec{UID: 2}, nil)
			n.tls = func(gossip.Address) *grpc.TLS { return test.dialer }
			if test.dialer == nil {
				n.tls = nil
			}
			a := transporttest.Start(t, n, transporttest.Spec{}, nil)
			require.NoError(t, a.Lane(b.Self(), class).Append(transporttest.Service, transporttest.Number(1)))
			down := transporttest.UntilNotice(t, a, func(transport.PeerDown) bool { return true })
			refused := transporttest.Refusal(t, down.Err)
			require.Equal(t, test.reason, refused.Reason, "%v", refused)
			require.NotZero(t, a.Counters().RefusedOutbound[test.reason])
			require.Zero(t, b.Counters().Received)
			require.Zero(t, b.Counters().Accepts)
			if test.server == good {
				transporttest.UntilNotice(t, b, func(n transport.Refused) bool { return n.Inbound && n.Err.Reason == test.reason })
			}
		})
	}
}

// A node can say for people where a peer connects from, and with which certificate.
func TestWhereAPeerConnectsFromIsKnown(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	n := newNetwork(false)
	n.tls = func(a gossip.Address) *grpc.TLS { return source(issue(t, ca, a.Host), ca) }
	from := make(chan transport.Source, 1)
	a, b := transporttest.Start(t, n, transporttest.Spec{}, nil), transporttest.Start(t, n, transporttest.Spec{UID: 2}, nil)
	b.Handle(transporttest.Service+1, func(peer gossip.NodeID, _ []byte) { from <- b.Transport.(transport.Sourcer).Source(peer) })
	require.NoError(t, a.Lane(b.Self(), machine.LaneControl).Append(transporttest.Service+1, func(dst []byte) []byte { return dst }))
	got := <-from
	require.Contains(t, got.Address, a.Self().Address.Host+":")
	require.Contains(t, got.Certificate, " for "+a.Self().Address.Host)
	require.Zero(t, b.Transport.(transport.Sourcer).Source(gossip.NodeID{UID: 9}))
}

// covers F54: certificates are replaced under a running node.
func TestCertificateFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	install := func(ca *mutualtest.Authority) transport.TLSFiles {
		return ca.Write(t, dir, ca.Issue(t, mutualtest.Leaf{}))
	}
	first, second := mutualtest.NewAuthority(t, "ca"), mutualtest.NewAuthority(t, "ca")
	cfg := transporttest.Config()
	cfg.TLS = install(first)
	n := newNetwork(false)
	a := transporttest.Start(t, n, transporttest.Spec{Config: cfg}, nil)
	b := transporttest.Start(t, n, transporttest.Spec{UID: 2, Config: cfg}, nil)
	_, err := a.Probe(t.Context(), b.Self().Address)
	require.NoError(t, err)

	install(second)
	cfg.TLS = transport.TLSFiles{}
	n.tls = func(a gossip.Address) *grpc.TLS { return source(issue(t, second, a.Host), second) }
	c := transporttest.Start(t, n, transporttest.Spec{UID: 3}, nil)
	_, err = c.Probe(t.Context(), b.Self().Address)
	require.NoError(t, err, "the new authority is trusted")
	_, err = b.Probe(t.Context(), c.Self().Address)
	require.NoError(t, err, "the new certificate is shown")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "node.pem"), []byte("half a fi"), 0o600))
	_, err = b.Probe(t.Context(), c.Self().Address)
	require.NoError(t, err, "the last good content stays in use")
}
