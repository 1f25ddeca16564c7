// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingpolicy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/plugins/internal/policies/downingpolicy"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

func marshal(f *testing.F, m proto.Message) []byte {
	f.Helper()
	b, err := proto.Marshal(m)
	require.NoError(f, err)
	return b
}

// FuzzReply reads bytes as an answer of a plugin. An answer that is accepted names nothing
// that is not in the request.
//
// covers F60.
func FuzzReply(f *testing.F) {
	v := downingtest.RandomSplit(newRand(7))[0]
	d, err := downing.KeepMajority{}.DecideNow(v)
	require.NoError(f, err)
	decision, err := downingpolicy.DecisionToProto(&v, &d)
	require.NoError(f, err)
	f.Add(marshal(f, decision))
	f.Fuzz(func(t *testing.T, b []byte) {
		var decision pluginv1.DowningDecideResponse
		if proto.Unmarshal(b, &decision) != nil {
			return
		}
		if d, err := downingpolicy.DecisionFromProto(&v, &decision); err == nil {
			for _, id := range d.Down {
				require.NotNil(t, v.Member(id))
			}
			_ = downing.Check(v, downing.Class{MajorityOnly: true}, d)
		}
	})
}

// FuzzRequest reads bytes as a request. A request that is accepted can be sent again, and
// arrives as it was.
func FuzzRequest(f *testing.F) {
	v := downingtest.RandomSplit(newRand(7))[0]
	request, err := downingpolicy.ViewToProto(&v)
	require.NoError(f, err)
	f.Add(marshal(f, request))
	f.Fuzz(func(t *testing.T, b []byte) {
		var decide pluginv1.DowningDecideRequest
		if proto.Unmarshal(b, &decide) != nil {
			return
		}
		if v, err := downingpolicy.ViewFromProto(&decide); err == nil {
			p, err := downingpolicy.ViewToProto(&v)
			require.NoError(t, err)
			again, err := downingpolicy.ViewFromProto(p)
			require.NoError(t, err)
			requireSameView(t, v, again)
		}
	})
}
