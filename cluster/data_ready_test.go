// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
)

// isReady returns why a node is not ready.
func isReady(n *clustertest.Node) error {
	if why := n.Ready(); len(why) > 0 {
		return errors.New(strings.Join(why, "; "))
	}
	return nil
}

// Who restarts nodes one by one, and waits until each is ready, never loses the majority of the data to one crash:
// three nodes with default settings, one of them restarted in order, and another one killed as soon as that is ready.
func TestOneCrashAfterOneRestartLeavesTheDataItsMajority(t *testing.T) {
	visits := ddata.NewKey[crdt.GCounter]("visits")
	add := func(ctx context.Context, n *clustertest.Node, key ddata.Key[crdt.GCounter], level ddata.Consistency) {
		_, err := ddata.Update(ctx, n, key, level, func(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v.Add(at, 1), nil })
		require.NoError(t, err)
	}
	for i, after := range []int{0, 0, 10, 50, 150, 300, 600, 1000} {
		moment := time.Duration(after) * time.Millisecond
		t.Run(fmt.Sprintf("%d/%v", i, moment), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := clustertest.Start(t, 3)
				c.AwaitConverged()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				for k := range 200 {
					add(ctx, c.Node(0), ddata.NewKey[crdt.GCounter](fmt.Sprint(k)), ddata.All())
				}
				add(ctx, c.Node(0), visits, ddata.All())
				goes := c.Node(1)
				c.Leave(goes)
				back := c.Add(clustertest.WithAddress(goes.Address()))
				c.Await("all are ready", func() error {
					var why []error
					for _, n := range c.Nodes() {
						why = append(why, isReady(n))
					}
					return errors.Join(why...)
				})
				c.Advance(moment)
				victim := c.Node(2 * (i % 2)) // The others are 0 and 2.
				c.Kill(victim)
				for _, n := range c.Nodes() {
					limited, cancel := context.WithTimeout(ctx, 20*time.Second)
					add(limited, n, visits, ddata.Majority())
					v, err := ddata.Get(limited, n, visits, ddata.Majority())
					cancel()
					require.NoError(t, err)
					require.GreaterOrEqual(t, v.Value(), uint64(2))
				}
				require.NoError(t, isReady(back))
			})
		})
	}
}
