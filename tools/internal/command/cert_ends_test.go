// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/tools/internal/command"
)

// The end of each certificate of a node is said, and by the exit status whether one of them is near: as the node says,
// or as was asked.
func TestTheEndsOfTheCertificatesOfANode(t *testing.T) {
	now := time.Now()
	answer := cluster.Certificates{Self: "10.0.0.7:7946#1", Certificates: []cluster.Certificate{
		{Section: "transport.tls", File: "node.pem", Name: "CN=node", ValidFrom: now.Add(-time.Hour), ValidUntil: now.Add(240 * time.Hour)},
		{Section: "transport.tls", File: "ca.pem", Name: "CN=bank", Authority: true, ValidFrom: now, ValidUntil: now.Add(2400 * time.Hour)},
	}}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/certificates" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer node.Close()
	ends := func(want int, args ...string) string {
		t.Helper()
		status, stdout, stderr := cert(t, t.TempDir(), append([]string{"ends", "-node", node.URL}, args...)...)
		require.Equal(t, want, status, stdout+stderr)
		return stdout
	}
	text := ends(command.StatusOK)
	require.Contains(t, text, "transport.tls certificate node.pem: valid until ")
	require.Contains(t, text, ", 10 days from now\n")
	require.Contains(t, text, "transport.tls authority ca.pem: valid until ")
	ends(command.StatusUsage, "-left", "336h")
	answer.Certificates[1].Warning = "the authority ends"
	ends(command.StatusUsage)
	answer.Certificates = nil
	require.Contains(t, ends(command.StatusOK), "the node has no certificates")
}
