// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/rpc"
	"github.com/quorate/quorate/sharding"
)

type (
	plain struct{}
	keeps struct{ plain }
	waits struct{ plain }
	does  struct{ plain }
	wrong struct{ plain }
	// named is a service with a method that has the name of an optional one.
	marked interface{ mark() }
	named  interface {
		mark()
		Restore() int
	}
	serves struct{ plain }
)

func (plain) mark() {}

func (serves) Restore() int { return 0 }

func (wrong) Stop(*sharding.Context) error { return nil }

func (keeps) Snapshot(*sharding.Context) ([]byte, error) { return nil, nil }
func (keeps) Restore(*sharding.Context, []byte) error    { return nil }
func (waits) ReceiveTimeout(*sharding.Context) error     { return nil }
func (does) Snapshot(*sharding.Context) ([]byte, error)  { return nil, nil }
func (does) Restore(*sharding.Context, []byte) error     { return nil }
func (does) ReceiveTimeout(*sharding.Context) error      { return nil }

// An adapter has the optional interfaces of its entity, and no others: the runtime goes by them.
func TestAdaptersHaveTheInterfacesOfTheirEntities(t *testing.T) {
	service, checker := rpc.NewService[marked, *sharding.Context]("test.Marked"), sharding.EntityChecker(reflect.TypeFor[marked]())
	for _, c := range []struct {
		entity           marked
		snapshots, times bool
	}{{plain{}, false, false}, {keeps{}, true, false}, {waits{}, false, true}, {does{}, true, true}} {
		e := wrap(service, c.entity, checker)
		_, snapshots := e.(sharding.Snapshotter)
		_, times := e.(sharding.ReceiveTimeouter)
		require.Equal(t, []bool{c.snapshots, c.times}, []bool{snapshots, times}, "%T", c.entity)
		require.NoError(t, e.(sharding.Starter).Start(nil))
		e.(sharding.Stopper).Stop(nil)
	}
	err := wrap[marked](service, wrong{}, checker).(sharding.Starter).Start(nil)
	require.ErrorContains(t, err, "method Stop of typed.wrong is a func(*sharding.Context) error, and has to be a func(*sharding.Context)")
	require.NoError(t, wrap[named](rpc.NewService[named, *sharding.Context]("test.Named"), serves{},
		sharding.EntityChecker(reflect.TypeFor[named]())).(sharding.Starter).Start(nil), "the name is that of the service")
	require.Nil(t, wrap[marked](service, nil, checker))
}
