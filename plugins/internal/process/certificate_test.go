// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server accepts the signatures that it lists. This is the list of BoringSSL, which serves
// gRPC in Python, Ruby, PHP and C++: it has no signature of a key on the curve P-521, and a
// client without another one presents no certificate and is refused.
func TestServersInOtherLanguagesAcceptTheHost(t *testing.T) {
	_, config, err := newIdentity(time.Now())
	require.NoError(t, err)
	require.Len(t, config.Certificates, 1)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		asks := &tls.CertificateRequestInfo{Version: version, SignatureSchemes: []tls.SignatureScheme{
			tls.ECDSAWithP256AndSHA256, tls.PSSWithSHA256, tls.PKCS1WithSHA256, tls.ECDSAWithP384AndSHA384,
			tls.PSSWithSHA384, tls.PKCS1WithSHA384, tls.PSSWithSHA512, tls.PKCS1WithSHA512, tls.PKCS1WithSHA1,
		}}
		require.NoError(t, asks.SupportsCertificate(&config.Certificates[0]))
	}
}

// A plugin trusts the one certificate that it was told, and nobody else has its key.
func TestEachLaunchHasAnIdentityOfItsOwn(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	one, config, err := newIdentity(now)
	require.NoError(t, err)
	other, _, err := newIdentity(now)
	require.NoError(t, err)
	require.NotEqual(t, one, other)

	block, rest := pem.Decode([]byte(one))
	require.NotNil(t, block)
	require.Empty(t, rest)
	require.Equal(t, [][]byte{block.Bytes}, config.Certificates[0].Certificate)
	leaf, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM([]byte(one)))
	for _, at := range []time.Time{now.Add(-clockStep), now, now.AddDate(50, 0, 0)} {
		_, err = leaf.Verify(x509.VerifyOptions{
			Roots: pool, CurrentTime: at, DNSName: serverName, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
		require.NoError(t, err, at)
	}
}
