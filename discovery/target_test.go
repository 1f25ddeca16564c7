// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/discovery"
)

// Texts that are contact points and texts that are not, the canonical form, the order, and a fuzz
// test of the parser.

func TestParseTarget(t *testing.T) {
	for _, tc := range []struct {
		text string
		want discovery.Target
	}{
		{"localhost:7946", discovery.Target{Host: "localhost", Port: 7946}},
		{"Node-1.Example.COM:1", discovery.Target{Host: "node-1.example.com", Port: 1}},
		{"node_1.svc.cluster.local.:65535", discovery.Target{Host: "node_1.svc.cluster.local.", Port: 65535}},
		{"127.0.0.1:80", discovery.Target{Host: "127.0.0.1", Port: 80, IP: netip.MustParseAddr("127.0.0.1")}},
		{"[::1]:80", discovery.Target{Host: "::1", Port: 80, IP: netip.MustParseAddr("::1")}},
		{"[0:0:0:0::1]:00080", discovery.Target{Host: "::1", Port: 80, IP: netip.MustParseAddr("::1")}},
		{"[::ffff:10.0.0.1]:80", discovery.Target{Host: "10.0.0.1", Port: 80, IP: netip.MustParseAddr("10.0.0.1")}},
		{"[fe80::1%eth0]:80", discovery.Target{Host: "fe80::1%eth0", Port: 80, IP: netip.MustParseAddr("fe80::1%eth0")}},
	} {
		t.Run(tc.text, func(t *testing.T) {
			got, err := discovery.ParseTarget(tc.text)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			require.NoError(t, got.Validate())
		})
	}
}

// The error of each usual mistake says what the mistake is.
//
// covers B13, see docs/verification.md.
func TestParseTargetSaysWhatIsWrong(t *testing.T) {
	for _, tc := range []struct{ name, text, message string }{
		{"empty", "", "it is empty"},
		{"port only", ":7946", "the host is empty"},
		{"port zero", "a:0", "the port 0 is not in the range"},
		{"nothing but port zero", ":0", "the port 0 is not in the range"},
		{"port too large", "a:65536", "the port 65536 is not in the range"},
		{"port far too large", "a:99999999999999999999", "is not in the range"},
		{"port negative", "a:-1", `the port "-1" is not a number`},
		{"port of letters", "a:http", `the port "http" is not a number`},
		{"no port", "a", "it has no port"},
		{"empty port", "a:", "the port is empty"},
		{"256 bytes", strings.Repeat("a", 253) + ":80", "it has 256 bytes, more than 255"},
		{"name longer than a name can be", strings.Repeat("a.", 126) + "ab:1", "it has 256 bytes, more than 255"},
		{"long part", strings.Repeat("a", 64) + ":1", "has 64 bytes, more than 63"},
		{"NUL", "a\x00b:1", "control character 0x00 at byte 1"},
		{"newline", "a:1\n", "control character 0x0a at byte 3"},
		{"delete", "a\x7f:1", "control character 0x7f"},
		{"space", " a:1", "a space at byte 0"},
		{"path", "../../etc/passwd:1", "'/' at byte 2"},
		{"backslash", `a\b:1`, `'\\' at byte 1`},
		{"user", "root@a:1", "'@' at byte 4"},
		{"query", "a:1?x", "'?' at byte 3"},
		{"scheme", "http://a:1", "it has a scheme"},
		{"not ASCII", "b\u00fccher.example:1", "xn--"},
		{"bare IPv6", "::1:80", "write an IPv6 address in brackets"},
		{"bracket open", "[::1:80", "the bracket is not closed"},
		{"bracket without port", "[::1]", "no port follows the bracket"},
		{"name in brackets", "[localhost]:1", "is not an IPv6 address"},
		{"IPv4 in brackets", "[127.0.0.1]:1", "write it without brackets"},
		{"empty brackets", "[]:1", "the host is empty"},
		{"any address", "0.0.0.0:1", "not the address of one machine"},
		{"any address of version 6", "[::]:1", "not the address of one machine"},
		{"multicast", "224.0.0.1:1", "not the address of one machine"},
		{"IPv4 out of range", "300.1.1.1:1", "looks like an IPv4 address"},
		{"IPv4 cut short", "10.1:1", "looks like an IPv4 address"},
		{"empty part", "a..b:1", "has an empty part"},
		{"dot", ".:1", "has an empty part"},
		{"hyphen", "-a:1", "begins or ends with a hyphen"},
		{"other character", "a*b:1", "'*'"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := discovery.ParseTarget(tc.text)
			require.ErrorIs(t, err, discovery.ErrBadTarget)
			require.ErrorContains(t, err, tc.message)
			require.Less(t, len(err.Error()), 400, "an error must not repeat a long text")
			require.NotContains(t, err.Error(), "\x00")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestTargetIsValidatedInItsCanonicalForm(t *testing.T) {
	ip := netip.MustParseAddr
	require.NoError(t, discovery.Target{Host: "a"}.Validate(), "the port need not be known")
	require.NoError(t, discovery.Target{Host: "a", Port: 1, IP: ip("10.0.0.1")}.Validate())
	require.NoError(t, discovery.Target{Host: "10.0.0.1", Port: 1}.Validate())
	for name, target := range map[string]discovery.Target{
		"zero":         {},
		"upper case":   {Host: "A", Port: 1},
		"brackets":     {Host: "[::1]", Port: 1},
		"port inside":  {Host: "a:1", Port: 1},
		"other IP":     {Host: "10.0.0.1", Port: 1, IP: ip("10.0.0.2")},
		"any IP":       {Host: "a", Port: 1, IP: ip("0.0.0.0")},
		"multicast IP": {Host: "a", Port: 1, IP: ip("ff02::1")},
		"mapped IP":    {Host: "a", Port: 1, IP: ip("::ffff:10.0.0.1")},
		"long form":    {Host: "0:0::1", Port: 1},
	} {
		require.ErrorIs(t, target.Validate(), discovery.ErrBadTarget, name)
	}
}

func TestTargetHasAText(t *testing.T) {
	require.Equal(t, "a:1", discovery.Target{Host: "a", Port: 1}.String())
	require.Equal(t, "[::1]:1", discovery.Target{Host: "::1", Port: 1}.String())
	require.Equal(t, "a", discovery.Target{Host: "a"}.String())
}

var drawTarget = rapid.Custom(func(t *rapid.T) discovery.Target {
	target := discovery.Target{
		Host: rapid.SampledFrom([]string{"a", "b.example", "10.0.0.9", "10.0.0.10", "::1"}).Draw(t, "host"),
		Port: rapid.SampledFrom([]uint16{1, 2, 65535}).Draw(t, "port"),
	}
	if rapid.Bool().Draw(t, "known") {
		target.IP = netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "ip")})
	}
	return target
})

