// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/tcp"
	"github.com/quorate/quorate/transport/mutual"
)

// TLS under gRPC: what a certificate says of a peer, for the handshake of the session,
// and what goes wrong in a TLS handshake, as a typed refusal. The auditor wraps gRPC's
// credentials and reports each failure through classify; audited and sniffed notice,
// on the dialling side, a rejection that comes after the handshake or instead of it.

// TLS supplies certificates to a transport without certificate files.
type TLS = mutual.TLS

// protocol is the application protocol that TLS negotiates for gRPC.
const protocol = "h2"

// verifier returns a function that checks host and cluster of a handshake against the
// certificate that the peer has shown. It is nil without TLS.
func verifier(auth credentials.AuthInfo, identity mutual.Identity) func(string) error {
	if _, ok := auth.(credentials.TLSInfo); !ok {
		return nil
	}
	return func(host string) error {
		certificate := shown(auth)
		if certificate == nil {
			return errors.New("there is none: issue one")
		}
		if err := certificate.VerifyHostname(host); err != nil {
			return fmt.Errorf("not one of %s: %w; issue one with that name", host, err)
		}
		return identity.Check(certificate)
	}
}

// maxNames is how many names of a certificate are shown to people.
const maxNames = 4

// certificateOf describes the certificate that the peer has shown: its subject and the
// first of its names. Empty without TLS.
func certificateOf(auth credentials.AuthInfo) string {
	c := shown(auth)
	if c == nil {
		return ""
	}
	names, more := mutual.Names(c), ""
	if len(names) > maxNames {
		names, more = names[:maxNames], " and more"
	}
	return fmt.Sprintf("%s for %s%s", c.Subject, strings.Join(names, ", "), more)
}

// checkOwn returns why other nodes would refuse this node's own certificate, or nil.
func checkOwn(identity mutual.Identity, t *TLS, roles []string) error {
	if t == nil {
		if identity.Required {
			return errors.New("require-identity: there are no certificates: configure transport.tls")
		}
		return nil
	}
	if err := identity.Validate(); err != nil {
		return err
	}
	pair, err := t.Certificate()
	if err != nil || len(pair.Certificate) == 0 {
		return err // Without a certificate, every other node refuses this node and says why.
	}
	own := pair.Leaf
	if own == nil {
		if own, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return err
		}
	}
	if err := identity.Covers(own, roles); err != nil {
		return fmt.Errorf("the node's own certificate: %w", err)
	}
	return nil
}

// shown returns the certificate that the other end has shown, or nil.
func shown(auth credentials.AuthInfo) *x509.Certificate {
	info, ok := auth.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return nil
	}
	return info.State.PeerCertificates[0]
}

// auditor watches TLS handshakes and reports failures as typed refusals.
type auditor struct {
	credentials.TransportCredentials

	tls     *TLS
	refused func(address string, r *transport.RefusedError)

	// lane takes an accepted connection that is for the other wire, and returns the
	// error that says so. Nil for connections that are opened.
	lane func(raw, conn net.Conn, auth credentials.AuthInfo) error
}

func (a auditor) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, auth, err := a.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		a.audit(raw, err)
		return nil, nil, err
	}
	// In TLS 1.3 the client is done before the server has seen its
	// certificate: a rejection arrives with the first read.
	return a.guard(&alertConn{Conn: conn, audit: func(err error) { a.audit(raw, err) }}, auth), auth, nil
}

func (a auditor) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	held := &held{Conn: raw}
	conn, auth, err := a.TransportCredentials.ServerHandshake(held)
	held.done.Store(true)
	if err != nil {
		if timedOut(err) {
			a.refused(raw.RemoteAddr().String(), &transport.RefusedError{
				Reason: transport.ReasonMalformed, Detail: "no TLS handshake within transport.handshake-timeout",
			})
		}
		a.audit(raw, err)
		alert(raw, err)
		return nil, nil, errors.Join(err, raw.Close())
	}
	conn = a.guard(conn, auth)
	if negotiated(auth) == tcp.Protocol {
		return nil, nil, a.lane(raw, conn, auth)
	}
	return conn, auth, nil
}

// timedOut reports whether a connection failed since the handshake has had its time.
func timedOut(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// guard returns a connection that ends when the peer's certificate is no longer
// accepted. Its end is no refusal: the peer may have another certificate by now, and
// connects again.
func (a auditor) guard(conn net.Conn, auth credentials.AuthInfo) net.Conn {
	info, ok := auth.(credentials.TLSInfo)
	if !ok {
		return conn
	}
	return a.tls.Guard(conn, info.State)
}

// held is a connection that a failed handshake cannot close, so that an alert
// can still be sent.
type held struct {
	net.Conn

	done atomic.Bool
}

func (c *held) Close() error {
	if !c.done.Load() {
		return nil
	}
	return c.Conn.Close()
}

// alert answers a caller that does not speak TLS with an alert, which package tls does
// not send in that case, so that a node without TLS can tell why the connection ended.
func alert(raw net.Conn, err error) {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		const fatal, protocolVersion = 2, 70 // RFC 8446, section 6.
		_, _ = raw.Write([]byte{recordAlert, 3, 1, 0, 2, fatal, protocolVersion})
	}
}

