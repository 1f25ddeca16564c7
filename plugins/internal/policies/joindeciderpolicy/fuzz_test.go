// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package joindeciderpolicy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/plugins/internal/policies/joindeciderpolicy"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// FuzzReply reads bytes as an answer of a plugin. An answer that is accepted names nothing
// that is not in the request, and forms no cluster where there is one.
//
// covers F60.
func FuzzReply(f *testing.F) {
	o := ready()
	o.Points[1].SeedNodes = []discovery.Target{o.Points[1].Point}
	for _, d := range []*pluginv1.JoinDeciderDecideResponse{
		{Reason: "why"}, {Action: pluginv1.JoinAction_JOIN_ACTION_JOIN, SeedNode: []uint32{0}}, {Action: pluginv1.JoinAction_JOIN_ACTION_FORM},
	} {
		f.Add(wiretest.Bytes(f, d))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var reply pluginv1.JoinDeciderDecideResponse
		if proto.Unmarshal(b, &reply) != nil {
			return
		}
		if d, err := joindeciderpolicy.DecisionFromProto(&o, &reply); err == nil {
			require.NoError(t, d.Check(o))
			require.NotEqual(t, bootstrap.Form, d.Action)
		}
	})
}

// FuzzRequest reads bytes as a request. A request that is accepted can be sent again, and
// arrives as it was.
func FuzzRequest(f *testing.F) {
	for seed := range uint64(3) {
		o := drawn(seed)
		request, err := joindeciderpolicy.ObservationsToProto(&o)
		require.NoError(f, err)
		f.Add(wiretest.Bytes(f, request))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o, again, ok := wiretest.Again(t, b, new(pluginv1.JoinDeciderDecideRequest),
			joindeciderpolicy.ObservationsFromProto, joindeciderpolicy.ObservationsToProto)
		if ok {
			require.Equal(t, o, again)
		}
	})
}