// With an order that is not total, nodes that see the same targets would choose differently.
func TestTargetsAreTotallyOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawTarget.Draw(t, "a"), drawTarget.Draw(t, "b"), drawTarget.Draw(t, "c")
		require.Equal(t, a == b, a.Compare(b) == 0)
		require.Equal(t, a.Compare(b), -b.Compare(a))
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 {
			require.LessOrEqual(t, a.Compare(c), 0)
		}
	})
}

// FuzzParseTarget checks that every target that is accepted is valid, and that parsing its
// text gives the same target.
//
// covers B13, see docs/verification.md.
func FuzzParseTarget(f *testing.F) {
	for _, text := range []string{
		"", "a:1", "A.example.:7946", ":0", "10.0.0.1:80", "[::1]:80", "[fe80::1%e]:1", "[::ffff:1.2.3.4]:1",
		"::1:80", "[::1", "[::1]", "[a]:1", "[1.2.3.4]:1", "http://a:1", "a b:1", "a\x00:1", "\xff:1", "a/b:1", "a:x",
		"a:", "a", "0.0.0.0:1", "300.1.1.1:1", "a..b:1", "-a:1", "a*b:1", strings.Repeat("a", 300),
		strings.Repeat("a", 64) + ":1", strings.Repeat("a.", 126) + "ab:1", "[fe80::1%a]b]:1", "[fe80::1%A:1]:1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := discovery.ParseTarget(text)
		if err != nil {
			require.ErrorIs(t, err, discovery.ErrBadTarget)
			require.Zero(t, target)
			require.Less(t, len(err.Error()), 1000)
			return
		}
		require.NoError(t, target.Validate())
		again, err := discovery.ParseTarget(target.String())
		require.NoError(t, err)
		require.Equal(t, target, again)
	})
}
