// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

func TestTheDefaultConfigurationIsValid(t *testing.T) {
	require.NoError(t, ddata.Default().Validate())
}

// Every fault is reported, at the key that it has in a file.
func TestEveryFaultOfAConfigurationIsReported(t *testing.T) {
	c := ddata.Config{
		NotifyInterval: -1, Durable: []string{"", "*", "a", "a"},
		Expire: []ddata.ExpireConfig{{Prefix: "x", After: time.Millisecond}, {}},
		Groups: []ddata.GroupConfig{
			{Prefix: "x", Replicas: -1, WriteBehind: time.Second}, {Prefix: "y", Replicas: 65, ExpireAfter: time.Millisecond}, {},
		},
	}
	var keys []string
	for _, fault := range field.Parts(c.Validate()) {
		key, _ := field.Of(fault)
		keys = append(keys, key)
	}
	require.Equal(t, []string{
		"gossip-interval", "spread-interval", "sweep-interval", "notify-interval", "max-value-bytes", "max-bytes", "write-behind-bytes", "lost-majority",
		"durable.[0]", "durable.[1]", "durable.[3]", "expire.[0].after", "expire.[1].prefix", "expire.[1].prefix", "expire.[1].after",
		"groups.[0].prefix", "groups.[0].replicas", "groups.[0].write-behind", "groups.[1].replicas", "groups.[1].expire-after", "groups.[2].prefix", "groups.[2].prefix",
	}, keys)
	c = ddata.Default()
	for i := range 65 {
		c.Groups = append(c.Groups, ddata.GroupConfig{Prefix: fmt.Sprint("g", i, "/")})
	}
	require.ErrorContains(t, c.Validate(), "groups: 65 ")
}

// What members compare says everything that they must agree upon, whatever the order in
// which it is written, and fits.
func TestSettingsThatMembersCompare(t *testing.T) {
	c := ddata.Default()
	value := func() string { return c.Settings()[0].Value }
	require.Equal(t, []membership.Setting{
		{Key: "ddata.groups", Value: `all(role="" replicas=0 durable=false expire=0s)`, MustEqual: true},
		{Key: "ddata.max-value-bytes", Value: "16777216"},
		{Key: "ddata.lost-majority", Value: "go-on"},
	}, c.Settings())
	c.Durable = []string{"b", "a*"}
	c.Expire = []ddata.ExpireConfig{{Prefix: "s/", After: time.Hour}}
	c.Groups = []ddata.GroupConfig{{Prefix: "z"}, {Prefix: "u", Replicas: 3, Role: "r", Durable: true, ExpireAfter: time.Minute}}
	before := value()
	require.Equal(t, `all(role="" replicas=0 durable=false expire=0s); durable(role="" replicas=0 durable=true expire=0s)["a*" "b"]; `+
		`s/*(role="" replicas=0 durable=false expire=1h0m0s); u*(role="r" replicas=3 durable=true expire=1m0s); z*(role="" replicas=0 durable=false expire=0s)`, before)
	slices.Reverse(c.Durable)
	slices.Reverse(c.Groups)
	require.Equal(t, before, value())
	c.Groups[0].Replicas = 4
	require.NotEqual(t, before, value())
	for i := range 50 {
		c.Groups = append(c.Groups, ddata.GroupConfig{Prefix: fmt.Sprint("long", strings.Repeat("x", i))})
	}
	long := value()
	require.LessOrEqual(t, len(long), 1024)
	c.Groups[10].Replicas++
	require.NotEqual(t, long, value())
}

// A node whose keys are grouped otherwise is refused by the cluster.
func TestANodeWithOtherGroupsIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, _ *membership.Config, c *ddata.Config) {
			if i == 1 {
				c.Expire = []ddata.ExpireConfig{{Prefix: "s/", After: time.Hour}}
			}
		}
		w.start(1)
		ctx := patience.Context(t)
		other, err := w.try()
		if err == nil { // It is refused at once, or while it starts.
			err = other.AwaitUp(ctx)
		}
		require.ErrorContains(t, err, "ddata.groups")
	})
}

// A key belongs to the longest name or prefix that fits it.
func TestTheGroupOfAKey(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.disks(1)
		configured := w.config
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			configured(i, m, c)
			c.Durable = []string{"user/admin", "u*"}
			c.Expire = []ddata.ExpireConfig{{Prefix: "user/admin", After: time.Hour}}
			c.Groups = []ddata.GroupConfig{{Prefix: "user/"}}
		}
		w.start(1)
		for key, group := range map[string]string{
			"x": "all", "u": "durable", "use": "durable", "user/": "user/*", "user/a": "user/*",
			"user/admin": "durable", "user/admin2": "user/admin*", "User/": "all",
		} {
			require.Equal(t, group, w.nodes[0].explain(key).Group.Name, "%s", key)
		}
	})
}

func TestLevelsInWords(t *testing.T) {
	for want, level := range map[string]ddata.Consistency{
		"local": ddata.Local(), "3 replicas": ddata.From(3), "majority": ddata.Majority(), "all": ddata.All(),
		"majority plus 1 of at least 3": ddata.Majority(ddata.Plus(1), ddata.MinCap(3)),
	} {
		require.Equal(t, want, level.String())
	}
	require.Zero(t, ddata.Local())
	require.Equal(t, "visits", ddata.NewKey[crdt.GCounter]("visits").String())
	require.Equal(t, ddata.NewKey[crdt.GCounter]("visits"), counter("visits"))
}
