// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/quorate/quorate/membership/transport"
)

// files reads certificates from files at each handshake, so that they can be
// replaced under a running node, and keeps the last good content.
type files struct {
	names transport.TLSFiles

	mu          sync.Mutex
	certificate *tls.Certificate
	authorities *x509.CertPool
}

// mutual returns a configuration by which both ends show a certificate. The
// files are read once, so that a mistake is an error of the start.
func mutual(names transport.TLSFiles) (*tls.Config, error) {
	f := &files{names: names}
	if _, err := f.readCertificate(); err != nil {
		return nil, fmt.Errorf("management: tls.certificate %s with tls.key %s: %w", names.Certificate, names.Key, err)
	}
	if _, err := f.readAuthorities(); err != nil {
		return nil, fmt.Errorf("management: tls.authorities %s: %w", names.Authorities, err)
	}
	return &tls.Config{
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.config() },
		// Never reached; there in case a later change forgets the line above.
		ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS13,
	}, nil
}

// config returns the configuration for one handshake.
func (f *files) config() (*tls.Config, error) {
	certificate, err := f.readCertificate()
	if err != nil {
		return nil, err
	}
	authorities, err := f.readAuthorities()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{*certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    authorities,
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{"http/1.1"},
	}, nil
}

func (f *files) readCertificate() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := tls.LoadX509KeyPair(f.names.Certificate, f.names.Key)
	if err == nil {
		f.certificate = &c
	}
	if f.certificate == nil {
		return nil, err
	}
	return f.certificate, nil
}

func (f *files) readAuthorities() (*x509.CertPool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pem, err := os.ReadFile(f.names.Authorities)
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(pem) {
		err = errors.New("no certificate in the file")
	}
	if err == nil {
		f.authorities = pool
	}
	if f.authorities == nil {
		return nil, err
	}
	return f.authorities, nil
}
