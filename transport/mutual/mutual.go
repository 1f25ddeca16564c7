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

// A TLS is asked at each handshake: Server and Client make configurations that ask it,
// and verify chains against its revocations. For connections that are up already,
// Guard repeats the check (Verify) when the generation of the certificates has
// changed.

// TLS supplies certificates. Its functions are called at each handshake, from any
// goroutine, so that certificates can be replaced under a running program.
type TLS struct {
	// Certificate returns the certificate of this end, valid for client and server
	// use, with the host of this end among its names.
	Certificate func() (*tls.Certificate, error)

	// Authorities returns who may sign the certificates of peers.
	Authorities func() (*x509.CertPool, error)

	// Revoked returns why a certificate must be refused although an authority has
	// signed it, or nil when it is not revoked. A nil function revokes no certificate.
	Revoked func(*x509.Certificate) error

	// Generation returns a number that changes when the answers of Authorities or
	// Revoked may have changed. A nil function: they never change.
	Generation func() uint64
}

// Server returns the configuration of the listening side. The protocols are
// application protocols, in order of preference.
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
		// Never used while GetConfigForClient is set; safe if a later change drops it.
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

// verifyChains refuses a peer when every chain from its certificate to an authority
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

// Verify checks a connected peer against the present authorities and revocations. The
// error says why a handshake would refuse the peer now.
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

// Guard returns a connection that ends when its peer would no longer be accepted.
// State is that of the peer's handshake. Bytes of the peer are passed on only as long
// as [TLS.Verify] accepts it.
func (t *TLS) Guard(conn net.Conn, state tls.ConnectionState) net.Conn {
	if t.Generation == nil {
		return conn
	}
	g := &guarded{Conn: conn, tls: t, state: state}
	g.seen.Store(t.Generation())
	return g
}

// guarded is a connection whose peer is verified again when the generation changes.
type guarded struct {
	net.Conn

	tls   *TLS
	state tls.ConnectionState
	seen  atomic.Uint64 // The generation in which the peer was last accepted.
}

// Read reads from the connection, and verifies the peer first if the generation has
// changed.
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
