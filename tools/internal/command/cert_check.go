// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/mutual"
)

// What certificates are held to. CertCheck reads the files and hands them to an inspection, which
// looks at one thing after the other and notes every fault; at last the files are opened as a node
// does, so that nothing passes which a node would refuse.

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
	i := &inspection{CertCheck: c, now: time.Now()}
	i.run()
	verdict := certVerdict{OK: len(i.faults) == 0, Faults: append([]fault{}, i.faults...)}
	if i.leaf != nil {
		verdict.certificate = described(i.leaf)
	}
	verdict.Certificate, verdict.Key = c.Certificate, c.Key
	if s.JSON {
		if err := s.PrintJSON(verdict); err != nil {
			return err
		}
	} else {
		if i.leaf != nil {
			verdict.print(s)
		}
		for _, f := range i.faults {
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

// inspection is one check of a certificate: the files, and the faults so far.
type inspection struct {
	*CertCheck

	now    time.Time
	leaf   *x509.Certificate // The certificate; nil if there is none.
	chain  []*x509.Certificate
	trust  []*x509.Certificate
	faults []fault
}

func (i *inspection) fault(file, format string, args ...any) {
	i.faults = append(i.faults, fault{File: file, Reason: fmt.Sprintf(format, args...)})
}

// run looks at everything. What was not read is a fault by itself, and not looked at further.
func (i *inspection) run() {
	all, text := i.read(i.Certificate)
	i.trust, _ = i.read(i.Authorities)
	if len(all) > 0 {
		i.leaf, i.chain = all[0], all[1:]
		i.validity()
		i.usages()
		i.names()
	}
	i.key(text)
	for _, a := range i.trust {
		if why := unfitAuthority(a, i.now); why != "" {
			i.fault(i.Authorities, "%s: %s", mutual.Name(a), why)
		}
	}
	if i.leaf != nil && len(i.trust) > 0 {
		i.signed()
	}
	if len(i.faults) == 0 {
		i.asANode()
	}
}

// read returns the certificates of a file.
func (i *inspection) read(path string) (all []*x509.Certificate, text []byte) {
	text, err := os.ReadFile(path)
	if err != nil {
		i.fault(path, "%v", unwrapped(err))
		return nil, nil
	}
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			i.fault(path, "%v", err)
			return nil, text
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		i.fault(path, "there is no certificate in it: a file has PEM blocks that begin with -----BEGIN CERTIFICATE-----")
	}
	return all, text
}

// unwrapped returns the cause of an error without the path, which stands before it anyway.
func unwrapped(err error) error {
	if path, ok := err.(*os.PathError); ok { //nolint:errorlint // Of os.ReadFile itself, not of what it wraps.
		return path.Err
	}
	return err
}

// validity looks at the dates.
func (i *inspection) validity() {
	switch end := i.leaf.NotAfter; {
	case i.now.After(end):
		i.fault(i.Certificate, "it has expired on %s: issue a new one; nodes take it over without a restart", moment(end))
	case i.now.Before(i.leaf.NotBefore):
		i.fault(i.Certificate, "it is not valid before %s: look at the clock of this machine", moment(i.leaf.NotBefore))
	case i.now.Add(i.Left).After(end):
		i.fault(i.Certificate, "it is valid until %s, less than %s: issue a new one", moment(end), i.Left)
	}
}

// bothSides are the usages of a certificate that is shown by who dials and by who is dialled.
func bothSides() []x509.ExtKeyUsage {
	return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
}

// usages looks what the certificate is good for: a node shows it to those who dial it, and to
// those whom it dials.
func (i *inspection) usages() {
	switch {
	case len(i.leaf.ExtKeyUsage)+len(i.leaf.UnknownExtKeyUsage) == 0:
		i.fault(i.Certificate, "it names no extended key usage: issue one with both, server and client")
	case !slices.Contains(i.leaf.ExtKeyUsage, x509.ExtKeyUsageAny):
		for n, usage := range bothSides() {
			if !slices.Contains(i.leaf.ExtKeyUsage, usage) {
				i.fault(i.Certificate, "it is not for %s authentication: issue one with both extended key usages, server and client", [...]string{"server", "client"}[n])
			}
		}
	}
	if i.leaf.KeyUsage != 0 && i.leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0 {
		i.fault(i.Certificate, "its key is not for digital signatures: issue one with that key usage")
	}
	if i.leaf.IsCA {
		i.fault(i.Certificate, "it is an authority, which signs for nodes and is none: issue a certificate with quorate cert node")
	}
}

// names looks at the subject alternative names.
func (i *inspection) names() {
	if len(mutual.Names(i.leaf)) == 0 {
		i.fault(i.Certificate, "it has no subject alternative name: issue one with the host of node.address; the common name is not looked at")
	}
	for _, name := range i.leaf.DNSNames {
		if strings.Contains(name, "*") {
			i.fault(i.Certificate, "nodes do not accept wildcards: issue one with the hosts that %s stands for", name)
		}
	}
	for _, host := range i.Host {
		if !hasHost(i.leaf, hostOf(host)) {
			i.fault(i.Certificate, "%s is not among its names: issue one with the host of node.address", hostOf(host))
		}
	}
	if i.Cluster != "" || len(i.Role) > 0 {
		if err := (mutual.Identity{Cluster: i.Cluster, Required: true}).Covers(i.leaf, i.Role); err != nil {
			i.fault(i.Certificate, "%v", err)
		}
	}
}

// hasHost reports whether a host is among the names of a certificate, as it stands there.
func hasHost(c *x509.Certificate, host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return slices.ContainsFunc(mutual.Names(c), func(n string) bool { return n == ip.Unmap().String() })
	}
	return slices.ContainsFunc(c.DNSNames, func(n string) bool { return strings.EqualFold(n, host) })
}

