// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package mutualtest makes certificates for the tests of programs whose nodes show
// each other certificates: authorities, what they sign, and lists of what they revoke.
//
// All of it lives in memory and is of no use outside of tests: keys are written
// down nowhere unless the test does it, and everything ends in a day. An [Authority] may
// be used by any number of goroutines.
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

// day is for how long an authority is valid, before and after it was made.
const day = 24 * time.Hour

// Authority signs certificates and revocation lists.
type Authority struct {
	// Certificate is its own.
	Certificate *x509.Certificate

	key *ecdsa.PrivateKey
}

// NewAuthority makes an authority. Two of the same name are two all the same.
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

// Pool returns the authority as the only one that is trusted.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// PEM returns the authority's certificate as its file has it.
func (a *Authority) PEM() []byte { return block("CERTIFICATE", a.Certificate.Raw) }

// Leaf is what is special about the certificate of a node. The zero value is valid for
// 127.0.0.1 from an hour ago for an hour more, with serial number 2.
type Leaf struct {
	// Host is the IP address that it is for.
	Host string
	// Identities are the URIs among its names, as quorate://bank/teller.
	Identities []string
	// Serial is its number, by which it can be revoked.
	Serial int64
	// From and Until are when it is valid, as seen from now: an hour ago when From is
	// zero, in an hour when Until is zero.
	From, Until time.Duration
}

// Issue signs a certificate with which a node serves and dials.
func (a *Authority) Issue(tb testing.TB, l Leaf) tls.Certificate {
	tb.Helper()
	key := newKey(tb)
	var uris []*url.URL
	for _, text := range l.Identities {
		uri, err := url.Parse(text)
		require.NoError(tb, err)
		uris = append(uris, uri)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		URIs: uris, SerialNumber: big.NewInt(cmp.Or(l.Serial, 2)), Subject: pkix.Name{CommonName: "node"},
		NotBefore: time.Now().Add(cmp.Or(l.From, -time.Hour)), NotAfter: time.Now().Add(cmp.Or(l.Until, time.Hour)),
		IPAddresses: []net.IP{net.ParseIP(cmp.Or(l.Host, "127.0.0.1"))}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.Certificate, &key.PublicKey, a.key)
	require.NoError(tb, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Files returns a certificate and its key as their files have them.
func Files(tb testing.TB, c tls.Certificate) (certificate, key []byte) {
	tb.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	require.NoError(tb, err)
	return block("CERTIFICATE", c.Certificate[0]), block("PRIVATE KEY", private)
}

// Write writes a certificate, its key and the authority into a directory, over those
// that were written before, and returns their names.
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