func (a auditor) Clone() credentials.TransportCredentials {
	return auditor{a.TransportCredentials.Clone(), a.tls, a.refused, a.lane}
}

func (a auditor) audit(raw net.Conn, err error) {
	if r := classify(err); r != nil {
		a.refused(raw.RemoteAddr().String(), r)
	}
}

// alertConn reports errors of reading, by which a rejection arrives after the handshake.
type alertConn struct {
	net.Conn

	audit func(error)
}

// alertWait is how long a failed Write waits for an alert of the other end. The alert
// was sent before the connection was closed, and the failure shows that it has been
// closed.
const alertWait = 100 * time.Millisecond

// Write reads, when it fails, the last bytes from the other end: a peer that refuses
// sends an alert and closes the connection, and Write may meet the close before Read
// meets the alert.
func (c *alertConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && c.SetReadDeadline(time.Now().Add(alertWait)) == nil {
		_, _ = c.Read(make([]byte, 1)) // The byte is of no use to any reader any more.
	}
	return n, err
}

func (c *alertConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.audit(err)
	}
	return n, err
}

// classify returns the refusal that an error of TLS amounts to, or nil when the
// connection merely broke.
func classify(err error) *transport.RefusedError {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	text := err.Error()
	switch {
	case errors.As(err, &record):
		return &transport.RefusedError{
			Reason: transport.ReasonInsecure,
			Detail: "the other end does not speak TLS: give every node of the cluster a certificate (transport.tls), or none",
		}
	case errors.Is(err, mutual.ErrRevoked), errors.Is(err, mutual.ErrIdentity):
		return &transport.RefusedError{Reason: transport.ReasonCertificate, Detail: text}
	case errors.As(err, &verification), strings.Contains(text, "x509:"):
		return &transport.RefusedError{
			Reason: transport.ReasonCertificate,
			Detail: text + ": the certificate must be signed by transport.tls.authorities, valid now, for client and server use, and name the node's host",
		}
	case strings.Contains(text, "offered only unsupported versions"):
		return &transport.RefusedError{Reason: transport.ReasonInsecure, Detail: text + ": nodes speak TLS 1.3"}
	case strings.Contains(text, "unsupported application protocols"), strings.Contains(text, "missing selected ALPN"):
		return &transport.RefusedError{Reason: transport.ReasonMalformed, Detail: text + ": something that is not a node of this cluster dials"}
	case strings.Contains(text, "didn't provide a certificate"), strings.Contains(text, "remote error: tls:"):
		return &transport.RefusedError{
			Reason: transport.ReasonCertificate,
			Detail: text + ": check transport.tls.certificate of the one end and transport.tls.authorities of the other",
		}
	}
	return nil
}

// sniffedConn is a connection without TLS that notices when the first byte begins an alert
// of TLS.
type sniffedConn struct {
	net.Conn

	first   bool
	refused func(*transport.RefusedError)
}

// recordAlert is the type of TLS records that carry alerts.
const recordAlert = 0x15

func (c *sniffedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.first {
		c.first = true
		if b[0] == recordAlert {
			c.refused(&transport.RefusedError{
				Reason: transport.ReasonInsecure,
				Detail: "the other end speaks TLS only: give this node a certificate (transport.tls)",
			})
		}
	}
	return n, err
}

// attempt collects the errors of one dialling, and the certificate of the other end.
type attempt struct {
	mu          sync.Mutex
	refused     *transport.RefusedError
	certificate *x509.Certificate // What the other end has shown.
}

// shown keeps the certificate of the other end, and refuses a certificate of another
// cluster.
func (a *attempt) shown(state tls.ConnectionState, identity mutual.Identity) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(state.PeerCertificates) == 0 {
		return errors.New("grpc: no certificate")
	}
	a.certificate = state.PeerCertificates[0]
	return identity.Check(a.certificate)
}

func (a *attempt) refuse(to gossip.Address, r *transport.RefusedError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refused == nil {
		r.Peer = gossip.NodeID{Address: to}
		a.refused = r
	}
}

// err returns the refusal that was kept, or the given error when there was none.
func (a *attempt) err(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refused != nil {
		return a.refused
	}
	return err
}
