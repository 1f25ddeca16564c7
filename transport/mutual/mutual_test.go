// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutual_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/mutual"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// Certificate files under TLS connections. After two ends with files of their own, and how
// they connect, come faults of files and changes that are hard to see; then authorities
// that are replaced, peers that are revoked or expired, files that are watched, and TLS
// without files.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issued is a certificate with its key, as in files.
type issued struct{ certificate, key []byte }

func issue(t *testing.T, a *mutualtest.Authority, l mutualtest.Leaf) issued {
	t.Helper()
	certificate, key := mutualtest.Files(t, a.Issue(t, l))
	return issued{certificate, key}
}

// good returns a certificate that is valid now.
func good(t *testing.T, a *mutualtest.Authority, serial int64) issued {
	t.Helper()
	return issue(t, a, mutualtest.Leaf{Serial: serial})
}

func block(label string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der})
}

// end is one side of TLS connections, with its certificate files.
type end struct {
	t       *testing.T
	names   transport.TLSFiles
	files   *mutual.Files
	mu      sync.Mutex
	changes []mutual.Change
}

// newEnd writes the files and opens them. When lists is nil, no revocations are
// configured.
func newEnd(t *testing.T, own issued, trusted, lists []byte) *end {
	t.Helper()
	dir := t.TempDir()
	e := &end{t: t, names: transport.TLSFiles{
		Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), Authorities: filepath.Join(dir, "ca.pem"),
	}}
	if lists != nil {
		e.names.Revocations = filepath.Join(dir, "revoked.crl")
		e.put(e.names.Revocations, lists)
	}
	e.install(own)
	e.put(e.names.Authorities, trusted)
	var err error
	e.files, err = mutual.Open(e.names, e.changed)
	require.NoError(t, err)
	return e
}

func (e *end) changed(c mutual.Change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changes = append(e.changes, c)
}

// told returns the notified changes since its last call.
func (e *end) told() []mutual.Change {
	e.mu.Lock()
	defer e.mu.Unlock()
	told := e.changes
	e.changes = nil
	return told
}

// put replaces a file by renaming.
func (e *end) put(path string, content []byte) {
	e.t.Helper()
	require.NoError(e.t, os.WriteFile(path+".new", content, 0o600))
	require.NoError(e.t, os.Rename(path+".new", path))
}

func (e *end) install(own issued) {
	e.t.Helper()
	e.put(e.names.Certificate, own.certificate)
	e.put(e.names.Key, own.key)
}

// connect returns both ends of a connection over the loopback interface. A pipe in
// memory would block when both ends send an alert at the same time.
func connect(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	a, err = new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	b, err = l.Accept()
	require.NoError(t, err)
	for _, c := range []net.Conn{a, b} {
		patience.Bound(t, c)
		t.Cleanup(func() { _ = c.Close() })
	}
	return a, b
}

// shake has a client connect to a server, and returns both ends of the connection,
// guarded.
func shake(t *testing.T, client, server *end) (here, there net.Conn, err error) {
	t.Helper()
	a, b := connect(t)
	cfg, err := client.files.TLS().Client("127.0.0.1", "x")
	require.NoError(t, err)
	outer, inner := tls.Client(a, cfg), tls.Server(b, server.files.TLS().Server("x"))
	done := make(chan error, 1)
	go func() {
		err := inner.HandshakeContext(t.Context())
		if err == nil {
			_, err = inner.Write([]byte("!"))
		}
		if err != nil {
			_ = b.Close()
		}
		done <- err
	}()
	first := outer.HandshakeContext(t.Context())
	if first == nil { // In TLS 1.3 the client learns of a refusal at its first reading.
		_, first = io.ReadFull(outer, make([]byte, 1))
	}
	if first != nil {
		_ = a.Close()
	}
	second := <-done
	if first != nil || second != nil {
		return nil, nil, fmt.Errorf("client: %w; server: %w", orNone(first), orNone(second))
	}
	return client.files.TLS().Guard(outer, outer.ConnectionState()), server.files.TLS().Guard(inner, inner.ConnectionState()), nil
}

