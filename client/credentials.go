// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// maxTokenBytes bounds the file with the token of a client.
const maxTokenBytes = 4 << 10

// credentials returns those of gRPC for an address.
func (c Config) credentials(address string) (credentials.TransportCredentials, error) {
	if !c.TLS.complete() {
		return insecure.NewCredentials(), nil
	}
	if _, _, err := c.TLS.read(); err != nil { // So that a mistake is an error of the start.
		return nil, fmt.Errorf("tls: %w", err)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: host,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, _, err := c.TLS.read()
			return pair, err
		},
		// The authorities are those of the file at this moment; VerifyConnection checks by them what
		// the handshake then leaves out.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			_, authorities, err := c.TLS.read()
			if err != nil {
				return err
			}
			intermediates := x509.NewCertPool()
			for _, other := range state.PeerCertificates[1:] {
				intermediates.AddCert(other)
			}
			_, err = state.PeerCertificates[0].Verify(x509.VerifyOptions{
				DNSName: host, Roots: authorities, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			})
			return err
		},
	}), nil
}

// read reads the files.
func (f TLSFiles) read() (*tls.Certificate, *x509.CertPool, error) {
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(f.Authorities)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, nil, fmt.Errorf("%s has no certificate in PEM", f.Authorities)
	}
	return &pair, pool, nil
}

// readToken reads the token of this client.
func readToken(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // It was only read.
	text, err := io.ReadAll(io.LimitReader(file, maxTokenBytes+1))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(text) > maxTokenBytes || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s does not have one token of up to %d bytes", path, maxTokenBytes)
	}
	return token, nil
}
