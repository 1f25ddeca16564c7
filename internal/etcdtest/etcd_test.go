// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcdtest_test

// The method against an embedded etcd: first the conformance suite, then nodes that come and
// go with their leases, keys of other programs, an etcd that is away, certificates and users.

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/discoverytest"
	"github.com/quorate/quorate/discovery/etcd"
	"github.com/quorate/quorate/internal/patience"
)

func open(t testing.TB, endpoint string, edits ...func(*etcd.Config)) *etcd.Discovery {
	t.Helper()
	config := etcd.Default()
	config.Endpoints, config.Interval = []string{endpoint}, 50*time.Millisecond
	for _, edit := range edits {
		edit(&config)
	}
	d, err := etcd.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// becomes waits until lookups find the wanted contact points, with a space between two.
func becomes(t testing.TB, d discovery.Discovery, want string) {
	t.Helper()
	discoverytest.AwaitTargets(t, d, discovery.Query{Service: "bank", Port: "management"}, strings.Fields(want)...)
}

// fails waits until a lookup fails with a message, and returns the error.
func fails(t testing.TB, d discovery.Discovery, message string) error {
	t.Helper()
	return discoverytest.AwaitError(t, d, discovery.Query{Service: "bank"}, message)
}

func register(t testing.TB, d *etcd.Discovery) *etcd.Registration {
	t.Helper()
	r, err := d.Register(etcd.Entry{Service: "bank", Host: "10.0.0.1", Port: 7946, Ports: map[string]uint16{"management": 8558}})
	require.NoError(t, err)
	require.NoError(t, r.Wait(t.Context()))
	return r
}

func TestDiscoveryKeepsTheContract(t *testing.T) {
	_, address := start(t, settings(t))
	writer := client(t, address)
	var prefixes atomic.Int64
	discoverytest.TestSource(t, discoverytest.Source{
		Holding: func(t testing.TB, n int) discovery.Discovery {
			prefix := fmt.Sprintf("/test-%d/", prefixes.Add(1))
			require.NoError(t, fill(t.Context(), writer, prefix+discoverytest.Query().Service+"/", n))
			return open(t, "http://"+address, func(c *etcd.Config) { c.Prefix, c.RequestTimeout = prefix, 10*time.Second })
		},
		Failing: func(t testing.TB) discovery.Discovery {
			page := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(page.Close)
			return open(t, page.URL)
		},
		Silent: func(t testing.TB) discovery.Discovery {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { _ = listener.Close() })
			return open(t, "http://"+listener.Addr().String())
		},
	})
}

func TestNodesFindEachOtherAndVanish(t *testing.T) {
	t.Parallel()
	_, address := start(t, settings(t))
	long := func(c *etcd.Config) { c.TTL = 5 * time.Minute } // No lease ends by itself in this test.
	one, two := open(t, "http://"+address, long), open(t, "http://"+address, long)
	becomes(t, one, "")
	first := register(t, one)
	require.NoError(t, two.Announce("bank", discovery.Target{Host: "fd00::2", Port: 8558}), "as a node does")
	becomes(t, one, "10.0.0.1:8558 [fd00::2]:8558")
	becomes(t, two, "10.0.0.1:8558 [fd00::2]:8558")
	found, err := one.Lookup(t.Context(), discovery.Query{Service: "bank", Port: "other"})
	require.NoError(t, err)
	require.Equal(t, "[10.0.0.1:7946 [fd00::2]:8558]", fmt.Sprint(found.List))
	require.Equal(t, `etcd: 2 keys below "/quorate/bank/"`, found.Reason)
	found, err = one.Lookup(t.Context(), discovery.Query{Service: "shop"})
	require.NoError(t, err)
	require.Empty(t, found.List, "another service")

	require.NoError(t, first.Close())
	becomes(t, two, "[fd00::2]:8558")
	require.ErrorIs(t, first.Err(), discovery.ErrClosed)
	require.NoError(t, two.Close(), "it withdraws what it has registered")
	becomes(t, one, "")
}

