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
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

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
	f.Add(wiretest.Bytes(f, decision))
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
	f.Add(wiretest.Bytes(f, request))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, again, ok := wiretest.Again(t, b, new(pluginv1.DowningDecideRequest), downingpolicy.ViewFromProto, downingpolicy.ViewToProto); ok {
			requireSameView(t, v, again)
		}
	})
}

// FuzzSituation reads bytes as a request without nodes and members, of a host whose plugin has
// kept them. A request that is accepted is about just those, and arrives as it was when it
// is sent again as a whole.
func FuzzSituation(f *testing.F) {
	v := downingtest.RandomSplit(newRand(7))[0]
	whole, err := downingpolicy.ViewToProto(&v)
	require.NoError(f, err)
	whole.MembersNumber = 7
	asked := new(recorder)
	plugin := served(f, asked)
	_, err = plugin.Decide(f.Context(), whole)
	require.NoError(f, err)
	situation := proto.CloneOf(whole)
	situation.Nodes, situation.Members = nil, nil
	f.Add(wiretest.Bytes(f, situation))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r pluginv1.DowningDecideRequest
		if proto.Unmarshal(b, &r) != nil {
			return
		}
		r.Nodes, r.Members, r.MembersNumber = nil, nil, whole.GetMembersNumber()
		asked.views = nil
		if _, err := plugin.Decide(t.Context(), &r); err != nil {
			return
		}
		require.NoError(t, asked.views[0].Validate())
		r.Nodes, r.Members = whole.GetNodes(), whole.GetMembers()
		v, err := downingpolicy.ViewFromProto(&r)
		require.NoError(t, err)
		requireSameView(t, v, asked.views[0])
	})
}
