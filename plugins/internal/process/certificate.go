// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

const (
	// certificateVariable has the certificate of the host, as PEM. The plugin accepts
	// connections from its owner alone.
	certificateVariable = "PLUGIN_CLIENT_CERT"
	// serverName is the name that the certificates of both sides are for.
	serverName = "localhost"
	// validFor is how long a certificate is valid. It is as old as its process, which may
	// run for as long as the machine does, and dies with it.
	validFor = 100 * 365 * 24 * time.Hour
	// clockStep is how far the clock may be set back between the making of a certificate
	// and its use.
	clockStep = time.Minute
)

// newIdentity makes a key and a certificate for one launch, and returns the certificate as
// PEM and the configuration of the connection, to which go-plugin adds the certificate of
// the plugin.
//
// go-plugin would make them by itself, with a key on the curve P-521, of which servers built
// on BoringSSL, as gRPC is for Python, Ruby, PHP and C++, accept no signature.
func newIdentity(now time.Time) (string, *tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return "", nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName},
		NotBefore: now.Add(-clockStep), NotAfter: now.Add(validFor),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return "", nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return string(text), &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		MinVersion:   tls.VersionTLS12,
		ServerName:   serverName,
	}, nil
}