// The entry of a node stays for many times its TTL, and vanishes that time after the node was
// cut off. When the node can reach etcd again it registers anew.
func TestANodeThatIsCutOffVanishesAndComesBack(t *testing.T) {
	t.Parallel()
	_, address := start(t, settings(t))
	wire := newCable(t, address)
	short := func(c *etcd.Config) { c.TTL, c.RequestTimeout = 3*time.Second, 500*time.Millisecond }
	node, watcher := open(t, wire.url(), short), open(t, "http://"+address)
	r := register(t, node)
	becomes(t, watcher, "10.0.0.1:8558")
	next := time.NewTicker(20 * time.Millisecond)
	defer next.Stop()
	for watch := patience.Start(t); watch.Elapsed() < 5*time.Second; <-next.C {
		found, err := watcher.Lookup(t.Context(), discovery.Query{Service: "bank", Port: "management"})
		require.NoError(t, err)
		require.Equal(t, "[10.0.0.1:8558]", fmt.Sprint(found.List))
		require.NoError(t, r.Err())
	}
	wire.set(true)
	cut := time.Now()
	becomes(t, watcher, "")
	require.Greater(t, time.Since(cut), time.Second)
	patience.Eventually(t, func() bool { return r.Err() != nil }, "the node knows that it is not registered")
	_ = fails(t, node, "no answer from http://127.0.0.1:")
	wire.set(false)
	becomes(t, watcher, "10.0.0.1:8558")
	require.NoError(t, r.Wait(t.Context()))
	becomes(t, node, "10.0.0.1:8558")
}

func TestALeaseThatIsLostIsReplaced(t *testing.T) {
	t.Parallel()
	_, address := start(t, settings(t))
	d := open(t, "http://"+address, func(c *etcd.Config) { c.TTL = 15 * time.Second })
	r := register(t, d)
	operator := client(t, address)
	leases, err := operator.Leases(t.Context())
	require.NoError(t, err)
	require.Len(t, leases.Leases, 1)
	_, err = operator.Revoke(t.Context(), leases.Leases[0].ID)
	require.NoError(t, err)
	const key = "/quorate/bank/10.0.0.1:7946"
	lease := func() int64 {
		read, err := operator.Get(t.Context(), key)
		require.NoError(t, err)
		if len(read.Kvs) == 0 {
			return 0
		}
		return read.Kvs[0].Lease
	}
	var second int64
	watch := patience.Start(t)
	patience.Eventually(t, func() bool {
		second = lease()
		return second != 0
	}, "the node has registered again")
	require.Less(t, watch.Elapsed(), 12*time.Second, "sooner than the lease would have ended")
	require.NotEqual(t, int64(leases.Leases[0].ID), second)
	require.NoError(t, r.Wait(t.Context()))
	becomes(t, d, "10.0.0.1:8558")

	// A key that was deleted without its lease is put again, under the same lease.
	_, err = operator.Delete(t.Context(), key)
	require.NoError(t, err)
	patience.Eventually(t, func() bool { return lease() == second }, "the key is there again")
	becomes(t, d, "10.0.0.1:8558")
}

// A node that comes back under its address replaces the entry that it has left, and the end of
// the old lease does not take the new entry away.
func TestANodeThatComesBackReplacesItsEntry(t *testing.T) {
	t.Parallel()
	_, address := start(t, settings(t))
	old, fresh := open(t, "http://"+address), open(t, "http://"+address)
	_ = register(t, old)
	_ = register(t, fresh)
	becomes(t, fresh, "10.0.0.1:8558")
	require.NoError(t, old.Close())
	found, err := fresh.Lookup(t.Context(), discovery.Query{Service: "bank", Port: "management"})
	require.NoError(t, err)
	require.Equal(t, "[10.0.0.1:8558]", fmt.Sprint(found.List))
	read, err := client(t, address).Get(t.Context(), "/quorate/bank/", clientv3.WithPrefix())
	require.NoError(t, err)
	require.Len(t, read.Kvs, 1)
}

// Keys of other programs below the prefix are left out and counted. That one key is written and
// another one deleted is noticed, although their number is the same.
func TestWhatIsNoEntryIsLeftOut(t *testing.T) {
	t.Parallel()
	_, address := start(t, settings(t))
	d, writer := open(t, "http://"+address), client(t, address)
	for key, value := range map[string]string{
		"a": "", "b": "hello", "c": `{"host":"A","port":1}`, "d": `{"host":"d.example","port":1}` + strings.Repeat(" ", 5000),
		"e": `{"host":"a.example","port":1}`, "f": `{"host":"a.example","port":1}`,
	} {
		_, err := writer.Put(t.Context(), "/quorate/bank/"+key, value)
		require.NoError(t, err)
	}
	becomes(t, d, "a.example:1")
	found, err := d.Lookup(t.Context(), discovery.Query{Service: "bank"})
	require.NoError(t, err)
	require.Equal(t, `etcd: 6 keys below "/quorate/bank/", 4 of them no entries of nodes`, found.Reason)
	_, err = writer.Txn(t.Context()).Then(
		clientv3.OpDelete("/quorate/bank/e"), clientv3.OpDelete("/quorate/bank/f"),
		clientv3.OpPut("/quorate/bank/g", `{"host":"b.example","port":1}`), clientv3.OpPut("/quorate/bank/h", `{"host":"c.example","port":1}`),
	).Commit()
	require.NoError(t, err)
	becomes(t, d, "b.example:1 c.example:1")
}

