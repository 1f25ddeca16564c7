// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingpolicy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins/internal/policies/downingpolicy"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// splitView returns what a node sees of a cluster of 100 members of which one is
// unreachable.
func splitView() downing.View {
	members := downingtest.Members(100)
	ids := downingtest.IDs(members)
	return downing.View{
		Self: ids[0], Members: members, Seen: ids[:99], Base: gossip.Base{ids},
		Unreachable: []gossip.Record{downingtest.Complaint(ids[0], ids[99])},
	}
}

// BenchmarkDecision measures each part of a decision but the way to the other process and
// back.
func BenchmarkDecision(b *testing.B) {
	v := splitView()
	request, err := downingpolicy.ViewToProto(&v)
	require.NoError(b, err)
	text, err := proto.Marshal(request)
	require.NoError(b, err)
	provider := downing.KeepMajority{}
	decision, err := provider.Decide(b.Context(), v)
	require.NoError(b, err)
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"to-proto", func() error { _, err := downingpolicy.ViewToProto(&v); return err }},
		{"marshal", func() error { _, err := proto.Marshal(request); return err }},
		{"unmarshal", func() error { return proto.Unmarshal(text, new(pluginv1.DowningDecideRequest)) }},
		{"from-proto", func() error { _, err := downingpolicy.ViewFromProto(request); return err }},
		{"decide", func() error { _, err := provider.Decide(b.Context(), v); return err }},
		{"check", func() error { return downing.Check(v, provider.Class(), decision) }},
	} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := part.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
