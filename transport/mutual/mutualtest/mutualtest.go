// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package mutualtest makes certificates for the tests of programs whose nodes show
// each other certificates. A test makes an [Authority], has it issue certificates and
// revocation lists, and writes them to files if the program reads files.
//
// Keys and certificates live in memory, are written to files only by the test, and
// expire within a day. An [Authority] may be used by any number of goroutines.
package mutualtest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/transport"
)

// day is how long an authority is valid, before and after it was made.
const day = 24 * time.Hour

// Authority signs certificates and revocation lists.
type Authority struct {
	// Certificate is the authority's own.
	Certificate *x509.Certificate

	key *ecdsa.PrivateKey
}

// NewAuthority makes an authority. Two authorities of the same name have different
// keys.
func NewAuthority(tb testing.TB, name string) *Authority {
	tb.Helper()
	key := newKey(tb)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-day), NotAfter: time.Now().Add(day),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(tb, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(tb, err)
	return &Authority{Certificate: certificate, key: key}
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	return key
}

// Pool returns a pool of trusted authorities with this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// PEM returns the authority's certificate as a PEM block.
func (a *Authority) PEM() []byte { return block("CERTIFICATE", a.Certificate.Raw) }

// Leaf says how the certificate of a node differs from the default, which is valid for
// 127.0.0.1 from an hour ago for an hour more, with serial number 2.
type Leaf struct {
	// Host is the IP address for which the certificate is valid.
	Host string
	// Identities are URI names of the certificate, such as quorate://bank/teller.
	Identities []string
	// Serial is the serial number, by which the certificate can be revoked.
	Serial int64
	// Usages are the extended key usages: those of both ends of a connection when nil, none when empty.
	Usages []x509.ExtKeyUsage
	// From and Until are when validity begins and ends, relative to now: an hour ago
	// when From is zero, in an hour when Until is zero.
	From, Until time.Duration
}

// Issue signs a certificate with which a node can serve and dial.
func (a *Authority) Issue(tb testing.TB, l Leaf) tls.Certificate {
	tb.Helper()
	key := newKey(tb)
	var uris []*url.URL
	for _, text := range l.Identities {
		uri, err := url.Parse(text)
		require.NoError(tb, err)
		uris = append(uris, uri)
	}
	usages := l.Usages
	if usages == nil {
		usages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		URIs: uris, SerialNumber: big.NewInt(cmp.Or(l.Serial, 2)), Subject: pkix.Name{CommonName: "node"},
		NotBefore: time.Now().Add(cmp.Or(l.From, -time.Hour)), NotAfter: time.Now().Add(cmp.Or(l.Until, time.Hour)),
		IPAddresses: []net.IP{net.ParseIP(cmp.Or(l.Host, "127.0.0.1"))}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: usages,
	}, a.Certificate, &key.PublicKey, a.key)
	require.NoError(tb, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Files returns a certificate and its key as PEM blocks.
func Files(tb testing.TB, c tls.Certificate) (certificate, key []byte) {
	tb.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	require.NoError(tb, err)
	return block("CERTIFICATE", c.Certificate[0]), block("PRIVATE KEY", private)
}

// Write writes a certificate, its key and the authority into a directory, replacing
// files of an earlier Write, and returns their names.
func (a *Authority) Write(tb testing.TB, dir string, c tls.Certificate) transport.TLSFiles {
	tb.Helper()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(tb, os.WriteFile(path, text, 0o600))
		return path
	}
	certificate, key := Files(tb, c)
	return transport.TLSFiles{
		Certificate: write("node.pem", certificate), Key: write("key.pem", key), Authorities: write("ca.pem", a.PEM()),
	}
}

func block(label string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der})
}

// Revoke signs a list of serial numbers, in DER. A list with a higher number is newer.
func (a *Authority) Revoke(tb testing.TB, number int64, serials ...int64) []byte {
	tb.Helper()
	list := &x509.RevocationList{
		Number: big.NewInt(number), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour),
	}
	for _, s := range serials {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{
			SerialNumber: big.NewInt(s), RevocationTime: time.Now().Add(-time.Minute),
		})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.Certificate, a.key)
	require.NoError(tb, err)
	return der
}