// key looks whether the key is that of the certificate, and who may read it.
func (i *inspection) key(text []byte) {
	key, err := os.ReadFile(i.Key)
	if err != nil {
		i.fault(i.Key, "%v", unwrapped(err))
		return
	}
	if loose := mutual.LooseKey(i.Key); loose != "" {
		i.fault(i.Key, "%s", loose)
	}
	if !bytes.Contains(key, []byte("PRIVATE KEY-----")) {
		i.fault(i.Key, "there is no key in it: a file has a PEM block that begins with -----BEGIN PRIVATE KEY-----")
		return
	}
	if i.leaf == nil {
		return
	}
	if _, err := tls.X509KeyPair(text, key); err != nil {
		i.fault(i.Key, "it does not belong to %s: %v", i.Certificate, err)
	}
}

// unfitAuthority returns why a certificate cannot sign others, "" if it can.
func unfitAuthority(c *x509.Certificate, now time.Time) string {
	switch {
	case !c.IsCA || !c.BasicConstraintsValid:
		return "it is no authority: its basic constraints do not say so"
	case c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0:
		return "it is no authority: its key is not for signing certificates"
	case now.After(c.NotAfter):
		return "it has expired on " + moment(c.NotAfter)
	case now.Before(c.NotBefore):
		return "it is not valid before " + moment(c.NotBefore)
	}
	return ""
}

// signed looks whether an authority has signed the certificate, at a time at which it is valid:
// its dates are looked at elsewhere.
func (i *inspection) signed() {
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: i.now,
	}
	for _, a := range i.trust {
		options.Roots.AddCert(a)
	}
	for _, c := range i.chain {
		options.Intermediates.AddCert(c)
	}
	if i.now.After(i.leaf.NotAfter) {
		options.CurrentTime = i.leaf.NotAfter
	} else if i.now.Before(i.leaf.NotBefore) {
		options.CurrentTime = i.leaf.NotBefore
	}
	for _, usage := range bothSides() {
		if options.KeyUsages = []x509.ExtKeyUsage{usage}; len(i.leaf.ExtKeyUsage) > 0 && !slices.Contains(i.leaf.ExtKeyUsage, usage) {
			options.KeyUsages[0] = x509.ExtKeyUsageAny // Of that, usages has told.
		}
		if _, err := i.leaf.Verify(options); err != nil {
			i.fault(i.Certificate, "none of %s has signed it: %v; it was signed by %s", i.Authorities, err, i.leaf.Issuer)
			return
		}
	}
}

// asANode opens the files as a node does.
func (i *inspection) asANode() {
	files, err := mutual.Open(transport.TLSFiles{Certificate: i.Certificate, Key: i.Key, Authorities: i.Authorities, Revocations: i.Revocations}, nil)
	if err != nil {
		i.fault(i.Certificate, "%v", err)
		return
	}
	if revoked := files.TLS().Revoked; revoked != nil {
		if err := revoked(i.leaf); err != nil {
			i.fault(i.Certificate, "%v", err)
		}
	}
}
