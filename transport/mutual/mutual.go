// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutual

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
)

// TLS is where certificates come from. Its functions are called at each
// handshake, from any goroutine, so that certificates can be replaced under a
// running program.
type TLS struct {
	// Certificate returns the certificate of this end, valid for client and server
	// use, with the host of this end among its names.
	Certificate func() (*tls.Certificate, error)

	// Authorities returns who may sign the certificates of peers.
	Authorities func() (*x509.CertPool, error)

	// Revoked says why a certificate must not be accepted although an authority
	// has signed it, and nil if it may. A nil function revokes none.
	Revoked func(*x509.Certificate) error

	// Generation changes when Authorities or Revoked may answer otherwise than
	// before. A nil function says that they never do.
	Generation func() uint64
}

// Server returns the configuration of the listening side. The protocols are
// those of the application, in order of preference.
func (t *TLS) Server(protocols ...string) *tls.Config {
	fresh := func(*tls.ClientHelloInfo) (*tls.Config, error) {
		authorities, err := t.Authorities()
		if err != nil {
			return nil, err
		}
		return &tls.Config{
			GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.Certificate() },
			ClientAuth:             tls.RequireAndVerifyClientCert,
			ClientCAs:              authorities,
			VerifyConnection:       t.verifyChains,
			SessionTicketsDisabled: true, // A resumed session would show no certificate.
			MinVersion:             tls.VersionTLS13,
			NextProtos:             protocols,
		}, nil
	}
	return &tls.Config{
		GetConfigForClient: fresh,
		// Never reached; there in case a later change forgets the line above.
		ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS13,
		NextProtos: protocols,
	}
}

// Client returns the configuration for dialling a host.
func (t *TLS) Client(host string, protocols ...string) (*tls.Config, error) {
	authorities, err := t.Authorities()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.Certificate() },
		RootCAs:              authorities,
		ServerName:           host,
		VerifyConnection:     t.verifyChains,
		MinVersion:           tls.VersionTLS13,
		NextProtos:           protocols,
	}, nil
}

// verifyChains refuses a peer when each way from its certificate to an authority
// has a revoked certificate in it.
func (t *TLS) verifyChains(state tls.ConnectionState) error {
	if t.Revoked == nil {
		return nil
	}
	var last error
	for _, chain := range state.VerifiedChains {
		if last = t.revokedIn(chain); last == nil {
			return nil
		}
	}
	return last
}

func (t *TLS) revokedIn(chain []*x509.Certificate) error {
	for _, certificate := range chain {
		if err := t.Revoked(certificate); err != nil {
			return err
		}
	}
	return nil
}

// Verify checks a peer that is connected by the authorities and revocations of
// now. The error says why a handshake would refuse it.
func (t *TLS) Verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("mutual: the peer has shown no certificate")
	}
	authorities, err := t.Authorities()
	if err != nil {
		return err
	}
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	chains, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: authorities, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return fmt.Errorf("mutual: %w", err)
	}
	state.VerifiedChains = chains
	return t.verifyChains(state)
}

// Guard returns a connection that ends when its peer, which had the state at the
// handshake, would not be accepted any more: what it sends is handed on only as
// long as [TLS.Verify] has nothing against it.
func (t *TLS) Guard(conn net.Conn, state tls.ConnectionState) net.Conn {
	if t.Generation == nil {
		return conn
	}
	g := &guarded{Conn: conn, tls: t, state: state}
	g.seen.Store(t.Generation())
	return g
}

// guarded is a connection whose peer is checked again.
type guarded struct {
	net.Conn

	tls   *TLS
	state tls.ConnectionState
	seen  atomic.Uint64 // The generation by which the peer was accepted.
}

// Read reads from the connection.
func (c *guarded) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if now := c.tls.Generation(); now != c.seen.Load() {
		if refused := c.tls.Verify(c.state); refused != nil {
			return 0, errors.Join(refused, c.Close())
		}
		c.seen.Store(now)
	}
	return n, err
}
