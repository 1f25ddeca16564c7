// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
)

// A row is everything that a part needs: the part starts in the order of the table, shows
// itself, and stops in the reverse order, even if a later part cannot start.
func TestPartsStartInOrderAndStopInReverse(t *testing.T) {
	var saw []string
	row := func(name string, fails error) part {
		return part{
			name: name,
			start: func(context.Context, *builder) error {
				saw = append(saw, "start "+name)
				return fails
			},
			stop: func(context.Context, *Node) error {
				saw = append(saw, "stop "+name)
				return errors.New(name + " ended badly")
			},
			routes:   func(*Node) []management.Route { return []management.Route{{Path: "/" + name}} },
			unready:  func(*Node) []string { return []string{name + " is busy"} },
			settings: func(configuration) []membership.Setting { return []membership.Setting{{Key: name + ".x"}} },
		}
	}
	refuses := errors.New("there is no room")
	n := &Node{parts: []part{row("a", nil), {name: "idle"}, row("b", nil), row("c", refuses), row("d", nil)}}
	require.ErrorIs(t, (&builder{Node: n}).start(t.Context()), refuses)
	require.Equal(t, []string{"start a", "start b", "start c", "stop b", "stop a"}, saw)

	saw = nil
	n = &Node{parts: []part{row("a", nil), {name: "idle"}, row("b", nil)}}
	b := &builder{Node: n}
	require.NoError(t, b.start(t.Context()))
	require.Equal(t, []management.Route{{Path: "/a"}, {Path: "/b"}}, n.routes())
	require.Equal(t, []string{"a is busy", "b is busy"}, n.unready())
	require.Equal(t, []membership.Setting{{Key: "a.x"}, {Key: "b.x"}}, b.compared())
	require.EqualError(t, n.stop(t.Context()), "b ended badly\na ended badly")
}

// Each section of a node has its defaults by the table: Default has what the section's
// own Default returns.
func TestDefaultsAreThoseOfTheParts(t *testing.T) {
	require.Equal(t, membership.Default(), Default().membership())
	c := Default()
	c.Cluster.Name, c.Node.Address = "test", "127.0.0.1:7946"
	require.NoError(t, c.Validate())
	require.NoError(t, c.Sharding.Validate())
	require.NoError(t, c.Management.Validate())
	require.NoError(t, c.Telemetry.Validate())
}
