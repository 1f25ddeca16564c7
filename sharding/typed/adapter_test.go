// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/rpc"
	"github.com/quorate/quorate/sharding"
)

type (
	plain  struct{}
	keeps  struct{ plain }
	waits  struct{ plain }
	does   struct{ plain }
	marked interface{ mark() }
)

func (plain) mark() {}

func (keeps) Snapshot(*sharding.Context) ([]byte, error) { return nil, nil }
func (keeps) Restore(*sharding.Context, []byte) error    { return nil }
func (waits) ReceiveTimeout(*sharding.Context) error     { return nil }
func (does) Snapshot(*sharding.Context) ([]byte, error)  { return nil, nil }
func (does) Restore(*sharding.Context, []byte) error     { return nil }
func (does) ReceiveTimeout(*sharding.Context) error      { return nil }

// An adapter has the optional interfaces of its entity, and no others: the runtime goes by them.
func TestAdaptersHaveTheInterfacesOfTheirEntities(t *testing.T) {
	service := rpc.NewService[marked, *sharding.Context]("test.Marked")
	for _, c := range []struct {
		entity           marked
		snapshots, times bool
	}{{plain{}, false, false}, {keeps{}, true, false}, {waits{}, false, true}, {does{}, true, true}} {
		e := wrap(service, c.entity)
		_, snapshots := e.(sharding.Snapshotter)
		_, times := e.(sharding.ReceiveTimeouter)
		require.Equal(t, []bool{c.snapshots, c.times}, []bool{snapshots, times}, "%T", c.entity)
		require.NoError(t, e.(sharding.Starter).Start(nil))
		e.(sharding.Stopper).Stop(nil)
	}
	require.Nil(t, wrap[marked](service, nil))
}
