// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd_test

// The tests here need no etcd: at the address of etcd there is nothing, something silent, or
// another server. Tests with a real etcd are in internal/etcdtest, a module of its own, so that
// no user of this module needs the modules of the server.

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/etcd"
	"github.com/quorate/quorate/internal/patience"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, endpoint string, edits ...func(*etcd.Config)) *etcd.Discovery {
	t.Helper()
	patience.Watch(t)
	config := etcd.Default()
	config.Endpoints, config.RequestTimeout = []string{endpoint}, 200*time.Millisecond
	for _, edit := range edits {
		edit(&config)
	}
	d, err := etcd.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// silent returns the URL of a server that accepts connections and sends nothing.
func silent(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return "http://" + listener.Addr().String()
}

func entry() etcd.Entry { return etcd.Entry{Service: "bank", Host: "10.0.0.1", Port: 7946} }

// The error about an etcd that cannot be asked names the address, and comes within the time
// limit of a request.
func TestAnEtcdThatIsNoneIsAnError(t *testing.T) {
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	for name, endpoint := range map[string]string{"silent": silent(t), "HTML": page.URL, "nobody": "http://127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			d := open(t, endpoint)
			_, err := d.Lookup(t.Context(), discovery.Query{Service: "bank"})
			require.ErrorContains(t, err, "etcd: ")
			require.NotErrorIs(t, err, context.DeadlineExceeded, "that of the caller has not passed")
			require.NotContains(t, err.Error(), "\n")
			require.Less(t, len(err.Error()), 500)
			r, err := d.Register(entry())
			require.NoError(t, err)
			require.ErrorIs(t, r.Wait(patience.Expiring(t, 300*time.Millisecond)), context.DeadlineExceeded)
			require.Error(t, r.Err())
			require.NoError(t, r.Close())
		})
	}
}

func TestALookupEndsWithItsContextWhileEtcdIsSilent(t *testing.T) {
	d := open(t, silent(t), func(c *etcd.Config) { c.RequestTimeout = time.Minute })
	_, err := d.Lookup(patience.Expiring(t, 20*time.Millisecond), discovery.Query{Service: "bank"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestCloseEndsEverythingAndWorksTwice(t *testing.T) {
	d := open(t, silent(t), func(c *etcd.Config) { c.RequestTimeout = time.Minute })
	r, err := d.Register(entry())
	require.NoError(t, err)
	looked := make(chan error)
	// Ends with Close, for which the test waits.
	go func() {
		_, err := d.Lookup(t.Context(), discovery.Query{Service: "bank"})
		looked <- err
	}()
	require.NoError(t, d.Close())
	require.ErrorIs(t, <-looked, discovery.ErrClosed)
	require.ErrorIs(t, r.Wait(t.Context()), discovery.ErrClosed)
	require.NoError(t, r.Close())
	require.NoError(t, d.Close())
	_, err = d.Register(entry())
	require.ErrorIs(t, err, discovery.ErrClosed)
}

func TestWhatCannotBeRegisteredIsRefused(t *testing.T) {
	d := open(t, silent(t))
	for want, e := range map[string]etcd.Entry{
		`"a/b" is no name of a service`:   {Service: "a/b", Host: "a", Port: 1},
		"the port is 0":                   {Service: "a", Host: "a"},
		"bad contact point":               {Service: "a", Host: "A b", Port: 1},
		`the port "x" with the number 0`:  {Service: "a", Host: "a", Port: 1, Ports: map[string]uint16{"x": 0}},
		`the port "/x" with the number 1`: {Service: "a", Host: "a", Port: 1, Ports: map[string]uint16{"/x": 1}},
	} {
		_, err := d.Register(e)
		require.ErrorContains(t, err, want)
	}
	for range 16 {
		_, err := d.Register(entry())
		require.NoError(t, err)
	}
	_, err := d.Register(entry())
	require.ErrorContains(t, err, "there are 16 registrations already")
}

func TestAServiceIsANameAndNoPath(t *testing.T) {
	d := open(t, silent(t))
	for _, name := range []string{"", "a/b", "a b", "a\x00", strings.Repeat("a", 129)} {
		_, err := d.Lookup(t.Context(), discovery.Query{Service: name})
		require.ErrorContains(t, err, "is no name of a service")
	}
}

func TestFilesThatCannotBeReadAreErrors(t *testing.T) {
	secure := func(c *etcd.Config) { c.Endpoints = []string{"https://127.0.0.1:1"} }
	for want, edit := range map[string]func(*etcd.Config){
		"the password: open /nonexistent":     func(c *etcd.Config) { c.Username, c.PasswordFile = "bank", "/nonexistent" },
		"the certificates: open /nonexistent": func(c *etcd.Config) { secure(c); c.CAFile = "/nonexistent" },
		"holds no certificate in PEM form":    func(c *etcd.Config) { secure(c); c.CAFile = "etcd_test.go" },
		"the certificates: tls: ":             func(c *etcd.Config) { secure(c); c.CertFile, c.KeyFile = "go.mod", "go.mod" },
	} {
		_, err := open(t, silent(t), edit).Lookup(t.Context(), discovery.Query{Service: "bank"})
		require.ErrorContains(t, err, want)
	}
}
