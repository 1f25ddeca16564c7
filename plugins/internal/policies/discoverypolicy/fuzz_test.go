// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverypolicy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/plugins/internal/policies/discoverypolicy"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// FuzzReply reads bytes as an answer of a plugin. An answer that is accepted has valid contact
// points, each once, and can be sent again and arrives as it was.
func FuzzReply(f *testing.F) {
	for seed := range uint64(3) {
		found := drawn(seed)
		p, err := discoverypolicy.TargetsToProto(&found)
		require.NoError(f, err)
		f.Add(wiretest.Bytes(f, p))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		found, again, ok := wiretest.Again(t, b, new(pluginv1.LookupResponse),
			targetsFromProto, discoverypolicy.TargetsToProto)
		if !ok {
			return
		}
		require.NoError(t, found.Check())
		require.Equal(t, found, again)
	})
}

// FuzzRequest reads bytes as a request. A request that is accepted can be sent again, and
// arrives as it was.
func FuzzRequest(f *testing.F) {
	f.Add(wiretest.Bytes(f, &pluginv1.LookupRequest{Service: "bank", Port: "management", Protocol: "tcp"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, again, ok := wiretest.Again(t, b, new(pluginv1.LookupRequest), discoverypolicy.QueryFromProto, discoverypolicy.QueryToProto)
		if ok {
			require.Equal(t, q, again)
		}
	})
}
