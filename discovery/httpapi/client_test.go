// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package httpapi_test

// A client against servers of this machine: first the token, the certificates, and to whom
// neither may go, then which answers are refused, and the limits of time.

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery/httpapi"
	"github.com/quorate/quorate/internal/patience"
)

// proxy is the proxy that the environment names, at an address where nothing listens. TestMain
// names it before the first request, since net/http reads the environment once.
const proxy = "127.0.0.1:1"

func TestMain(m *testing.M) {
	if err := os.Setenv("HTTP_PROXY", "http://"+proxy); err != nil {
		panic(err)
	}
	m.Run()
}

var errMalformed = errors.New("this is no answer of the registry")

// says answers each request with a content type, a status and a body.
func says(kind string, code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// serve starts a server for the test.
func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// open returns a client of the server at a URL, with edits of what it knows of that server.
func open(t testing.TB, url string, edits ...func(*httpapi.Server)) *httpapi.Client {
	t.Helper()
	patience.Watch(t)
	s := httpapi.Server{URL: url, Key: "address", Malformed: errMalformed, Config: httpapi.Default()}
	for _, edit := range edits {
		edit(&s)
	}
	c := httpapi.New(s)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.NoError(t, c.Close(), "the second time")
	})
	return c
}

// get asks for a path and returns the body of the answer.
func get(t testing.TB, c *httpapi.Client, path string) (string, error) {
	t.Helper()
	answer, err := c.Get(t.Context(), path)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return string(body), nil
}

func write(t testing.TB, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func TestARequestAsksForJSONWithTheTokenOfTheMoment(t *testing.T) {
	asked := make(chan *http.Request, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		says("application/json; charset=utf-8", http.StatusOK, "[]")(w, r)
	})
	token := filepath.Join(t.TempDir(), "token")
	bearer := open(t, s.URL+"/", func(s *httpapi.Server) { s.Config.TokenFile = token })
	for _, text := range []string{"first", "second\n"} {
		write(t, token, text)
		body, err := get(t, bearer, "/v1/nodes?tag=blue")
		require.NoError(t, err)
		require.Equal(t, "[]", body)
		r := <-asked
		require.Equal(t, "/v1/nodes?tag=blue", r.URL.String())
		require.Equal(t, "application/json", r.Header.Get("Accept"))
		require.Equal(t, "Bearer "+strings.TrimSpace(text), r.Header.Get("Authorization"))
	}
	own := open(t, s.URL, func(s *httpapi.Server) {
		s.Config.TokenFile = token
		s.Authorize = func(header http.Header, token string) { header.Set("X-Token", token) }
	})
	_, err := get(t, own, "/")
	require.NoError(t, err)
	r := <-asked
	require.Equal(t, "second", r.Header.Get("X-Token"))
	require.Empty(t, r.Header.Get("Authorization"))

	_, err = get(t, open(t, s.URL), "/")
	require.NoError(t, err)
	require.Empty(t, (<-asked).Header.Get("Authorization"), "no file, no token")

	for text, want := range map[string]string{" \n": "is empty", strings.Repeat("a", 1<<20+1): "is longer than 1048576 bytes"} {
		write(t, token, text)
		_, err = get(t, bearer, "/")
		require.ErrorContains(t, err, "the token: "+token+" "+want)
	}
	require.NoError(t, os.Remove(token))
	_, err = get(t, bearer, "/")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Empty(t, asked, "nothing is sent without the token")
}

// The file counts as it is now: whatever it holds next, a client that trusted the server
// before does not go on over its old connection, and otherwise keeps that connection.
func TestAServerIsKnownByTheCertificatesInTheFileNow(t *testing.T) {
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(says("application/json", http.StatusOK, "{}"))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // Handshakes that fail are wanted.
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.StartTLS()
	defer s.Close()
	good := certificate(s.Certificate().Raw)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	c := open(t, s.URL, func(s *httpapi.Server) { s.Config.CAFile = ca })
	_, err := get(t, c, "/")
	require.ErrorIs(t, err, os.ErrNotExist)
	for bad, want := range map[string]string{
		"no certificate": "the certificates: " + ca + " holds no certificate in PEM form",
		another(t):       "certificate signed by unknown authority",
	} {
		write(t, ca, bad)
		_, err = get(t, c, "/")
		require.ErrorContains(t, err, want)
		write(t, ca, good)
		before := connections.Load()
		for range 3 {
			_, err = get(t, c, "/")
			require.NoError(t, err)
		}
		require.LessOrEqual(t, connections.Load(), before+1)
	}
	_, err = get(t, open(t, s.URL), "/")
	require.ErrorContains(t, err, "certificate signed by unknown authority", "the system does not know the server")
}

