// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutual_test

import (
	"crypto/x509"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/transport/mutual"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// leaf returns a certificate with some URIs among its names.
func leaf(t *testing.T, ca *mutualtest.Authority, identities ...string) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(ca.Issue(t, mutualtest.Leaf{Identities: identities}).Certificate[0])
	require.NoError(t, err)
	return c
}

// A certificate that names clusters and roles passes for those alone; a certificate
// without such names passes unless they are required. Each refusal names the URI to
// add.
func TestCertificatesAreHeldToTheirIdentities(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	for name, c := range map[string]struct {
		identities []string
		roles      []string
		required   bool
		wants      string // Part of the error; if empty, the certificate passes.
	}{
		"nothing said":                {nil, []string{"teller"}, false, ""},
		"nothing said, required":      {nil, nil, true, "quorate://bank/<role>"},
		"other URIs say nothing":      {[]string{"spiffe://bank/teller"}, []string{"teller"}, false, ""},
		"other URIs, required":        {[]string{"spiffe://bank/teller"}, nil, true, "quorate://bank/"},
		"the role":                    {[]string{"quorate://bank/teller"}, []string{"teller"}, true, ""},
		"the role, not required":      {[]string{"quorate://bank/teller"}, []string{"teller"}, false, ""},
		"no role of many":             {[]string{"quorate://bank/teller"}, nil, true, ""},
		"a cluster without a role":    {[]string{"quorate://bank/"}, nil, true, ""},
		"a cluster without a slash":   {[]string{"quorate://bank"}, nil, true, ""},
		"a role of none":              {[]string{"quorate://bank/"}, []string{"teller"}, false, "quorate://bank/teller"},
		"all roles":                   {[]string{"quorate://bank/a", "quorate://bank/b"}, []string{"a", "b"}, true, ""},
		"one role of two":             {[]string{"quorate://bank/a"}, []string{"a", "b"}, true, "quorate://bank/b"},
		"another role":                {[]string{"quorate://bank/edge"}, []string{"teller"}, false, "quorate://bank/teller"},
		"another cluster":             {[]string{"quorate://shop/teller"}, []string{"teller"}, false, "quorate://bank/"},
		"roles of another cluster":    {[]string{"quorate://bank/edge", "quorate://shop/teller"}, []string{"teller"}, false, "quorate://bank/teller"},
		"a role with odd characters":  {[]string{"quorate://bank/a%20b%2Fc"}, []string{"a b/c"}, true, ""},
		"a port is not of a cluster":  {[]string{"quorate://bank:1/teller"}, []string{"teller"}, false, "quorate://bank/"},
		"a query says something else": {[]string{"quorate://bank/teller?x=1"}, []string{"teller"}, false, "quorate://bank/"},
		"a user is not a cluster":     {[]string{"quorate://bank@shop/teller"}, []string{"teller"}, false, "quorate://bank/"},
	} {
		err := mutual.Identity{Cluster: "bank", Required: c.required}.Covers(leaf(t, ca, c.identities...), c.roles)
		if c.wants == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, mutual.ErrIdentity, name)
		require.ErrorContains(t, err, c.wants, name)
	}
}

// The certificate of a node is for both ends of a connection, and says so.
func TestCertificatesOfNodesAreForBothEnds(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	const server, client = x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	for name, c := range map[string]struct {
		usages []x509.ExtKeyUsage
		ok     bool
	}{
		"none": {[]x509.ExtKeyUsage{}, false}, "server": {[]x509.ExtKeyUsage{server}, false}, "client": {[]x509.ExtKeyUsage{client}, false},
		"both": {[]x509.ExtKeyUsage{client, server}, true}, "any": {[]x509.ExtKeyUsage{x509.ExtKeyUsageAny}, true},
	} {
		own, err := x509.ParseCertificate(ca.Issue(t, mutualtest.Leaf{Usages: c.usages}).Certificate[0])
		require.NoError(t, err)
		err = mutual.Identity{Cluster: "bank"}.Check(own)
		if c.ok {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, mutual.ErrIdentity, name)
		require.ErrorContains(t, err, "both extended key usages", name)
	}
}

func TestAClusterThatNoCertificateCanNameIsRefused(t *testing.T) {
	for _, name := range []string{"a b", "a/b", "a@b", "a:b", "a?b", "ünter", "a%b"} {
		require.ErrorIs(t, mutual.Identity{Cluster: name, Required: true}.Validate(), mutual.ErrIdentity, name)
		require.NoError(t, mutual.Identity{Cluster: name}.Validate(), name)
	}
	require.NoError(t, mutual.Identity{Cluster: "bank-1.eu", Required: true}.Validate())
}

// The name of a certificate is one line with everything that the authority has signed,
// and is the same for the certificate that replaces it.
func TestACertificateHasAName(t *testing.T) {
	ca := mutualtest.NewAuthority(t, "ca")
	require.Equal(t, "CN=node (127.0.0.1 quorate://bank/a)", mutual.Name(leaf(t, ca, "quorate://bank/a")))
	odd := &x509.Certificate{DNSNames: []string{"a\n\x1b[31m\u202e"}}
	odd.Subject.CommonName = "x\r"
	require.NotRegexp(t, `[[:cntrl:]\x{202e}]`, mutual.Name(odd))
}
