// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/transport/bearer"
	"github.com/quorate/quorate/transport/mutual"
)

// Who may ask is found at the beginning of each call ([Server.admit]): by a token, by a name in a
// certificate, or by having come so far at all where neither is configured.

// admit returns the name of the client of a call, or the status that it is refused with.
func (s *Server) admit(ctx context.Context) (name string, err error) {
	name, err = s.identify(ctx)
	if err != nil {
		s.counters.refused.Add(1)
		from := "unknown"
		if p, ok := peer.FromContext(ctx); ok {
			from = p.Addr.String()
		}
		s.log.WarnContext(ctx, "the gateway refuses a client", "peer", from, "error", err)
	}
	return name, err
}

// identify returns the name of the client of a call, or the status that says why it is refused; admit counts and logs
// that.
func (s *Server) identify(ctx context.Context) (string, error) {
	leaf := peerCertificate(ctx)
	md, _ := metadata.FromIncomingContext(ctx)
	if given := md.Get("authorization"); len(given) > 0 {
		return s.byToken(given)
	}
	if want := s.cfg.CertificateURI; want != "" && leaf != nil {
		for _, uri := range leaf.URIs {
			if uri.String() == want {
				return "certificate " + mutual.Name(leaf), nil
			}
		}
	}
	switch {
	case s.cfg.TokenFile != "" && s.cfg.CertificateURI != "":
		return "", status.Errorf(codes.Unauthenticated, "only a client may ask this node: send a token, or show a certificate with the URI name %s", s.cfg.CertificateURI)
	case s.cfg.TokenFile != "":
		return "", status.Error(codes.Unauthenticated, "only a client with a token may ask this node")
	case s.cfg.CertificateURI != "":
		return "", status.Errorf(codes.PermissionDenied, "only a client may ask this node: show a certificate with the URI name %s", s.cfg.CertificateURI)
	case leaf != nil:
		return "certificate " + mutual.Name(leaf), nil
	default:
		return "a process that reaches the address", nil
	}
}

// byToken knows a client by a token. Whoever sends one gets no other chance: a wrong token is a
// mistake, whatever else the client has.
func (s *Server) byToken(given []string) (string, error) {
	if s.cfg.TokenFile == "" {
		return "", status.Error(codes.Unauthenticated, "this node has no tokens: set gateway.token-file")
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", status.Error(codes.Unauthenticated, `authorization is not one "Bearer" and a token`)
	}
	all, err := s.tokens()
	if err != nil {
		s.log.Error("the gateway cannot read its tokens", "error", err)
		return "", status.Error(codes.Unavailable, "the tokens of this node cannot be read; its log has more")
	}
	owner, err := all.Owner(token, time.Now())
	if err != nil {
		return "", status.Error(codes.Unauthenticated, err.Error())
	}
	return "token of " + owner, nil
}

func (s *Server) tokens() (bearer.Tokens, error) { return bearer.Read(s.cfg.TokenFile) }

// certificates logs what the files say when they have changed.
func (s *Server) certificates(c mutual.Change) {
	if c.Err != nil {
		s.log.Error("changed certificate files of the gateway cannot be used, those before stay in use", "files", c.Files, "error", c.Err)
		return
	}
	s.log.Info("changed certificate files of the gateway are in use", "files", c.Files)
}

// peerCertificate returns the certificate that a client has presented; nil without TLS.
func peerCertificate(ctx context.Context) *x509.Certificate {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return nil
	}
	return info.State.PeerCertificates[0]
}

// expiringCredentials is gRPC's TLS whose connections end when the certificate of their client would not be
// accepted any more.
type expiringCredentials struct {
	credentials.TransportCredentials

	tls *mutual.TLS
}

func guarded(t *mutual.TLS) credentials.TransportCredentials {
	return expiringCredentials{credentials.NewTLS(t.Server("h2")), t}
}

// ServerHandshake shakes hands.
func (g expiringCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, auth, err := g.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	info, ok := auth.(credentials.TLSInfo)
	if !ok {
		return nil, nil, errors.Join(errors.New("gateway: a handshake without TLS"), conn.Close())
	}
	return g.tls.Guard(conn, info.State), auth, nil
}

// Clone copies the credentials.
func (g expiringCredentials) Clone() credentials.TransportCredentials {
	return expiringCredentials{g.TransportCredentials.Clone(), g.tls}
}
