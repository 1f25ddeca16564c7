// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcdtest_test

// The fixtures of the tests, in this order: the server, a client of the tests, a connection
// that can be cut, certificates, and many entries.

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/quorate/quorate/internal/patience"
)

// settings returns the settings of an etcd with one member, on loopback.
func settings(t testing.TB) *embed.Config {
	t.Helper()
	config := embed.NewConfig()
	config.Dir = t.TempDir()
	config.LogLevel = "panic"
	config.UnsafeNoFsync = true
	free := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{free}, []url.URL{free}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{free}, []url.URL{free}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	return config
}

// server is an etcd that can be closed more than once.
type server struct {
	*embed.Etcd
	once sync.Once
}

// Close closes the server the first time.
func (s *server) Close() { s.once.Do(s.Etcd.Close) }

// start runs an etcd and returns the address at which it listens.
func start(t testing.TB, config *embed.Config) (*server, string) {
	t.Helper()
	started, err := embed.StartEtcd(config)
	require.NoError(t, err)
	e := &server{Etcd: started}
	t.Cleanup(e.Close)
	patience.Receive(t, e.Server.ReadyNotify(), "etcd has started")
	return e, e.Clients[0].Addr().String()
}

// client returns a client of the tests themselves.
func client(t testing.TB, address string, edits ...func(*clientv3.Config)) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{Endpoints: []string{address}, DialTimeout: 5 * time.Second}
	for _, edit := range edits {
		edit(&config)
	}
	c, err := clientv3.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// cable is a connection to etcd that can be cut.
type cable struct {
	listener net.Listener
	to       string
	all      sync.WaitGroup

	mu    sync.Mutex // guards what follows
	cut   bool
	conns map[net.Conn]bool
}

func newCable(t testing.TB, to string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{listener: listener, to: to, conns: make(map[net.Conn]bool)}
	c.all.Go(c.accept) // Ends when the listener is closed, in the Cleanup.
	t.Cleanup(func() {
		_ = listener.Close()
		c.set(true)
		c.all.Wait()
	})
	return c
}

func (c *cable) url() string { return "http://" + c.listener.Addr().String() }

func (c *cable) accept() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.to)
		if err != nil || !c.add(near, far) {
			_ = near.Close()
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		// Both end when either side is closed, at the latest in the Cleanup.
		c.all.Go(func() { c.copy(near, far) })
		c.all.Go(func() { c.copy(far, near) })
	}
}

func (c *cable) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

func (c *cable) add(conns ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range conns {
		c.conns[conn] = true
	}
	return !c.cut
}

// set cuts the cable or mends it.
func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for conn := range c.conns {
		_ = conn.Close()
	}
	clear(c.conns)
}

// certificates writes the certificate of a CA, and one that the CA has signed for loopback, and
// returns their directory.
func certificates(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"ca.pem":   {Type: "CERTIFICATE", Bytes: caDER},
		"cert.pem": {Type: "CERTIFICATE", Bytes: der},
		"key.pem":  {Type: "EC PRIVATE KEY", Bytes: keyDER},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	return dir
}

// trust returns the TLS settings of a client of the tests with these certificates.
func trust(t testing.TB, dir string) *tls.Config {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca))
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	require.NoError(t, err)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

// fill writes entries of a service, many in a transaction.
func fill(ctx context.Context, c *clientv3.Client, prefix string, n int) error {
	const batch = 100 // etcd takes 128.
	for at := 0; at < n; at += batch {
		var puts []clientv3.Op
		for i := at; i < min(at+batch, n); i++ {
			host := fmt.Sprintf("10.%d.%d.1", i/200, i%200)
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("%s%s:7946", prefix, host), fmt.Sprintf(`{"host":%q,"port":7946}`, host)))
		}
		if _, err := c.Txn(ctx).Then(puts...).Commit(); err != nil {
			return err
		}
	}
	return nil
}