// While etcd is away there is an error and no answer from before; when it is back, lookups find
// the nodes again.
func TestAnEtcdThatIsAwayIsAnErrorUntilItIsBack(t *testing.T) {
	t.Parallel()
	config := settings(t)
	server, address := start(t, config)
	d := open(t, "http://"+address, func(c *etcd.Config) { c.RequestTimeout = 500 * time.Millisecond })
	r := register(t, d)
	becomes(t, d, "10.0.0.1:8558")
	peer := server.Peers[0].Addr().String()
	server.Close()
	_ = fails(t, d, "no answer from http://"+address+" within 500ms")
	same, err := url.Parse("http://" + address)
	require.NoError(t, err)
	config.ListenClientUrls = []url.URL{*same}
	config.ListenPeerUrls = []url.URL{{Scheme: "http", Host: peer}}
	_, _ = start(t, config)
	becomes(t, d, "10.0.0.1:8558")
	require.NoError(t, r.Wait(t.Context()))
	require.NoError(t, d.Close(), "before the server, which is closed first otherwise")
}

// Certificates are checked on both sides, users have rights, and a refusal says which right is
// missing.
func TestTLSAndUsers(t *testing.T) {
	t.Parallel()
	dir := certificates(t)
	config := settings(t)
	https := url.URL{Scheme: "https", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{https}, []url.URL{https}
	config.ClientTLSInfo.CertFile, config.ClientTLSInfo.KeyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	config.ClientTLSInfo.TrustedCAFile, config.ClientTLSInfo.ClientCertAuth = filepath.Join(dir, "ca.pem"), true
	_, address := start(t, config)
	root := client(t, "https://"+address, func(c *clientv3.Config) { c.TLS = trust(t, dir) })
	ctx := t.Context()
	do := func(_ any, err error) { require.NoError(t, err) }
	do(root.UserAdd(ctx, "root", "secret"))
	do(root.UserGrantRole(ctx, "root", "root"))
	for _, user := range []string{"bank", "reader", "stranger"} {
		do(root.UserAdd(ctx, user, "pw-"+user))
		do(root.RoleAdd(ctx, user))
		do(root.UserGrantRole(ctx, user, user))
	}
	end := clientv3.GetPrefixRangeEnd("/quorate/")
	do(root.RoleGrantPermission(ctx, "bank", "/quorate/", end, clientv3.PermissionType(clientv3.PermReadWrite)))
	do(root.RoleGrantPermission(ctx, "reader", "/quorate/", end, clientv3.PermissionType(clientv3.PermRead)))
	do(root.AuthEnable(ctx))

	as := func(user string) func(*etcd.Config) {
		file := filepath.Join(t.TempDir(), "password")
		require.NoError(t, os.WriteFile(file, []byte("pw-"+user+"\n"), 0o600))
		return func(c *etcd.Config) {
			c.CAFile, c.CertFile, c.KeyFile = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
			c.Username, c.PasswordFile, c.RequestTimeout = user, file, 2*time.Second
		}
	}
	secure := "https://" + address
	bank := open(t, secure, as("bank"))
	_ = register(t, bank)
	becomes(t, bank, "10.0.0.1:8558")
	becomes(t, open(t, secure, as("reader")), "10.0.0.1:8558")

	err := fails(t, open(t, secure, as("stranger")), `the user "stranger" may not read keys below "/quorate/bank/"`)
	require.ErrorIs(t, err, etcd.ErrForbidden)
	require.ErrorContains(t, err, "etcdctl role grant-permission ROLE readwrite --prefix=true /quorate/bank/")
	r, err := open(t, secure, as("reader")).Register(etcd.Entry{Service: "bank", Host: "10.0.0.2", Port: 1})
	require.NoError(t, err)
	patience.Eventually(t, func() bool {
		return strings.Contains(r.Err().Error(), `the user "reader" may not write keys below "/quorate/bank/"`)
	}, "the refusal")
	err = fails(t, open(t, secure, as("bank"), func(c *etcd.Config) { c.Username = "reader" }), "or the password in")
	require.ErrorIs(t, err, etcd.ErrForbidden)
	_ = fails(t, open(t, secure, as("bank"), func(c *etcd.Config) { c.Username, c.PasswordFile = "", "" }), "user")
	_ = fails(t, open(t, secure, as("bank"), func(c *etcd.Config) { c.CAFile = "" }), "no answer from https://")
	_ = fails(t, open(t, secure, as("bank"), func(c *etcd.Config) { c.CertFile, c.KeyFile = "", "" }), "no answer from https://")
}
