// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// The server with TLS: certificates of clients, files that are replaced, certificates that
// are revoked, and operations.

// secure asks with certificates, and returns the serial number of the server's certificate.
func secure(t *testing.T, address string, trusted *mutualtest.Authority, certificates ...tls.Certificate) (int64, error) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: trusted.Pool(), Certificates: certificates, MinVersion: tls.VersionTLS13},
	}}
	request, err := http.NewRequestWithContext(patience.Context(t), http.MethodGet, "https://"+address+"/echo/a", http.NoBody)
	require.NoError(t, err)
	response, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	return response.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
}

// With TLS, only a client with a certificate of the right authority gets an answer.
// Replaced files count from the next connection on; while they cannot be read, the last
// good files count.
func TestMutualTLS(t *testing.T) {
	ours, theirs, dir := mutualtest.NewAuthority(t, "ca"), mutualtest.NewAuthority(t, "ca"), t.TempDir()
	cfg := listening()
	cfg.TLS = ours.Write(t, dir, ours.Issue(t, mutualtest.Leaf{Serial: 11}))
	require.NoError(t, os.Chmod(cfg.TLS.Key, 0o644))
	log, text := logger()
	s := serve(t, cfg, []management.Route{echo()}, log)
	require.Equal(t, runtime.GOOS != "windows", strings.Contains(text.String(), "has mode 0644"))

	serial, err := secure(t, s.Address(), ours, ours.Issue(t, mutualtest.Leaf{Serial: 2}))
	require.NoError(t, err)
	require.Equal(t, int64(11), serial)
	_, err = secure(t, s.Address(), ours)
	require.ErrorContains(t, err, "certificate required")
	_, err = secure(t, s.Address(), ours, theirs.Issue(t, mutualtest.Leaf{Serial: 3}))
	require.Error(t, err)
	_, err = secure(t, s.Address(), theirs, ours.Issue(t, mutualtest.Leaf{Serial: 4}))
	require.ErrorContains(t, err, "certificate", "nor does whoever asks trust just anybody")
	plain, err := http.NewRequestWithContext(patience.Context(t), http.MethodGet, "http://"+s.Address()+"/echo/a", http.NoBody)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, send(t, client(), plain).status)

	cfg.TLS = ours.Write(t, dir, ours.Issue(t, mutualtest.Leaf{Serial: 12}))
	serial, err = secure(t, s.Address(), ours, ours.Issue(t, mutualtest.Leaf{Serial: 5}))
	require.NoError(t, err)
	require.Equal(t, int64(12), serial)
	for _, path := range []string{cfg.TLS.Certificate, cfg.TLS.Authorities} {
		require.NoError(t, os.WriteFile(path, []byte("half a fi"), 0o600))
	}
	serial, err = secure(t, s.Address(), ours, ours.Issue(t, mutualtest.Leaf{Serial: 6}))
	require.NoError(t, err)
	require.Equal(t, int64(12), serial)

	_, err = management.Serve(t.Context(), cfg, nil, quiet())
	require.ErrorContains(t, err, "tls.certificate "+cfg.TLS.Certificate)
	good := cfg
	good.TLS = ours.Write(t, dir, ours.Issue(t, mutualtest.Leaf{Serial: 13}))
	require.NoError(t, os.WriteFile(good.TLS.Authorities, []byte("none"), 0o600))
	_, err = management.Serve(t.Context(), good, nil, quiet())
	require.ErrorContains(t, err, "tls.authorities "+good.TLS.Authorities)
}

