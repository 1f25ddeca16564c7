// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]gossip.Address{
		"10.0.0.1:7946": {Host: "10.0.0.1", Port: 7946},
		"node-1:1":      {Host: "node-1", Port: 1},
		"[::1]:65535":   {Host: "::1", Port: 65535},
	} {
		a, err := gossip.ParseAddress(text)
		require.NoError(t, err)
		require.Equal(t, want, a)
		require.Equal(t, text, a.String())
	}
	for text, one := range map[string]string{
		"[0:0:0:0:0:0:0:1]:1": "[::1]:1", "[2001:DB8::0001]:1": "[2001:db8::1]:1", "[::ffff:10.0.0.1]:1": "10.0.0.1:1", "Node-1.Example:1": "node-1.example:1",
	} {
		a, err := gossip.ParseAddress(text)
		require.NoError(t, err)
		require.Equal(t, one, a.String(), "one host has one spelling")
	}
	for _, text := range []string{
		"", ":", ":1", "a", "a:", "a:0", "a:65536", "a:-1", "::1:80", "[::]:80", "0.0.0.0:1", "a b:1", "a/b:1", "a\x00b:1",
		"\xff:1", strings.Repeat("a", 256) + ":1", "[a:1", "a]:1", "0.0:1",
	} {
		_, err := gossip.ParseAddress(text)
		require.Error(t, err, text)
	}
}

// Characters that a terminal, a log or a page would obey are in no host.
//
// covers B14.
func TestHostsArePrintable(t *testing.T) {
	t.Parallel()
	for r := range rune(0x10ffff) {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Z, r) {
			require.Error(t, gossip.Address{Host: "a" + string(r) + "b", Port: 1}.Validate(), "%U", r)
		}
	}
	for _, host := range []string{"a\u009b31m", "a\u202eb", "a\u2066b", "a\u200bb", "a\ufeffb", "a\u2028b", "a\u00a0b", "a\ue000b"} {
		require.Error(t, gossip.Address{Host: host, Port: 1}.Validate(), "%q", host)
	}
	for _, host := range []string{"b\u00fccher.example", "\u4f8b\u3048.jp", "node-1_a.b", "fe80::1%eth0"} {
		require.NoError(t, gossip.Address{Host: host, Port: 1}.Validate(), "%q", host)
	}
}

func TestParseNodeID(t *testing.T) {
	t.Parallel()
	n, err := gossip.ParseNodeID("[::1]:80#ff")
	require.NoError(t, err)
	require.Equal(t, gossip.NodeID{Address: gossip.Address{Host: "::1", Port: 80}, UID: 255}, n)
	require.Equal(t, "[::1]:80#ff", n.String())
	for _, text := range []string{"", "a:1", "a:1#", "a:1#0", "a:1#x", "a:1#11112222333344445", "a#1"} {
		_, err := gossip.ParseNodeID(text)
		require.Error(t, err, text)
	}
	require.Empty(t, gossip.NodeID{}.String())
	require.Equal(t, uint32(0x30), gossip.NodeID{UID: 0x1000000020}.Hash())
}

func TestAddressesAreOrderedAsText(t *testing.T) {
	t.Parallel()
	a := gossip.Address{Host: "10.0.0.10", Port: 9}
	require.Negative(t, a.Compare(gossip.Address{Host: "10.0.0.2", Port: 1}), "hosts are plain strings")
	require.Negative(t, a.Compare(gossip.Address{Host: "10.0.0.10", Port: 10}), "ports are numbers")
	require.Negative(t, gossip.NodeID{Address: a, UID: 9}.Compare(gossip.NodeID{Address: a, UID: 10}))
}

func TestNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "weakly-up", gossip.WeaklyUp.String())
	require.Equal(t, "status-99", gossip.Status(99).String())
	require.Equal(t, "terminated", gossip.Terminated.String())
	require.Equal(t, "reach-status-0", gossip.ReachStatus(0).String())
	require.Equal(t, "undecided", gossip.Undecided.String())
	require.Equal(t, "ordering-77", gossip.Ordering(77).String())
	require.Equal(t, "fault-0", gossip.Fault(0).String())
}
