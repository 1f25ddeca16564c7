// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package processes_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// Nodes that do not start, or end, and say why: first a wrong file and a port that is in
// use, then nodes of another name or protocol, then TLS with certificates that are missing
// or of another authority, last a data directory that cannot be written.

// refusedToStart waits for the end of a process that must not start. The process exits with
// the status, and has never printed its first line. refusedToStart returns its log.
func (n *node) refusedToStart(status int) string {
	n.city.t.Helper()
	require.Equal(n.city.t, status, n.status(), "%s", n.log)
	require.Error(n.city.t, <-n.Hello(), "it greeted, so it had started")
	return n.log.String()
}

// awaitLog waits until the log of a node contains all of the texts in one line.
func (n *node) awaitLog(texts ...string) {
	n.city.t.Helper()
	n.city.await(func(context.Context) error {
		for line := range strings.Lines(n.log.String()) {
			missing := ""
			for _, text := range texts {
				if !strings.Contains(line, text) {
					missing = text
				}
			}
			if missing == "" {
				return nil
			}
		}
		return fmt.Errorf("no line of %s has all of %q:\n%s", n.address, texts, n.log)
	})
}

// TestAWrongFileIsExplained shows each fault with file, line, key and cure, and
// the status 2.
func TestAWrongFileIsExplained(t *testing.T) {
	c := newCity(t, "  fense: 3s", "  gossip-interval: often", "sharding: {number-of-shards: -1}")
	said := c.launch().refusedToStart(2)
	path := filepath.Join(c.dir, "cluster.yaml")
	for _, want := range []string{
		path + `:5: membership.fense: unknown key; did you mean "fence"?`,
		path + ":6: membership.gossip-interval: ",
		path + ":7: sharding.number-of-shards: ",
	} {
		require.Contains(t, said, want)
	}
	require.Len(t, strings.Split(strings.TrimSpace(said), "\n"), 3, "one line a fault:\n%s", said)

	c.write("cluster.yaml", "cluster: {name: bank}")
	require.Contains(t, c.launch("QUORATE_NODE__ZOOM=x").refusedToStart(2), "$QUORATE_NODE__ZOOM")
	require.Contains(t, c.launchWith([]string{"-config", "/nowhere.yaml"}).refusedToStart(2), "/nowhere.yaml")
}

// TestAPortInUseIsExplained occupies the cluster's port, then the HTTP port. The node says
// which address is taken and what to do, and ends; the cluster never hears of the node.
//
// covers F51.
func TestAPortInUseIsExplained(t *testing.T) {
	c := newCity(t)
	seed := c.settleAlone()
	before := len(seed.log.String())
	taken, err := net.Listen("tcp", c.address(1))
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()

	said := c.launch().refusedToStart(1)
	require.Contains(t, said, c.address(1))
	require.Contains(t, said, "in use")
	require.Len(t, strings.Split(strings.TrimSpace(said), "\n"), 1, "one clear error:\n%s", said)

	said = c.launchWith([]string{"-http", taken.Addr().String()}).refusedToStart(1)
	require.Contains(t, said, taken.Addr().String())
	require.Contains(t, said, "-http")
	require.Len(t, strings.Split(strings.TrimSpace(said), "\n"), 1, "one clear error:\n%s", said)

	require.NoError(t, seed.sees(t.Context(), []*node{seed}))
	for _, address := range []string{c.address(1), c.address(2)} {
		require.NotContains(t, seed.log.String()[before:], address, "the cluster heard of it")
	}
}

// stranger returns the transport of a peer with an identity of the test's choice.
func (c *city) stranger(change func(*transport.Identity)) *grpc.Transport {
	c.t.Helper()
	id := transport.Identity{
		Node:      gossip.NodeID{Address: gossip.Address{Host: "127.0.0.1", Port: 9}, UID: 99},
		Cluster:   "bank",
		Protocol:  gossip.ProtocolRange{Min: 1, Max: 1},
		ClusterID: func() gossip.ClusterID { return gossip.ClusterID{} },
	}
	change(&id)
	s, err := grpc.New(id, transport.Default())
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = s.Close() }) // The transport never listened.
	return s
}

// TestPeersOfAnotherKindAreRefused connects peers with another cluster name, and with
// protocol versions that the node does not have. Both ends say why the peer is refused and
// what to do, and the node goes on.
//
// covers F7, I32, B28.
func TestPeersOfAnotherKindAreRefused(t *testing.T) {
	c := newCity(t)
	seed := c.settleAlone()
	address, err := gossip.ParseAddress(seed.address)
	require.NoError(t, err)
	tests := map[string]struct {
		change func(*transport.Identity)
		reason transport.Reason
		says   []string
	}{
		"cluster name": {
			func(id *transport.Identity) { id.Cluster = "savings" }, transport.ReasonClusterName, []string{"savings", "give both the same name"},
		},
		"protocol": {
			func(id *transport.Identity) { id.Protocol = gossip.ProtocolRange{Min: 7, Max: 9} }, transport.ReasonProtocol, []string{"7", "9"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := c.stranger(test.change).Probe(t.Context(), address)
			var refused *transport.RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, test.reason, refused.Reason)
			for _, want := range test.says {
				require.ErrorContains(t, err, want)
			}
			seed.awaitLog("connection refused", test.reason.String(), "127.0.0.1:9#")
		})
	}
	_, err = c.stranger(func(*transport.Identity) {}).Probe(t.Context(), address)
	require.NoError(t, err, "one of the same kind is let in, so it was the difference that counted")
}

