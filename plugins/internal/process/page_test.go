// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/plugins"
)

// The line on the page for authors in other languages is a handshake, and its certificate is as
// the page demands.
func TestTheLineOfTheDocumentationIsAHandshake(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("../../../docs/plugins.md"))
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^1\|1\|unix\|.*$`).FindString(string(page))
	fields := strings.Split(line, "|")
	require.Len(t, fields, handshakeFields)
	h, err := parseHandshake(line+"\n", filepath.Dir(fields[3]), []int{plugins.Version1})
	require.NoError(t, err)
	require.Equal(t, handshake{plugins.Version1, "unix", fields[3]}, h)

	der, err := base64.RawStdEncoding.DecodeString(fields[5])
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	_, err = certificate.Verify(x509.VerifyOptions{
		Roots: pool, DNSName: serverName, CurrentTime: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	require.NoError(t, err)
	key, ok := certificate.PublicKey.(*ecdsa.PublicKey)
	require.True(t, ok)
	require.Equal(t, elliptic.P256(), key.Curve)
}
