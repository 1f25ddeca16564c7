// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
)

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{key, cert}
}

// issue signs a certificate for the loopback address.
func (a *authority) issue(t *testing.T, serial int64) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// save writes the files of a certificate over those that are there.
func (a *authority) save(t *testing.T, cfg *management.Config, dir string, c tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	require.NoError(t, err)
	save := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	cfg.TLS.Certificate, cfg.TLS.Key = save("node.pem", "CERTIFICATE", c.Certificate[0]), save("key.pem", "PRIVATE KEY", key)
	cfg.TLS.Authorities = save("ca.pem", "CERTIFICATE", a.cert.Raw)
}

// secure asks with certificates, and returns the serial number of the
// server's.
func secure(t *testing.T, address string, trusted *authority, certificates ...tls.Certificate) (int64, error) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(trusted.cert)
	c := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: certificates, MinVersion: tls.VersionTLS13},
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/echo/a", http.NoBody)
	require.NoError(t, err)
	response, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	return response.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
}

// With TLS, only whoever shows a certificate of the right authority gets an
// answer; files that are replaced count from the next connection on, and while
// they cannot be read the last good ones do.
func TestMutualTLS(t *testing.T) {
	ours, theirs, dir := newAuthority(t), newAuthority(t), t.TempDir()
	cfg := listening()
	ours.save(t, &cfg, dir, ours.issue(t, 11))
	s := serve(t, cfg, []management.Route{echo()})

	serial, err := secure(t, s.Address(), ours, ours.issue(t, 2))
	require.NoError(t, err)
	require.Equal(t, int64(11), serial)
	_, err = secure(t, s.Address(), ours)
	require.ErrorContains(t, err, "certificate required")
	_, err = secure(t, s.Address(), ours, theirs.issue(t, 3))
	require.Error(t, err)
	_, err = secure(t, s.Address(), theirs, ours.issue(t, 4))
	require.ErrorContains(t, err, "certificate", "nor does whoever asks trust just anybody")
	plain, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address()+"/echo/a", http.NoBody)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, send(t, client(), plain).status)

	ours.save(t, &cfg, dir, ours.issue(t, 12))
	serial, err = secure(t, s.Address(), ours, ours.issue(t, 5))
	require.NoError(t, err)
	require.Equal(t, int64(12), serial)
	for _, path := range []string{cfg.TLS.Certificate, cfg.TLS.Authorities} {
		require.NoError(t, os.WriteFile(path, []byte("half a fi"), 0o600))
	}
	serial, err = secure(t, s.Address(), ours, ours.issue(t, 6))
	require.NoError(t, err)
	require.Equal(t, int64(12), serial)

	_, err = management.Serve(t.Context(), cfg, nil, quiet())
	require.ErrorContains(t, err, "tls.certificate "+cfg.TLS.Certificate)
	good := cfg
	ours.save(t, &good, dir, ours.issue(t, 13))
	require.NoError(t, os.WriteFile(good.TLS.Authorities, []byte("none"), 0o600))
	_, err = management.Serve(t.Context(), good, nil, quiet())
	require.ErrorContains(t, err, "tls.authorities "+good.TLS.Authorities)
}

// Whoever is connected gets no more answers when its certificate is revoked, and
// cannot connect again. covers F54.
func TestRevokedCertificateGetsNoMoreAnswers(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	cfg := listening()
	ca.save(t, &cfg, dir, ca.issue(t, 11))
	cfg.TLS.Revocations = filepath.Join(dir, "revoked.crl")
	revoke := func(serials ...int64) {
		list := &x509.RevocationList{Number: big.NewInt(int64(len(serials) + 1)), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour)}
		for _, s := range serials {
			list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
				x509.RevocationListEntry{SerialNumber: big.NewInt(s), RevocationTime: time.Now()})
		}
		der, err := x509.CreateRevocationList(rand.Reader, list, ca.cert, ca.key)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(cfg.TLS.Revocations, der, 0o600))
	}
	revoke()
	s := serve(t, cfg, []management.Route{echo()})
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{ca.issue(t, 5)}, MinVersion: tls.VersionTLS13}}
	t.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Timeout: 10 * time.Second, Transport: transport}
	ask := func() (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Address()+"/echo/a", http.NoBody)
		require.NoError(t, err)
		response, err := c.Do(request)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		return response.StatusCode, response.Body.Close()
	}
	status, err := ask()
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	revoke(5)
	status, err = ask()
	require.NoError(t, err, "it is connected")
	require.Equal(t, http.StatusForbidden, status)
	_, err = ask()
	require.Error(t, err, "and is not any more")
	_, err = secure(t, s.Address(), ca, ca.issue(t, 6))
	require.NoError(t, err)
}
