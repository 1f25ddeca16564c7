// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
	"github.com/quorate/quorate/transport/transporttest"
)

// Certificates that are replaced while nodes run: a node whose files a test replaces
// (holder), then the replacement under traffic, and files with faults.

// holder is a node whose certificates are in files that a test replaces.
type holder struct {
	*transporttest.Node

	t     *testing.T
	names transport.TLSFiles
}

// put replaces a file by renaming.
func (h *holder) put(path string, blocks ...*pem.Block) {
	h.t.Helper()
	var text []byte
	for _, b := range blocks {
		text = append(text, pem.EncodeToMemory(b)...)
	}
	require.NoError(h.t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(h.t, os.Rename(path+".new", path))
}

// trust replaces the authorities.
func (h *holder) trust(all ...*mutualtest.Authority) {
	h.t.Helper()
	var blocks []*pem.Block
	for _, a := range all {
		blocks = append(blocks, &pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate.Raw})
	}
	h.put(h.names.Authorities, blocks...)
}

// install replaces the node's certificate.
func (h *holder) install(a *mutualtest.Authority) {
	h.t.Helper()
	cert := a.Issue(h.t, mutualtest.Leaf{})
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	require.NoError(h.t, err)
	h.put(h.names.Certificate, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	h.put(h.names.Key, &pem.Block{Type: "PRIVATE KEY", Bytes: key})
}

// revoke replaces the revocation list by one of serial numbers.
func (h *holder) revoke(a *mutualtest.Authority, serials ...int64) {
	h.t.Helper()
	der := a.Revoke(h.t, time.Now().UnixNano(), serials...)
	h.put(h.names.Revocations, &pem.Block{Type: "X509 CRL", Bytes: der})
}

// hold starts a node whose certificate, authorities and revocations are in files.
func hold(t *testing.T, n *network, uid uint64, a *mutualtest.Authority) *holder {
	t.Helper()
	dir := t.TempDir()
	h := &holder{t: t, names: transport.TLSFiles{
		Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"),
		Authorities: filepath.Join(dir, "ca.pem"), Revocations: filepath.Join(dir, "crl.pem"),
	}}
	h.install(a)
	h.trust(a)
	h.revoke(a)
	cfg := transporttest.Config()
	cfg.TLS, cfg.GiveUpAfter = h.names, cfg.MaxSilence
	h.Node = transporttest.Start(t, n, transporttest.Spec{UID: gossip.UID(uid), Config: cfg}, nil)
	return h
}

// covers F54, I35: a certificate, then the authority, are replaced under traffic both
// ways: no message is lost, doubled or out of order, and no connection ends before the
// old authority is removed. Then a node's certificate is revoked, and its messages are
// no longer handled.
func TestCertificatesAreReplacedUnderTraffic(t *testing.T) {
	t.Parallel()
	overBoth(t, replaceUnderTraffic)
}

func replaceUnderTraffic(t *testing.T, network func(bool) *network) {
	t.Helper()
	before, after := mutualtest.NewAuthority(t, "ca"), mutualtest.NewAuthority(t, "ca")
	n := network(false)
	a, b := hold(t, n, 1, before), hold(t, n, 2, before)
	stop := make(chan struct{})
	var sending sync.WaitGroup
	var sent [2]atomic.Int64
	for i, from := range []*holder{a, b} {
		to := []*holder{b, a}[i]
		sending.Go(func() {
			lane := from.Lane(to.Self(), machine.LaneMessage)
			for {
				select {
				case <-stop:
					return
				default:
					transporttest.Send(t, lane, int(sent[i].Load()))
					if sent[i].Add(1)%100 == 0 { // The sender is no faster than the other end.
						to.UntilReceived(t, int(sent[i].Load()))
					}
				}
			}
		})
	}
	step := func(what string, do func()) {
		do()
		for range 3 { // Handshakes look at the files at once; traffic goes on meanwhile.
			_, err := a.Probe(t.Context(), b.Self().Address)
			require.NoError(t, err, what)
			_, err = b.Probe(t.Context(), a.Self().Address)
			require.NoError(t, err, what)
		}
		at := [2]int64{sent[0].Load(), sent[1].Load()}
		b.UntilReceived(t, int(at[0]))
		a.UntilReceived(t, int(at[1]))
	}
	step("start", func() {})
	connected := a.Counters().Lanes[machine.LaneMessage].Connects
	step("another certificate", func() { a.install(before); b.install(before) })
	step("both authorities", func() { a.trust(before, after); b.trust(before, after) })
	step("a certificate of the new one", func() { a.install(after); b.install(after) })
	require.Equal(t, connected, a.Counters().Lanes[machine.LaneMessage].Connects, "no connection ended")
	step("the new authority alone", func() { a.trust(after); b.trust(after); a.revoke(after); b.revoke(after) })
	require.Greater(t, a.Counters().Lanes[machine.LaneMessage].Connects, connected, "who was connected by the old one connected again")
	close(stop)
	sending.Wait()
	b.UntilReceived(t, int(sent[0].Load()))
	a.UntilReceived(t, int(sent[1].Load()))
	b.RequireSequence(t, a.Self(), int(sent[0].Load()))
	a.RequireSequence(t, b.Self(), int(sent[1].Load()))
	t.Logf("%d messages", sent[0].Load()+sent[1].Load())

	a.revoke(after, 2) // The serial number of every certificate of these tests.
	_, err := a.Probe(t.Context(), b.Self().Address)
	require.Equal(t, transport.ReasonCertificate, transporttest.Refusal(t, err).Reason)
	require.ErrorContains(t, err, "was revoked")
	_, err = b.Probe(t.Context(), a.Self().Address)
	require.Equal(t, transport.ReasonCertificate, transporttest.Refusal(t, err).Reason)
	received := a.Counters().Received
	_ = b.Lane(a.Self(), machine.LaneMessage).Append(transporttest.Service, transporttest.Number(0))
	down := transporttest.UntilNotice(t, b.Node, func(d transport.PeerDown) bool { return d.Peer.Address == a.Self().Address && d.Err != nil })
	require.Error(t, down.Err)
	require.Equal(t, received, a.Counters().Received, "nothing of it is handed on")
}

// covers F54: a fault of a new certificate is noticed at once, and the old certificate
// stays in use.
func TestBadCertificateFilesAreNoticed(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	n := newNetwork(false)
	a, b := hold(t, n, 1, ca), hold(t, n, 2, ca)
	a.put(a.names.Key, &pem.Block{Type: "PRIVATE KEY", Bytes: []byte("half")})
	_, err := a.Probe(t.Context(), b.Self().Address)
	require.NoError(t, err)
	bad := transporttest.UntilNotice(t, a.Node, func(c transport.Certificates) bool { return c.Err != nil })
	require.Contains(t, bad.Files, a.names.Key)
	a.install(ca)
	_, err = a.Probe(t.Context(), b.Self().Address)
	require.NoError(t, err)
	transporttest.UntilNotice(t, a.Node, func(c transport.Certificates) bool { return c.Err == nil && c.Files == bad.Files })
}
