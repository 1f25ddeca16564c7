// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
	"github.com/quorate/quorate/membership/transport"
	"github.com/quorate/quorate/membership/transport/grpc"
	"github.com/quorate/quorate/membership/transport/transporttest"
)

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{key, cert}
}

// issue signs a certificate for a host that is an IP address.
func (a *authority) issue(t testing.TB, host string, until time.Time) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.ParseIP(host)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func source(cert *tls.Certificate, trusted *authority) *grpc.TLS {
	return &grpc.TLS{
		Certificate: func() (*tls.Certificate, error) { return cert, nil },
		Authorities: func() (*x509.CertPool, error) { return trusted.pool(), nil },
	}
}

func tomorrow() time.Time { return time.Now().Add(24 * time.Hour) }

func TestConformanceWithTLS(t *testing.T) {
	ca := newAuthority(t)
	transporttest.Test(t, transporttest.Plain, func(t testing.TB) transporttest.World {
		n := newNetwork(false)
		n.tls = func(a gossip.Address) *grpc.TLS { return source(ca.issue(t, a.Host, tomorrow()), ca) }
		return n
	})
}

// covers I35, and the rule that TLS is mutual or not there at all: nothing of
// a node without the right certificate is ever handled.
func TestCertificatesThatDoNotFitAreRefused(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	const host = "127.0.0.1"
	good := source(ca.issue(t, host, tomorrow()), ca)
	tests := []struct {
		name   string
		dialer *grpc.TLS
		server *grpc.TLS
		reason transport.Reason
	}{
		{"no certificate", source(&tls.Certificate{}, ca), good, transport.ReasonCertificate},
		{"signed by another authority", source(other.issue(t, host, tomorrow()), ca), good, transport.ReasonCertificate},
		{"expired", source(ca.issue(t, host, time.Now().Add(-time.Hour)), ca), good, transport.ReasonCertificate},
		{"for another host", source(ca.issue(t, "127.0.0.99", tomorrow()), ca), good, transport.ReasonCertificate},
		{"no TLS at all", nil, good, transport.ReasonInsecure},
		{"server without TLS", good, nil, transport.ReasonInsecure},
		{"server of another authority", good, source(other.issue(t, host, tomorrow()), ca), transport.ReasonCertificate},
		{"server of another host", good, source(ca.issue(t, "127.0.0.99", tomorrow()), ca), transport.ReasonCertificate},
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

// covers F54: certificates are replaced under a running node.
func TestCertificateFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	install := func(ca *authority) transport.TLSFiles {
		cert := ca.issue(t, "127.0.0.1", tomorrow())
		key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
		require.NoError(t, err)
		return transport.TLSFiles{
			Certificate: write("node.pem", "CERTIFICATE", cert.Certificate[0]),
			Key:         write("node.key", "PRIVATE KEY", key),
			Authorities: write("ca.pem", "CERTIFICATE", ca.cert.Raw),
		}
	}
	first, second := newAuthority(t), newAuthority(t)
	cfg := transporttest.Config()
	cfg.TLS = install(first)
	n := newNetwork(false)
	a := transporttest.Start(t, n, transporttest.Spec{Config: cfg}, nil)
	b := transporttest.Start(t, n, transporttest.Spec{UID: 2, Config: cfg}, nil)
	_, err := a.Probe(t.Context(), b.Self().Address)
	require.NoError(t, err)

	install(second)
	cfg.TLS = transport.TLSFiles{}
	n.tls = func(a gossip.Address) *grpc.TLS { return source(second.issue(t, a.Host, tomorrow()), second) }
	c := transporttest.Start(t, n, transporttest.Spec{UID: 3}, nil)
	_, err = c.Probe(t.Context(), b.Self().Address)
	require.NoError(t, err, "the new authority is trusted")
	_, err = b.Probe(t.Context(), c.Self().Address)
	require.NoError(t, err, "the new certificate is shown")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "node.pem"), []byte("half a fi"), 0o600))
	_, err = b.Probe(t.Context(), c.Self().Address)
	require.NoError(t, err, "the last good content stays in use")
}