// A connected client gets no more answers when its certificate is revoked, and cannot
// connect again. covers F54.
func TestRevokedCertificateGetsNoMoreAnswers(t *testing.T) {
	ca, dir := mutualtest.NewAuthority(t, "ca"), t.TempDir()
	cfg := listening()
	cfg.TLS = ca.Write(t, dir, ca.Issue(t, mutualtest.Leaf{Serial: 11}))
	cfg.TLS.Revocations = filepath.Join(dir, "revoked.crl")
	revoke := func(serials ...int64) {
		require.NoError(t, os.WriteFile(cfg.TLS.Revocations, ca.Revoke(t, int64(len(serials)+1), serials...), 0o600))
	}
	revoke()
	s := serve(t, cfg, []management.Route{echo()})
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Issue(t, mutualtest.Leaf{Serial: 5})}, MinVersion: tls.VersionTLS13}}
	t.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Transport: transport}
	ask := func() (int, error) {
		request, err := http.NewRequestWithContext(patience.Context(t), http.MethodGet, "https://"+s.Address()+"/echo/a", http.NoBody)
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
	_, err = secure(t, s.Address(), ca, ca.Issue(t, mutualtest.Leaf{Serial: 6}))
	require.NoError(t, err)
}

// A stream ends when the certificate of its client is revoked: it would go on for as long as the client likes.
func TestAStreamEndsWhenTheCertificateIsRevoked(t *testing.T) {
	ca, dir := mutualtest.NewAuthority(t, "ca"), t.TempDir()
	cfg := listening()
	cfg.TLS = ca.Write(t, dir, ca.Issue(t, mutualtest.Leaf{Serial: 11}))
	cfg.TLS.Revocations = filepath.Join(dir, "revoked.crl")
	require.NoError(t, os.WriteFile(cfg.TLS.Revocations, ca.Revoke(t, 1), 0o600))
	ended := make(chan error, 1)
	pulse := time.NewTicker(10 * time.Millisecond)
	defer pulse.Stop()
	s := serve(t, cfg, []management.Route{{Path: "/stream", Stream: func(ctx context.Context, _ management.Request, out *management.Stream) error {
		for {
			if err := out.Beat("1"); err != nil {
				ended <- err
				return err
			}
			select {
			case <-ctx.Done():
				ended <- ctx.Err()
				return ctx.Err()
			case <-pulse.C:
			}
		}
	}}})
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Issue(t, mutualtest.Leaf{Serial: 5})}, MinVersion: tls.VersionTLS13}}
	t.Cleanup(transport.CloseIdleConnections)
	request, err := http.NewRequestWithContext(patience.Context(t), http.MethodGet, "https://"+s.Address()+"/stream", http.NoBody)
	require.NoError(t, err)
	response, err := transport.RoundTrip(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	_, err = response.Body.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cfg.TLS.Revocations, ca.Revoke(t, 2, 5), 0o600))
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err, "the server has ended the stream")
	require.ErrorContains(t, <-ended, "not accepted any more")
}

// With TLS an operation needs a certificate and the header, and is logged with the
// certificate.
func TestAnOperationWithTLS(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	cfg := listening()
	cfg.TLS = ca.Write(t, t.TempDir(), ca.Issue(t, mutualtest.Leaf{Serial: 11}))
	log, text := logger()
	s := serve(t, cfg, []management.Route{{
		Path: "/v1/form", Operation: management.FormOperation,
		Answer: func(context.Context, management.Request) (any, error) { return "done", nil },
	}}, log)
	mine := ca.Issue(t, mutualtest.Leaf{Serial: 5})
	post := func(operation string, certificates ...tls.Certificate) (int, error) {
		c := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: ca.Pool(), Certificates: certificates, MinVersion: tls.VersionTLS13},
		}}
		request, err := http.NewRequestWithContext(patience.Context(t), http.MethodPost, "https://"+s.Address()+"/v1/form", http.NoBody)
		require.NoError(t, err)
		request.Header.Set(management.OperatorHeader, operation)
		response, err := c.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	_, err := post(management.FormOperation)
	require.ErrorContains(t, err, "certificate required")
	status, err := post("", mine)
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, status)
	require.NotContains(t, text.String(), "an operator asks")
	status, err = post(management.FormOperation, mine)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	leaf, err := x509.ParseCertificate(mine.Certificate[0])
	require.NoError(t, err)
	require.Contains(t, text.String(), "an operator asks for a change")
	require.Contains(t, text.String(), strconv.Quote("certificate "+leaf.Subject.String()))
}