// TestANodeOfAnotherClusterNameEnds starts a node with another name of the cluster: the node
// says why it is refused and exits, and the cluster stays as it is.
//
// covers F7, I32.
func TestANodeOfAnotherClusterNameEnds(t *testing.T) {
	c := newCity(t)
	nodes := c.settle(2)
	stray := c.launch("QUORATE_CLUSTER__NAME=savings") // The node may be refused before it serves.
	require.Equal(t, 1, stray.status(), "%s", stray.log)
	require.Contains(t, stray.log.String(), "give both the same name")
	nodes[0].awaitLog("connection refused", "wrong cluster name", stray.address)
	c.awaitMembers(nodes...)
}

// issue writes three files: a certificate for the host of all nodes, its key, and the
// authority. It returns the section of a configuration that names the files.
func issue(c *city, a *mutualtest.Authority, name string) string {
	c.t.Helper()
	certificate, key := mutualtest.Files(c.t, a.Issue(c.t, mutualtest.Leaf{}))
	c.write(name+".pem", string(certificate))
	c.write(name+"-key.pem", string(key))
	c.write(name+"-ca.pem", string(a.PEM()))
	return fmt.Sprintf("transport: {tls: {certificate: %s.pem, key: %s-key.pem, authorities: %s-ca.pem}}", name, name, name)
}

// TestMutualTLS forms a cluster with certificates, which answers for its accounts. A client
// without a certificate and a node without TLS are refused, and the log says why.
//
// covers I35.
func TestMutualTLS(t *testing.T) {
	c := newCity(t)
	ours := mutualtest.NewAuthority(t, "ca")
	c.write("cluster.yaml", "cluster: {name: bank}", "node: {address: "+c.address(0)+"}",
		"membership: {seed-nodes: ["+c.address(0)+"]}", issue(c, ours, "node"))
	nodes := c.settle(2)
	ids := accounts(20)
	c.checkBooks(c.spend(ids, nodes), ids, nodes)

	bare, err := tls.Dial("tcp", nodes[0].address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13})
	if err == nil { // In TLS 1.3 a client ends its handshake before the server can refuse it.
		patience.Bound(t, bare)
		_, err = bare.Read(make([]byte, 1))
		require.NoError(t, bare.Close())
	}
	require.ErrorContains(t, err, "certificate required")
	nodes[0].awaitLog("connection refused", "not in certificate", "didn't provide a certificate", "transport.tls")

	plain := c.start("QUORATE_TRANSPORT__TLS__CERTIFICATE=", "QUORATE_TRANSPORT__TLS__KEY=", "QUORATE_TRANSPORT__TLS__AUTHORITIES=")
	plain.awaitLog("connection refused", "insecure", "give this node a certificate")
	nodes[0].awaitLog("connection refused", "insecure", "does not speak TLS")

	c.awaitMembers(nodes...)
}

// TestACertificateOfAnotherAuthorityIsRefused starts a node whose certificate the cluster's authority did not sign: it
// does not start where its own authorities say so, and is refused by the others where it trusts both authorities.
//
// covers I35.
func TestACertificateOfAnotherAuthorityIsRefused(t *testing.T) {
	c := newCity(t)
	ours, theirs := mutualtest.NewAuthority(t, "ca"), mutualtest.NewAuthority(t, "ca")
	foreign := issue(c, theirs, "foreign")
	require.Contains(t, foreign, "foreign-ca.pem")
	c.write("cluster.yaml", "cluster: {name: bank}", "node: {address: "+c.address(0)+"}",
		"membership: {seed-nodes: ["+c.address(0)+"]}", issue(c, ours, "node"))
	c.write("both-ca.pem", string(ours.PEM())+string(theirs.PEM()))
	seed := c.settleAlone()
	shown := []string{
		"QUORATE_TRANSPORT__TLS__CERTIFICATE=" + filepath.Join(c.dir, "foreign.pem"), "QUORATE_TRANSPORT__TLS__KEY=" + filepath.Join(c.dir, "foreign-key.pem"),
	}
	require.Contains(t, c.launch(shown...).refusedToStart(2), "transport.tls.certificate: "+filepath.Join(c.dir, "foreign.pem")+": none of ")
	alien := c.start(append(shown, "QUORATE_TRANSPORT__TLS__AUTHORITIES="+filepath.Join(c.dir, "both-ca.pem"))...)
	alien.awaitLog("connection refused", "not in certificate")
	seed.awaitLog("connection refused", "not in certificate", "unknown authority")
	c.awaitMembers(seed)
}

// TestADirectoryThatCannotBeChangedEndsTheNode puts a directory in the place of the record
// of a node that runs, so that the record can be neither written nor removed. With the next
// change of voters the node ends with status 5, so that an operator looks before it is
// started again.
//
// covers F50.
func TestADirectoryThatCannotBeChangedEndsTheNode(t *testing.T) {
	c := newCity(t)
	data := filepath.Join(c.dir, "data")
	n := c.start("QUORATE_NODE__DATA_DIR=" + data)
	other := c.start()
	c.awaitMembers(n, other)
	record := filepath.Join(data, "record")
	require.NoError(t, os.Remove(record))
	require.NoError(t, os.MkdirAll(filepath.Join(record, "in the way"), 0o700))
	c.start()
	require.Equal(t, 5, n.status(), "%s", n.log)
	lines := strings.Split(strings.TrimSpace(n.log.String()), "\n")
	require.Contains(t, lines[len(lines)-1], "can be neither written nor removed")
	require.Contains(t, lines[len(lines)-1], record)
}