// another returns a certificate that has nothing to do with any server.
func another(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return certificate(der)
}

func certificate(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// Neither a redirect nor a proxy of the environment carries the token anywhere else.
func TestTheTokenGoesToTheServerAlone(t *testing.T) {
	var reached atomic.Int64
	thief := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL+"/steal", code) })
		_, err := get(t, open(t, s.URL), "/")
		require.ErrorIs(t, err, errMalformed)
		require.ErrorContains(t, err, s.URL+` redirects to "`+thief.URL+`/steal", which is not followed`)
		require.ErrorContains(t, err, "is address right?")
	}
	require.Zero(t, reached.Load())

	// An address for documents, at which no machine is: a proxy would not be used for this one.
	_, err := get(t, open(t, "http://192.0.2.1", func(s *httpapi.Server) { s.Config.RequestTimeout = 100 * time.Millisecond }), "/")
	require.ErrorContains(t, err, "http://192.0.2.1: dial tcp 192.0.2.1:80: ")
	require.NotContains(t, err.Error(), proxy)
}

func TestOnlyJSONWithStatus200IsAnAnswer(t *testing.T) {
	for _, kind := range []string{"text/html", "text/plain; charset=utf-8", "application/", "no type"} {
		s := serve(t, says(kind, http.StatusOK, "<html>"))
		_, err := get(t, open(t, s.URL), "/")
		require.ErrorIs(t, err, errMalformed)
		require.ErrorContains(t, err, `answers with the content type "`+kind+`": is address right?`)
	}
	for _, code := range []int{http.StatusNoContent, http.StatusForbidden, http.StatusInternalServerError} {
		body := strings.Repeat("a", 100_000)
		if code == http.StatusNoContent {
			body = ""
		}
		s := serve(t, says("application/json; charset=utf-8", code, body))
		_, err := get(t, open(t, s.URL), "/")
		refused, ok := errors.AsType[*httpapi.StatusError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, &httpapi.StatusError{Code: code, Type: "application/json", Body: []byte(body[:min(len(body), 64<<10)])}, refused)
		require.EqualError(t, err, "the server answers "+map[int]string{204: "204 No Content", 403: "403 Forbidden", 500: "500 Internal Server Error"}[code])
	}
}

// An error names the server; the rest of the URL, which a program made, is left out.
func TestAServerThatIsAwayIsNamed(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, err := get(t, open(t, s.URL), "/v1/nodes?tag=blue")
	require.ErrorContains(t, err, s.URL+": dial tcp ")
	require.NotContains(t, err.Error(), "blue")
	_, err = get(t, open(t, s.URL), "/\x00")
	require.Error(t, err)
}

// The time limit of a request that is over must not look like that of the caller.
func TestARequestIsOverdueWhileItsCallerWaitsOn(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := open(t, s.URL, func(s *httpapi.Server) {
		s.Config.RequestTimeout, s.HeaderTimeout = 100*time.Millisecond, 100*time.Millisecond
	})
	_, late := get(t, c, "/")
	require.ErrorIs(t, late, context.DeadlineExceeded)
	err := c.Overdue(t.Context(), late)
	require.ErrorContains(t, err, "no whole answer within 100ms: "+s.URL)
	require.NotErrorIs(t, err, context.DeadlineExceeded)

	require.Equal(t, late, c.Overdue(patience.Expiring(t, 0), late), "the time of the caller is over too")
	require.Equal(t, errMalformed, c.Overdue(t.Context(), errMalformed))
	require.NoError(t, c.Overdue(t.Context(), nil))
}

// What is sent has the token and its type, and may be answered by 201, which Get refuses.
func TestSendMayCreate(t *testing.T) {
	var got http.Request
	var body []byte
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = *r
		body, _ = io.ReadAll(r.Body)
		says("application/json", http.StatusCreated, "{}")(w, r)
	})
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("secret"), 0o600))
	config := httpapi.Default()
	config.TokenFile = file
	client := httpapi.New(httpapi.Server{URL: server.URL, Key: "address", Malformed: errMalformed, Config: config})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	answer, err := client.Send(t.Context(), http.MethodPost, "/v1/a", []byte(`{"b":1}`))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, "POST /v1/a Bearer secret application/json "+`{"b":1}`,
		got.Method+" "+got.URL.Path+" "+got.Header.Get("Authorization")+" "+got.Header.Get("Content-Type")+" "+string(body))
	answer, err = client.Get(t.Context(), "/v1/a")
	if err == nil {
		require.NoError(t, answer.Body.Close())
	}
	refused, ok := errors.AsType[*httpapi.StatusError](err)
	require.True(t, ok)
	require.Equal(t, http.StatusCreated, refused.Code)
}
