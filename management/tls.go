// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"fmt"
	"net/http"

	"github.com/quorate/quorate/transport/mutual"
)

// openFiles reads the files of the certificates, if any are configured, so that a mistake
// is an error of the start.
func (s *Server) openFiles() error {
	if s.cfg.TLS.IsZero() {
		return nil
	}
	files, err := mutual.Open(s.cfg.TLS, s.certificates)
	if err != nil {
		return fmt.Errorf("management: %w", err)
	}
	s.files, s.tls = files, files.TLS()
	if text := mutual.LooseKey(s.cfg.TLS.Key); text != "" {
		s.log.Warn(text)
	}
	return nil
}

// certificates logs what the files say when they have changed.
func (s *Server) certificates(c mutual.Change) {
	if c.Err != nil {
		s.log.Error("changed certificate files of management cannot be used, those before stay in use", "files", c.Files, "error", c.Err)
		return
	}
	s.log.Info("changed certificate files of management are in use", "files", c.Files)
}

// admits reports whether a client would still be accepted: its connection may be older
// than the present files.
func (s *Server) admits(r *http.Request) bool {
	if s.tls == nil || r.TLS == nil {
		return true
	}
	err := s.tls.Verify(*r.TLS)
	if err != nil {
		s.log.WarnContext(r.Context(), "management refuses a certificate", "peer", r.RemoteAddr, "error", err)
	}
	return err == nil
}

// holder is the name in the client's certificate, "" without TLS.
func holder(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return ""
	}
	return r.TLS.PeerCertificates[0].Subject.String()
}
