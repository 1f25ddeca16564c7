// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/internal/patience"
)

// A node that is asked to leave, by whomever, answers its clients before it leaves, also where that takes longer than
// to hand over what it hosts.
func TestNodesAnswerBeforeTheyLeave(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(ctx context.Context, from, n *node) error{
		"by itself": func(ctx context.Context, _, n *node) error { return n.member.Leave(ctx) },
		"by another": func(ctx context.Context, from, n *node) error {
			return from.member.LeaveMember(ctx, n.member.Self().String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, 2, nil)
			stays, leaves := w.nodes[0], w.nodes[1]
			c := w.ready(only(leaves.Address()))
			id := w.on(stays, c)
			answered := make(chan error, 1)
			go func() {
				_, err := c.Ask(patience.Context(t), "echo", id, []byte("wait"))
				answered <- err
			}()
			patience.Eventually(t, func() bool { return leaves.Stats().Requests == 1 }, "the entity has it")
			left := make(chan error, 1)
			go func() { left <- leave(patience.Context(t), stays, leaves) }()
			select { // So long the node could have left in.
			case <-leaves.member.Done():
				require.Fail(t, "the node has left before its client was answered")
			case <-time.After(time.Second): //quorate:realtime What could happen in that time must not.
			}
			w.release()
			require.NoError(t, <-answered)
			require.NoError(t, <-left)
			<-leaves.member.Done()
		})
	}
}

// on returns an entity that lives on a node.
func (w *world) on(n *node, c *client.Client) string {
	w.t.Helper()
	for i := range 1000 {
		id := "e" + strconv.Itoa(i)
		reply, err := c.Ask(patience.Context(w.t), "echo", id, []byte("x"))
		require.NoError(w.t, err)
		if strings.HasSuffix(string(reply), " "+n.member.Self().Address.String()) {
			return id
		}
	}
	require.Fail(w.t, "it hosts nothing")
	return ""
}

// A gateway that was closed before does not keep its node from leaving.
func TestAClosedGatewayHoldsNobody(t *testing.T) {
	t.Parallel()
	w := start(t, 2, nil)
	require.NoError(t, w.nodes[1].Close())
	again := gateway.Default()
	again.Address, again.Kinds = "127.0.0.1:0", []string{"echo"}
	second, err := gateway.Serve(t.Context(), again, w.nodes[1].system, gateway.WithLogger(quiet()))
	require.NoError(t, err)
	require.NoError(t, second.Close())
	require.NoError(t, w.nodes[1].member.Leave(patience.Expiring(t, 10*time.Second))) // Less than membership.leave-timeout.
}
