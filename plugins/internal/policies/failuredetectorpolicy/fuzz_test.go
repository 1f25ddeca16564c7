// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package failuredetectorpolicy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/plugins/internal/policies/failuredetectorpolicy"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// FuzzReply reads bytes as an answer of a plugin. An answer that is accepted keeps the contract.
func FuzzReply(f *testing.F) {
	b := two()
	for _, p := range []*pluginv1.JudgeResponse{
		{Number: 2}, {Number: 2, Node: []uint32{1, 0}, Reason: []uint32{0, 0}, Reasons: []string{"r"}},
	} {
		f.Add(wiretest.Bytes(f, p))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p pluginv1.JudgeResponse
		if proto.Unmarshal(text, &p) != nil {
			return
		}
		if v, err := failuredetectorpolicy.VerdictsFromProto(&b, &p); err == nil {
			require.NoError(t, v.Check(b))
		}
	})
}

// FuzzRequest reads bytes as a request. A request that is accepted can be sent again, and
// arrives as it was.
func FuzzRequest(f *testing.F) {
	for seed := range uint64(3) {
		b, _ := drawn(seed)
		r, err := failuredetectorpolicy.BatchToProto(&b)
		require.NoError(f, err)
		f.Add(wiretest.Bytes(f, r))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, again, ok := wiretest.Again(t, text, new(pluginv1.JudgeRequest), failuredetectorpolicy.BatchFromProto, failuredetectorpolicy.BatchToProto)
		if ok {
			require.Equal(t, b, again)
		}
	})
}
