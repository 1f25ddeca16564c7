// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
)

func TestNamesPrint(t *testing.T) {
	for _, name := range []string{"", "account", "Konto 7", "日本", "a/b:c_d-e.f", "e\u0301", "😀", "\ufffd"} {
		require.True(t, gossip.IsName(name), "%q", name)
		require.Equal(t, name, gossip.Escape(name))
	}
	for name, escaped := range map[string]string{
		"a\nb": `a\nb`, "\x1b[31m": `\x1b[31m`, "a\u202eb": `a\u202eb`, "\x00": `\x00`, "\xff": `\xff`, "\u0085": `\u0085`,
		"a\tb": `a\tb`, "\u2028": `\u2028`, "\u200b": `\u200b`, "\u00a0": `\u00a0`, "\U000e0001": `\U000e0001`, "\r": `\r`,
	} {
		require.False(t, gossip.IsName(name), "%q", name)
		require.Equal(t, escaped, gossip.Escape(name))
	}
}

// What is escaped is a name, and has one line.
func TestWhatIsEscapedPrints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		escaped := gossip.Escape(text)
		require.True(t, gossip.IsName(escaped), "%q", escaped)
		require.False(t, strings.ContainsFunc(escaped, unicode.IsControl))
	})
}

// A member whose role, zone or version has characters that do not print is refused.
func TestMembersHaveNamesThatPrint(t *testing.T) {
	for name, change := range map[string]func(*gossip.Member){
		"role":    func(m *gossip.Member) { m.Roles = []string{"a\u202eb"} },
		"zone":    func(m *gossip.Member) { m.Zone = "\u200b" },
		"version": func(m *gossip.Member) { m.AppVersion = "1\x1b" },
	} {
		raw := gossip.Raw{Cluster: gossip.ClusterID{Born: 1, Nonce: 1}, Members: []*gossip.Member{{Node: gossip.NodeID{
			Address: gossip.Address{Host: "h", Port: 1}, UID: 1,
		}, Status: gossip.Joining}}}
		change(raw.Members[0])
		_, err := gossip.FromParts(raw)
		require.ErrorContains(t, err, "not printable", name)
	}
}
