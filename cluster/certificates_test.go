// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// asked asks a node over HTTP.
func asked(t *testing.T, node *cluster.Node, path string, into any) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + node.ManagementAddress() + path)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, json.NewDecoder(response.Body).Decode(into))
}

// A node whose certificate ends soon is ready, and warns; metrics and the route have the end. New files are in use, and
// the warning is gone, without a restart.
func TestANodeTellsBeforeItsCertificateEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority := mutualtest.NewAuthority(t, "bank")
	short := mutualtest.Leaf{From: -time.Hour, Until: 20 * time.Minute}
	files := authority.Write(t, dir, authority.Issue(t, short))
	path, _ := lone(t, "management: {address: \"127.0.0.1:0\"}")
	reader := metertest.New()
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithMeterProvider(reader.Provider()),
		cluster.WithChange(func(c *cluster.Config) { c.Transport.TLS = files }))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Membership().Close(); _ = node.Close() })
	require.NoError(t, node.AwaitUp(patience.Context(t)))
	patience.Eventually(t, func() bool { return len(node.Ready()) == 0 }, "a node alone becomes ready")
	ends := func() (own cluster.Certificate, warnings string) {
		var status management.HealthStatus
		asked(t, node, "/health/ready", &status)
		var got cluster.Certificates
		asked(t, node, "/v1/certificates", &got)
		require.Equal(t, node.Self().String(), got.Self)
		require.Len(t, got.Certificates, 2)
		require.True(t, got.Certificates[1].Authority)
		return got.Certificates[0], strings.Join(status.Warnings, "\n")
	}
	own, warnings := ends()
	require.Contains(t, warnings, "transport.tls: the certificate CN=node (127.0.0.1) in "+files.Certificate+" expires within a day, on ")
	require.Contains(t, warnings, own.Warning)
	require.False(t, own.Authority)
	left := reader.Value(t, "quorate.certificate.left", attribute.String("quorate.certificate.role", "own"), attribute.String("quorate.section", "transport.tls"))
	require.InDelta(t, time.Until(own.ValidUntil).Seconds(), left, 60)
	authority.Write(t, dir, authority.Issue(t, mutualtest.Leaf{From: -time.Hour, Until: 20 * time.Hour}))
	own, warnings = ends()
	require.Empty(t, warnings)
	require.Greater(t, time.Until(own.ValidUntil), 19*time.Hour)
}
