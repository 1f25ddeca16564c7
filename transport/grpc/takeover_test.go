// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
	"github.com/quorate/quorate/transport/transporttest"
)

// poser is a world of processes on the host of a node that claim to be the same
// incarnation of the node, and cannot listen at the node's address.
type poser struct{ certificates *grpc.TLS }

func (p poser) New(t testing.TB, s transporttest.Spec) transport.Transport {
	opts := []grpc.Option{grpc.WithListener(noListener{}), grpc.WithNotices(s.Notices)}
	if p.certificates != nil {
		opts = append(opts, grpc.WithTLS(p.certificates))
	}
	posing, err := grpc.New(identity(s), s.Config, opts...)
	require.NoError(t, err)
	return posing
}

func (poser) Break(gossip.Address, gossip.Address) {}

// A process on the host of a node, with the node's certificate or where there are no
// certificates, opens no session in the name of the node: neither in place of an open
// session, nor on a lane that the node has not used yet. The node notices nothing.
//
// covers B24, B26, I32.
func TestAnotherProcessOfTheHostDoesNotSpeakForANode(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	shared := source(issue(t, ca, "127.0.0.1"), ca)
	for name, certificates := range map[string]*grpc.TLS{"with the same certificate": shared, "without certificates": nil} {
		for _, class := range []machine.Lane{machine.LaneMessage, machine.LaneControl} {
			n := newNetwork(false)
			if certificates != nil {
				n.tls = func(gossip.Address) *grpc.TLS { return certificates }
			}
			b, node := transporttest.Start(t, n, transporttest.Spec{UID: 2}, nil), transporttest.Start(t, n, transporttest.Spec{UID: 1}, nil)
			lane := node.Lane(b.Self(), machine.LaneControl)
			transporttest.Send(t, lane, 0)
			b.UntilReceived(t, 1)

			posing := transporttest.Start(t, poser{certificates}, transporttest.Spec{Address: node.Self().Address, UID: node.Self().UID}, nil)
			require.NoError(t, posing.Lane(b.Self(), class).Append(transporttest.Service, transporttest.Number(666)))
			answer := transporttest.UntilNotice(t, posing, func(transport.Notice) bool { return true })
			require.IsType(t, transport.Refused{}, answer, "%s, lane %d", name, class)
			transporttest.Send(t, lane, 1)
			b.UntilReceived(t, 2)
			b.RequireSequence(t, node.Self(), 2)
			require.Zero(t, node.Counters().Breaks, name)
			refused := transporttest.UntilNotice(t, b, func(n transport.Refused) bool { return n.Inbound })
			require.Equal(t, transport.ReasonTaken, refused.Err.Reason, name)
			require.NotEmpty(t, refused.Address, name)
			require.Equal(t, certificates != nil, refused.Certificate != "", name)
			require.Positive(t, posing.Counters().RefusedOutbound[transport.ReasonTaken], name)
		}
	}
}

// A process that connected first in the name of a node of its host is shut out as soon
// as the node connects, since the node confirms its own token when it is asked at its
// address.
//
// covers B24, B26.
func TestANodeShutsOutWhoSpokeForItBefore(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	certificates := source(issue(t, ca, "127.0.0.1"), ca)
	n := newNetwork(false)
	n.tls = func(gossip.Address) *grpc.TLS { return certificates }
	b, node := transporttest.Start(t, n, transporttest.Spec{UID: 2}, nil), transporttest.Start(t, n, transporttest.Spec{UID: 1}, nil)
	posing := transporttest.Start(t, poser{certificates}, transporttest.Spec{Address: node.Self().Address, UID: node.Self().UID}, nil)
	transporttest.Send(t, posing.Lane(b.Self(), machine.LaneControl), 0)
	b.UntilReceived(t, 1)

	transporttest.Send(t, node.Lane(b.Self(), machine.LaneControl), 1)
	b.UntilReceived(t, 2)
	b.RequireSequence(t, node.Self(), 2)
	refused := transporttest.UntilNotice(t, posing, func(transport.Refused) bool { return true })
	require.Equal(t, transport.ReasonTaken, refused.Err.Reason)
	require.Zero(t, node.Counters().RefusedOutbound[transport.ReasonTaken])
	require.Positive(t, b.Counters().RefusedInbound[transport.ReasonTaken])
}
