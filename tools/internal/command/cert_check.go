// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/mutual"
)

// CertCheck is the command that checks certificates.
type CertCheck struct {
	Certificate string        `default:"node.pem" placeholder:"FILE" help:"The certificate, and its chain behind it."`
	Key         string        `default:"node-key.pem" placeholder:"FILE" help:"Its key."`
	Authorities string        `default:"authority.pem" placeholder:"FILE" help:"Who may sign, as transport.tls.authorities."`
	Revocations string        `placeholder:"FILE" help:"Lists of what was revoked."`
	Host        []string      `help:"Hosts that must be in it: that of node.address."`
	Cluster     string        `help:"The cluster for which its URI names must be."`
	Role        []string      `help:"Roles for which its URI names must be."`
	Left        time.Duration `placeholder:"DURATION" help:"How long it must go on being valid, such as 336h."`
}

// Help is the text after the one-line help.
func (*CertCheck) Help() string {
	return `Prints what a certificate is for, and every fault of it: that it has expired or will
within -left, that it is not good for both sides of a connection, has no name or not
that of -host, has wildcards, does not belong to the key, was not signed by one of
the authorities, or that others may read the key. At last the files are opened as a
node opens them. The exit status is 0 when all is well and 2 when there are faults.

Examples:
  quorate cert check
  quorate cert check -certificate tls.crt -key tls.key -authorities ca.crt
  quorate cert check -host 10.0.0.7 -left 336h
  quorate cert check -cluster bank -role backend
  quorate --json cert check | jq -r .valid_until`
}

// certificate is the JSON form of a certificate.
type certificate struct {
	Certificate string    `json:"certificate"`
	Key         string    `json:"key"`
	Subject     string    `json:"subject"`
	Issuer      string    `json:"issuer"`
	Names       []string  `json:"names"`
	Authority   bool      `json:"authority"`
	ValidFrom   time.Time `json:"valid_from"`
	ValidUntil  time.Time `json:"valid_until"`
	SHA256      string    `json:"sha256"`
}

// described returns what a certificate says.
func described(c *x509.Certificate) certificate {
	sum := sha256.Sum256(c.Raw)
	return certificate{
		Subject: c.Subject.String(), Issuer: c.Issuer.String(), Names: append([]string{}, mutual.Names(c)...), Authority: c.IsCA,
		ValidFrom: c.NotBefore.UTC(), ValidUntil: c.NotAfter.UTC(), SHA256: hex.EncodeToString(sum[:]),
	}
}

// print writes the certificate for people.
func (c certificate) print(s *Session) {
	field(s.Stdout, "certificate", c.Certificate)
	field(s.Stdout, "key", c.Key)
	field(s.Stdout, "subject", c.Subject)
	field(s.Stdout, "names", strings.Join(c.Names, " "))
	field(s.Stdout, "signed by", c.Issuer)
	field(s.Stdout, "valid until", moment(c.ValidUntil)+", "+remaining(time.Until(c.ValidUntil)))
}

// remaining returns how long a certificate is valid still.
func remaining(left time.Duration) string {
	switch {
	case left < 0:
		return "which is over"
	case left < 2*day:
		return left.Round(time.Minute).String() + " from now"
	}
	return plural(int((left+time.Hour)/day), "day") + " from now" // 90 days that began a moment ago are 90.
}

// certVerdict is the JSON form of what CertCheck found.
type certVerdict struct {
	OK     bool    `json:"ok"`
	Faults []fault `json:"faults"`
	certificate
}

// Run checks the files.
func (c *CertCheck) Run(s *Session) error {
	need := mutual.Requirements{Identity: mutual.Identity{Cluster: c.Cluster, Required: true}, Roles: c.Role}
	for _, host := range c.Host {
		need.Hosts = append(need.Hosts, hostOf(host))
	}
	files := transport.TLSFiles{Certificate: c.Certificate, Key: c.Key, Authorities: c.Authorities, Revocations: c.Revocations}
	leaf, found := mutual.Inspect(files, need)
	verdict := certVerdict{Faults: []fault{}}
	for _, f := range found {
		verdict.Faults = append(verdict.Faults, fault{File: f.File, Reason: f.Reason})
	}
	if leaf != nil {
		if left := time.Until(leaf.NotAfter); left > 0 && left < c.Left {
			verdict.Faults = append(verdict.Faults, fault{
				File: c.Certificate, Reason: fmt.Sprintf("it is valid until %s, less than %s: issue a new one", moment(leaf.NotAfter), c.Left),
			})
		}
		verdict.certificate = described(leaf)
	}
	verdict.OK = len(verdict.Faults) == 0
	verdict.Certificate, verdict.Key = c.Certificate, c.Key
	if s.JSON {
		if err := s.PrintJSON(verdict); err != nil {
			return err
		}
	} else {
		if leaf != nil {
			verdict.print(s)
		}
		for _, f := range verdict.Faults {
			fmt.Fprintln(s.Stdout, s.Paint(31, printable(f.File+": "+f.Reason)))
		}
		if verdict.OK {
			fmt.Fprintln(s.Stdout, s.Paint(32, "ok"))
		}
	}
	if !verdict.OK {
		return RejectedError{}
	}
	return nil
}
