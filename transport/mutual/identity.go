// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutual

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ErrIdentity is wrapped by the error of a certificate that is not for this cluster,
// or not for the roles of its node.
var ErrIdentity = errors.New("mutual: wrong identity")

// identityScheme is the scheme of the URI names in a certificate that say which
// cluster its node is of, and which roles the node may have:
// quorate://<cluster>/<role>.
const identityScheme = "quorate"

// Identity is what certificates must say beside the host of their node, in URI names:
// quorate://<cluster>/<role>, one for each role that the node may have, or
// quorate://<cluster>/ for a node without roles. A certificate without such a URI
// names no cluster, and passes unless Required is set. A certificate with any such URI
// is held to it.
type Identity struct {
	Cluster  string
	Required bool
}

// Validate refuses a required identity whose cluster has a name that no certificate
// can hold.
func (i Identity) Validate() error {
	uri, err := url.Parse(i.uri(""))
	if i.Required && (err != nil || uri.Host != i.Cluster || strings.Trim(strings.ToLower(i.Cluster), "abcdefghijklmnopqrstuvwxyz0123456789-.") != "") {
		return fmt.Errorf("%w: no certificate can name cluster %q: give it a name of letters, digits, hyphens and dots", ErrIdentity, i.Cluster)
	}
	return nil
}

func (i Identity) uri(role string) string {
	return identityScheme + "://" + i.Cluster + "/" + url.PathEscape(role)
}

// Check returns why a certificate is not for the cluster, or nil.
func (i Identity) Check(c *x509.Certificate) error { return i.Covers(c, nil) }

// Covers returns why a node with the certificate may not have the roles, or nil. A certificate of a node is for both
// ends of a connection: one that says nothing of its usages is refused too, since authorities sign such for anything.
func (i Identity) Covers(c *x509.Certificate, roles []string) error {
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if !slices.Contains(c.ExtKeyUsage, usage) && !slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny) {
			return fmt.Errorf("%w: the certificate is not for both server and client authentication: issue one with both extended key usages", ErrIdentity)
		}
	}
	named, member := false, false
	var allowed []string
	for _, uri := range c.URIs {
		if uri.Scheme != identityScheme {
			continue
		}
		named = true
		if uri.Host == i.Cluster && uri.User == nil && uri.RawQuery == "" && uri.Fragment == "" {
			member = true
			allowed = append(allowed, strings.TrimPrefix(uri.Path, "/"))
		}
	}
	switch {
	case !named && !i.Required:
		return nil
	case !named:
		return fmt.Errorf("%w: the certificate names no cluster: issue one with the URI name %s, or unset transport.require-identity", ErrIdentity, i.uri("")+"<role>")
	case !member:
		return fmt.Errorf("%w: the certificate names another cluster than %q: issue one with the URI name %s", ErrIdentity, i.Cluster, i.uri("")+"<role>")
	}
	for _, role := range roles {
		if !slices.Contains(allowed, role) {
			return fmt.Errorf("%w: the certificate is not one for role %q: issue one with the URI name %s, or take the role from node.roles", ErrIdentity, role, i.uri(role))
		}
	}
	return nil
}

// Names returns the names in a certificate: hosts, IP addresses and URIs.
func Names(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	for _, uri := range c.URIs {
		names = append(names, uri.String())
	}
	return names
}

// Name returns subject and names of a certificate on one line. A renewed certificate
// has the same line as the certificate before.
func Name(c *x509.Certificate) string {
	names := Names(c)
	slices.Sort(names)
	parts := []string{c.Subject.String()}
	if len(names) > 0 {
		parts = append(parts, "("+strings.Join(names, " ")+")")
	}
	// Authorities check names, but not for what a terminal obeys.
	quoted := strconv.Quote(strings.TrimSpace(strings.Join(parts, " ")))
	return quoted[1 : len(quoted)-1]
}
