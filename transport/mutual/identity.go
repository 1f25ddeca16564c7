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

// ErrIdentity is wrapped by the error of a certificate that is not one of the
// cluster, or not one for the roles of its node.
var ErrIdentity = errors.New("mutual: wrong identity")

// identityScheme is the scheme of the names by which a certificate says of which
// cluster its node is, and which roles it may have: quorate://<cluster>/<role>.
const identityScheme = "quorate"

// Identity is what certificates must say beside the host of their node, as URIs among
// their names: quorate://<cluster>/<role>, one for each role that the node may have,
// or quorate://<cluster>/ for a node without roles. A certificate without any such
// URI says nothing, and passes unless it is Required to. One with any is held to them.
type Identity struct {
	Cluster  string
	Required bool
}

// Validate reports that the cluster has a name which no certificate can have.
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

// Check says why a certificate is none of the cluster.
func (i Identity) Check(c *x509.Certificate) error { return i.Covers(c, nil) }

// Covers says why a node with a certificate may not have its roles.
func (i Identity) Covers(c *x509.Certificate, roles []string) error {
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

// Names returns the names for which a certificate is: hosts, IP addresses and URIs.
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

// Name returns who a certificate says it is, on one line: its subject and all the
// names that an authority has signed. A renewed certificate has the name of the one
// before.
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
