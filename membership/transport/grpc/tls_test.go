// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
	"github.com/quorate/quorate/membership/transport"
	"github.com/quorate/quorate/membership/transport/grpc"
	"github.com/quorate/quorate/membership/transport/mutual/mutualtest"
	"github.com/quorate/quorate/membership/transport/transporttest"
)

// issue signs a certificate that is for a host, an IP address.
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
	ca := mutualtest.NewAuthority(t, "ca")
	transporttest.Test(t, transporttest.Plain, func(t testing.TB) transporttest.World {
		n := newNetwork(false)
		n.tls = func(a gossip.Address) *grpc.TLS { return source(issue(t, ca, a.Host), ca) }
		return n
	})
}

// covers I35, and the rule that TLS is mutual or not there at all: nothing of
// a node without the right certificate is ever handled.
func TestCertificatesThatDoNotFitAreRefused(t *testing.T) {
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
		t.Run(test.name, func(t *testing.T) {
			n := newNetwork(false)
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
			require.NoError(t, a.Lane(b.Self(), machine.LaneControl).Append(transporttest.Service, transporttest.Number(1)))
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
