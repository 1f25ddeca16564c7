// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dnstest_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/discovery/dns/dnstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resolver returns the resolver of the standard library, which shares no code with the server.
func resolver(server *dnstest.Server) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, network, server.Addr())
	}}
}

func TestServerAnswersAsARealOneDoes(t *testing.T) {
	server := dnstest.Start(t)
	r := resolver(server)
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("10.0.1.%d", i))
	}
	server.Set("many.example.", "A", time.Minute, many...)
	server.Set("Bank.example.", "CNAME", time.Minute, "node.example.")
	server.Set("node.example.", "AAAA", time.Minute, "fd00::1")
	server.Set("_a._b.example.", "SRV", time.Minute, "1 2 3 node.example.")

	addresses, err := r.LookupHost(t.Context(), "bank.EXAMPLE.")
	require.NoError(t, err)
	require.Equal(t, []string{"fd00::1"}, addresses)
	addresses, err = r.LookupHost(t.Context(), "many.example.")
	require.NoError(t, err, "truncated, and whole over TCP")
	require.Len(t, addresses, len(many))
	_, services, err := r.LookupSRV(t.Context(), "a", "b", "example.")
	require.NoError(t, err)
	require.Equal(t, net.SRV{Target: "node.example.", Port: 3, Priority: 1, Weight: 2}, *services[0])
	server.Remove("node.example.")
	_, err = r.LookupHost(t.Context(), "node.example.")
	var missing *net.DNSError
	require.ErrorAs(t, err, &missing)
	require.True(t, missing.IsNotFound)
	require.Positive(t, server.Asked("NODE.example.", "AAAA"))
}

func TestRecordIsReplacedAndOthersStay(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("bank.", "A", time.Minute, "10.0.0.1")
	server.Set("bank.", "AAAA", time.Minute, "fd00::1")
	server.Set("bank.", "A", time.Minute, "10.0.0.2")
	addresses, err := resolver(server).LookupHost(t.Context(), "bank.")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"10.0.0.2", "fd00::1"}, addresses)
	require.Panics(t, func() { server.Set("bank.", "A", 0, "not an address") })
}

func TestInterceptorSaysWhatIsSent(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("bank.", "A", time.Minute, "10.0.0.1")
	var seen sync.Map
	server.Intercept(func(e dnstest.Exchange) [][]byte {
		if e.Kind == "A" {
			seen.Store(e.Network+" "+e.Name, true)
		}
		forged := append([]byte{}, e.Answer...)
		forged[0]++ // The id.
		return [][]byte{forged, e.Answer}
	})
	addresses, err := resolver(server).LookupHost(t.Context(), "bank.")
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.1"}, addresses)
	asked, _ := seen.Load("udp bank.")
	require.Equal(t, true, asked)
}
