// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutual

import (
	"crypto/x509"
	"slices"
	"strconv"
	"strings"
)

// Name returns who a certificate says it is, on one line: its subject and all the
// names that an authority has signed. A renewed certificate has the name of the one
// before.
func Name(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	for _, uri := range c.URIs {
		names = append(names, uri.String())
	}
	slices.Sort(names)
	parts := []string{c.Subject.String()}
	if len(names) > 0 {
		parts = append(parts, "("+strings.Join(names, " ")+")")
	}
	// Authorities check names, but not for what a terminal obeys.
	quoted := strconv.Quote(strings.TrimSpace(strings.Join(parts, " ")))
	return quoted[1 : len(quoted)-1]
}
