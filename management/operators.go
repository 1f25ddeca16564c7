// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/transport/bearer"
	"github.com/quorate/quorate/transport/mutual"
)

// Who may have a node do something is asked in three ways, by how a request came:
// over the Unix socket ([Server.byPeer]), with a token ([Server.byToken]), or with a
// certificate ([Server.byCertificate]). Each gives the name that is logged.

// OperatorsConfig says who may use routes that change something ([Route.Authorized]). Each of
// its settings is another way to be an operator; without any of them nobody is.
type OperatorsConfig struct {
	// Socket is the path of a Unix socket on which all routes are answered to the user of
	// the node and to root, up to 96 bytes. It has mode 0600. Empty, the default, means no
	// socket; it works without an address too.
	Socket string `koanf:"socket"`

	// TokenFile names a file of bearer tokens, a line each: the name of the operator, when
	// the token ends (as 2027-01-31T00:00:00Z, or never), and the SHA-256 of the token in
	// hexadecimal digits. It is read at each request, and must be writable by its owner
	// alone; up to 64 KiB. Empty, the default, means no tokens.
	TokenFile string `koanf:"token-file"`

	// CertificateURI is the URI name that the certificate of an operator has, such as
	// quorate://bank/operator; it needs tls. Empty, the default, means that no certificate
	// makes an operator.
	CertificateURI string `koanf:"certificate-uri"`
}

// maxSocketPath is the longest path of a socket that works on every system, with room for
// the name under which it is prepared.
const maxSocketPath = 96

// validate reports settings that make nobody an operator, or would make too many.
func (c OperatorsConfig) validate(whole Config) error {
	var faults field.Faults
	faults.Refuse(len(c.Socket) > maxSocketPath, "operators.socket", "%q has %d bytes, sockets can have %d", c.Socket, len(c.Socket), maxSocketPath)
	faults.Relate(c.TokenFile != "" && whole.Address == "", "operators.token-file", "address", "is set, and nothing listens: set management.address")
	if c.CertificateURI == "" {
		return faults.Err()
	}
	uri, err := url.Parse(c.CertificateURI)
	faults.Refuse(err != nil || uri.Scheme == "" || uri.Host == "" && uri.Opaque == "", "operators.certificate-uri", "%q is no URI as quorate://bank/operator", c.CertificateURI)
	faults.Relate(!whole.TLS.Complete(), "operators.certificate-uri", "tls", "is set without tls (certificate, key and authorities), so that no client shows a certificate")
	return faults.Err()
}

// any reports whether there can be an operator.
func (c OperatorsConfig) any() bool { return c != OperatorsConfig{} }

// who returns the name of the operator that has sent a request, or why it is none.
func (s *Server) who(r *http.Request) (name string, err *Error) {
	for _, way := range []func(*http.Request) (string, *Error){s.byPeer, s.byToken, s.byCertificate} {
		if name, err := way(r); name != "" || err != nil {
			return name, err
		}
	}
	if !s.cfg.Operators.any() {
		return "", refuse(http.StatusForbidden, "this node has no operators: set management.operators.socket, token-file or certificate-uri")
	}
	return "", refuse(http.StatusUnauthorized, "only an operator may ask this: %s", s.ways())
}

// ways says how one can be an operator of this node.
func (s *Server) ways() string {
	var ways []string
	if s.cfg.Operators.Socket != "" {
		ways = append(ways, "ask over the Unix socket of the node")
	}
	if s.cfg.Operators.TokenFile != "" {
		ways = append(ways, "send a token")
	}
	if uri := s.cfg.Operators.CertificateURI; uri != "" {
		ways = append(ways, "show a certificate with the URI name "+uri)
	}
	return strings.Join(ways, ", or ")
}

// byPeer knows an operator by the socket.
func (s *Server) byPeer(r *http.Request) (string, *Error) {
	conn := socketOf(r.Context())
	if conn == nil {
		return "", nil
	}
	name, err := peer(conn)
	if err != nil {
		return "", refuse(http.StatusForbidden, "%v", err)
	}
	return name, nil
}

// byToken knows an operator by a token. Whoever sends one gets no other chance: a wrong
// token is a mistake, whatever else the request has.
func (s *Server) byToken(r *http.Request) (string, *Error) {
	given := r.Header.Values("Authorization")
	if len(given) == 0 {
		return "", nil
	}
	if s.cfg.Operators.TokenFile == "" {
		return "", refuse(http.StatusUnauthorized, "this node has no tokens: set management.operators.token-file")
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", refuse(http.StatusUnauthorized, `the header Authorization is not one "Bearer" and a token`)
	}
	all, err := bearer.Read(s.cfg.Operators.TokenFile)
	if err != nil {
		s.log.ErrorContext(r.Context(), "management cannot read its tokens", "error", err)
		return "", refuse(http.StatusInternalServerError, "the tokens of this node cannot be read; its log has more")
	}
	owner, err := all.Owner(token, time.Now())
	if err != nil {
		return "", refuse(http.StatusUnauthorized, "%v", err)
	}
	return "token of " + owner, nil
}

// byCertificate knows an operator by a name in a certificate, which the handshake has
// verified.
func (s *Server) byCertificate(r *http.Request) (string, *Error) {
	want := s.cfg.Operators.CertificateURI
	if want == "" || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return "", nil
	}
	leaf := r.TLS.PeerCertificates[0]
	for _, uri := range leaf.URIs {
		if uri.String() == want {
			return "certificate " + mutual.Name(leaf), nil
		}
	}
	return "", nil
}

// Change is a request that asked a node to do something, after it was answered.
type Change struct {
	Operation string // What was asked for, [Route.Operation].
	Path      string // The path of the request, with what it was asked for.
	Query     string // The parameters of the request, as in "force=true"; empty if there are none.
	By        string // Who asked.
	Err       error  // Why it was not done; nil if it was.
}

// WithChanges sets a function that is told of every request to a route with an operation that came as far as the route:
// of those that were refused before, the log tells. It is called on the goroutine of the request, several at a time,
// and must not block.
func WithChanges(tell func(Change)) Option { return func(s *Server) { s.tell = tell } }

// refused logs that somebody is no operator.
func (s *Server) refused(r *http.Request, operation string, err *Error) {
	s.log.WarnContext(r.Context(), "management refuses an operation, for nobody who may ask for it does", "operation", operation, "peer", r.RemoteAddr, "reason", err.Text)
}
