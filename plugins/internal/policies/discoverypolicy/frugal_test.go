// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverypolicy_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/policies/discoverypolicy"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// found is an answer with contact points that have short hosts, so that they are cheap to send.
func found(t *testing.T, n int, host func(i int) string) []byte {
	t.Helper()
	p := &pluginv1.LookupResponse{Host: make([]string, n), Port: make([]uint32, n), Ip: make([][]byte, n), Reason: "all"}
	for i := range n {
		p.Host[i], p.Port[i] = host(i), uint32(i%2)
	}
	return wiretest.Bytes(t, p)
}

// What a plugin answers costs no more than it has bytes, times a small number.
func TestAnswersAreDecodedFrugally(t *testing.T) {
	lookup := func(ctx context.Context, plugin client.Target) error {
		_, err := discoverypolicy.New(plugin).Lookup(ctx, discovery.Query{Service: "example"})
		return err
	}
	names := func(i int) string { return "h" + strconv.FormatInt(int64(i), 36) }
	wiretest.Frugal(t, lookup, found(t, 2, names))
	decode := func(b []byte) { _, _ = discoverypolicy.DecodeTargets(b) }
	long := found(t, 8000, names)
	require.NoError(t, lookup(t.Context(), client.Target{Conn: wiretest.Answering(long), Timeout: time.Hour}))
	frugal.RequireInputs(t, decode, map[string][]byte{
		"short hosts": long, "the same host": found(t, 8000, func(int) string { return "a" }), "no hosts": found(t, 10000, func(int) string { return "" }),
	})
}
