// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/control"
)

// A registration that a later one has overtaken changes nothing. Registrations of a node that
// does not number them count in the order in which they come.
// covers F37, I21.
func TestTheLastRegistrationCounts(t *testing.T) {
	registration := func(number uint64, suspended bool) control.Registration {
		return control.Registration{Settings: six().Settings, Suspended: suspended, Number: number}
	}
	for name, c := range map[string]struct {
		said  []control.Registration
		gives bool
	}{
		"a late suspension": {[]control.Registration{registration(2, false), registration(1, true)}, true},
		"a late return":     {[]control.Registration{registration(2, true), registration(1, false)}, false},
		"in order":          {[]control.Registration{registration(1, true), registration(2, false)}, true},
		"without numbers":   {[]control.Registration{registration(0, true), registration(0, false)}, true},
		"a repetition":      {[]control.Registration{registration(2, false), registration(2, false)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			n := f.start(1, six())
			p := f.puppet(2)
			for _, r := range c.said {
				p.say(n, control.Register{Kind: "k", Registration: r})
				f.run(2 * latency)
			}
			f.run(4 * time.Second)
			hosts := false
			for _, h := range n.Inspect("k").Homes {
				hosts = hosts || h.Node == p.id
			}
			require.Equal(t, c.gives, hosts)
		})
	}
}

// A region numbers its registrations. A registration that is repeated keeps its number; one
// with another content has a higher number.
// covers F37, I21.
func TestRegistrationsAreNumbered(t *testing.T) {
	f := newFleet(t)
	p := f.puppet(1)
	n := f.start(2, six())
	f.run(2 * time.Second)
	first := last[control.Register](t, p).Registration
	require.EqualValues(t, 1, first.Number)
	f.run(2 * time.Second)
	older := last[control.Register](t, p).Registration
	require.Equal(t, 2*time.Second, older.Age-first.Age)
	older.Age = first.Age
	require.Equal(t, first, older)
	f.set(gossip.Leaving, n)
	f.run(2 * time.Second)
	again := last[control.Register](t, p).Registration
	require.True(t, again.Suspended)
	require.EqualValues(t, 2, again.Number)
}