func orNone(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// carries sends a byte over a connection, and returns an error if it does not arrive.
func carries(from, to net.Conn) error {
	sent := make(chan error, 1)
	go func() {
		_, err := from.Write([]byte("x"))
		sent <- err
	}()
	_, err := io.ReadFull(to, make([]byte, 1))
	if err != nil {
		_ = from.Close()
	}
	if unsent := <-sent; err == nil {
		err = unsent
	}
	return err
}

// serial returns the serial number of the certificate that an end shows.
func serial(t *testing.T, e *end) int64 {
	t.Helper()
	c, err := e.files.TLS().Certificate()
	require.NoError(t, err)
	return c.Leaf.SerialNumber.Int64()
}

// covers F54: after a faulty new pair the old pair stays in use, and the fault is
// notified once.
func TestBadContentKeepsTheGoodOne(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	e := newEnd(t, good(t, ca, 1), ca.PEM(), nil)
	require.Empty(t, e.told(), "what is there at the start is no change")
	next := good(t, ca, 2)
	for name, spoil := range map[string]func(){
		"half a pair":   func() { e.put(e.names.Certificate, next.certificate) },
		"half a file":   func() { e.put(e.names.Key, next.key[:50]) },
		"no file":       func() { require.NoError(t, os.Remove(e.names.Key)) },
		"a directory":   func() { require.NoError(t, os.Remove(e.names.Key)); require.NoError(t, os.Mkdir(e.names.Key, 0o700)) },
		"expired":       func() { e.install(issue(t, ca, mutualtest.Leaf{Serial: 3, From: -2 * time.Hour, Until: -time.Hour})) },
		"not valid yet": func() { e.install(issue(t, ca, mutualtest.Leaf{Serial: 4, From: time.Hour, Until: 2 * time.Hour})) },
		"no authority":  func() { e.put(e.names.Authorities, []byte("nothing")) },
		"bad authority": func() { e.put(e.names.Authorities, block("CERTIFICATE", []byte("x"))) },
	} {
		t.Run(name, func(t *testing.T) {
			spoil()
			require.Equal(t, int64(1), serial(t, e))
			_, _, err := shake(t, e, e)
			require.NoError(t, err)
			told := e.told()
			require.Len(t, told, 1, "once: %v", told)
			require.Error(t, told[0].Err)
			require.Contains(t, told[0].Err.Error(), "tls.")
			_ = os.Remove(e.names.Key)
			e.install(good(t, ca, 1))
			e.put(e.names.Authorities, ca.PEM())
			e.files.Look()
			told = e.told()
			require.NotEmpty(t, told)
			require.NoError(t, told[len(told)-1].Err)
		})
	}
	e.put(e.names.Certificate, next.certificate)
	e.files.Look()
	e.put(e.names.Key, next.key)
	require.Equal(t, int64(2), serial(t, e), "the other half has come")
	told := e.told()
	require.Len(t, told, 2)
	require.Error(t, told[0].Err)
	require.NoError(t, told[1].Err)
}

// Two writes of the same size, within one tick of the file system's clock, are told
// apart.
func TestWritesThatLookAlikeAreToldApart(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	one, two := good(t, ca, 1), good(t, ca, 2)
	e := newEnd(t, one, ca.PEM(), nil)
	stamp := time.Now()
	for _, pair := range []struct {
		issued
		serial int64
	}{{two, 2}, {one, 1}, {two, 2}} {
		require.NoError(t, os.WriteFile(e.names.Certificate, pair.certificate, 0o600))
		require.NoError(t, os.WriteFile(e.names.Key, pair.key, 0o600))
		require.NoError(t, os.Chtimes(e.names.Certificate, stamp, stamp))
		require.NoError(t, os.Chtimes(e.names.Key, stamp, stamp))
		require.Equal(t, pair.serial, serial(t, e))
	}
}

func TestOpenNamesEveryFileWithAFault(t *testing.T) {
	ca, other := mutualtest.NewAuthority(t, "ca"), mutualtest.NewAuthority(t, "other")
	e := newEnd(t, good(t, ca, 1), ca.PEM(), ca.Revoke(t, 1))
	for path, content := range map[string][]byte{
		e.names.Key: []byte("x"), e.names.Authorities: nil, e.names.Revocations: []byte("x"),
	} {
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		e.put(path, content)
		_, err = mutual.Open(e.names, nil)
		require.ErrorContains(t, err, path)
		e.put(path, good)
	}
	e.put(e.names.Revocations, block("X509 CRL", other.Revoke(t, 1)))
	_, err := mutual.Open(e.names, nil)
	require.ErrorContains(t, err, "none of tls.authorities has signed the list of CN=other")
	e.put(e.names.Revocations, []byte(" \n"))
	_, err = mutual.Open(e.names, nil)
	require.ErrorContains(t, err, "no revocation list in the file")
}

// covers F54: an authority is replaced in three steps, with no moment in which two
// ends refuse each other. A peer that is connected by the old authority is
// disconnected when that is removed.
func TestAuthoritiesRollOver(t *testing.T) {
	before, after := mutualtest.NewAuthority(t, "before"), mutualtest.NewAuthority(t, "after")
	a, b := newEnd(t, good(t, before, 1), before.PEM(), nil), newEnd(t, good(t, before, 2), before.PEM(), nil)
	here, there, err := shake(t, a, b)
	require.NoError(t, err)
	both := append(before.PEM(), after.PEM()...)
	for _, e := range []*end{a, b} {
		e.put(e.names.Authorities, both)
		_, _, err := shake(t, a, b)
		require.NoError(t, err)
	}
	for _, e := range []*end{a, b} {
		e.install(good(t, after, 3))
		_, _, err := shake(t, a, b)
		require.NoError(t, err)
		_, _, err = shake(t, b, a)
		require.NoError(t, err)
	}
	require.NoError(t, carries(here, there), "nothing of that touched who was connected")
	require.NoError(t, carries(there, here))

	a.put(a.names.Authorities, after.PEM())
	a.files.Look()
	require.ErrorContains(t, carries(there, here), "unknown authority")
	b.put(b.names.Authorities, after.PEM())
	here, there, err = shake(t, a, b)
	require.NoError(t, err)
	require.NoError(t, carries(here, there))
	require.NoError(t, carries(there, here))
}

// covers F54: a revoked peer is refused, whichever end it is at, and no more bytes of
// a connected one are handed on.
func TestRevokedPeerIsRefused(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	a, b := newEnd(t, good(t, ca, 1), ca.PEM(), ca.Revoke(t, 1)), newEnd(t, good(t, ca, 2), ca.PEM(), ca.Revoke(t, 1))
	here, there, err := shake(t, a, b)
	require.NoError(t, err)
	a.put(a.names.Revocations, block("X509 CRL", ca.Revoke(t, 2, 7, 2)))
	_, _, err = shake(t, a, b)
	require.ErrorIs(t, err, mutual.ErrRevoked)
	_, _, err = shake(t, b, a)
	require.ErrorIs(t, err, mutual.ErrRevoked)
	require.ErrorContains(t, err, "serial number 2 of CN=ca")
	require.ErrorIs(t, carries(there, here), mutual.ErrRevoked)

	b.install(good(t, ca, 3))
	here, there, err = shake(t, a, b)
	require.NoError(t, err, "it has another certificate")
	require.NoError(t, carries(there, here))
	a.put(a.names.Revocations, []byte("rubbish"))
	b.install(good(t, ca, 2))
	_, _, err = shake(t, a, b)
	require.ErrorIs(t, err, mutual.ErrRevoked, "what was revoked stays so while the list is bad")
}

// An expired peer is refused at the handshake.
func TestExpiredPeerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := mutualtest.NewAuthority(t, "ca")
		a := newEnd(t, good(t, ca, 1), ca.PEM(), nil)
		b := newEnd(t, issue(t, ca, mutualtest.Leaf{Serial: 2, From: -time.Hour, Until: 10 * time.Second}), ca.PEM(), nil)
		_, _, err := shake(t, a, b)
		require.NoError(t, err)
		<-time.After(11 * time.Second)
		_, _, err = shake(t, a, b)
		require.ErrorContains(t, err, "expired")
		_, _, err = shake(t, b, a)
		require.ErrorContains(t, err, "expired")
	})
}

// Watch notices changes without a handshake.
func TestWatchLooksFromTimeToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := mutualtest.NewAuthority(t, "ca")
		e := newEnd(t, good(t, ca, 1), ca.PEM(), nil)
		ctx, stop := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { e.files.Watch(ctx) })
		e.install(good(t, ca, 2))
		<-time.After(6 * time.Second)
		synctest.Wait()
		stop()
		watching.Wait()
		require.Equal(t, []mutual.Change{{Files: fmt.Sprintf("tls.certificate %s with tls.key %s", e.names.Certificate, e.names.Key)}}, e.told())
	})
}

// Without files, nothing is revoked and nothing changes.
func TestCertificatesFromElsewhere(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	e := newEnd(t, good(t, ca, 1), ca.PEM(), nil)
	fixed := &mutual.TLS{Certificate: e.files.TLS().Certificate, Authorities: e.files.TLS().Authorities}
	here, there := net.Pipe()
	defer func() { _, _ = here.Close(), there.Close() }()
	require.Equal(t, here, fixed.Guard(here, tls.ConnectionState{}))
	require.Error(t, fixed.Verify(tls.ConnectionState{}))
}
