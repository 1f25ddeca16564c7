// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutual

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/transport"
)

// The check of certificate files before they are used. [Inspect] reads the files, and an inspection looks at one
// requirement after the other and notes every fault. At last the files are opened as a node opens them, so that nothing
// passes that a node would refuse.

// Requirements are what certificate files must be good for.
type Requirements struct {
	// Hosts must be among the names of the certificate, each as it stands there.
	Hosts []string
	// Identity and Roles are what the URI names must say; without a cluster they are not looked at.
	Identity Identity
	Roles    []string
	// Serves says that the certificate is only shown to those who dial, as by the servers for operators and clients:
	// anybody may have signed it, and it need not be for client authentication.
	Serves bool
}

// Fault is something that is wrong with certificate files.
type Fault struct {
	Key    string // "certificate", "key", "authorities" or "revocations".
	File   string // As given to [Inspect].
	Reason string // What is wrong, and what to do.
	Err    error  // The cause, if it is an error; nil otherwise.

	// Works says that connections can be made in spite of it, so that a node need not refuse to start.
	Works bool
}

// Inspect returns the certificate in the files, nil if there is none, and every fault of them: that it has expired,
// does not belong to the key, was not signed by one of the authorities, or is not what is needed.
func Inspect(files transport.TLSFiles, required Requirements) (*x509.Certificate, []Fault) {
	i := &inspection{files: files, required: required, now: time.Now()}
	i.run()
	return i.leaf, i.faults
}

// inspection is a check of certificate files: what is in them, and the faults so far.
type inspection struct {
	files    transport.TLSFiles
	required Requirements
	now      time.Time
	leaf     *x509.Certificate // Nil if there is none.
	chain    []*x509.Certificate
	trust    []*x509.Certificate
	faults   []Fault
}

// fault notes a fault of a file.
func (i *inspection) fault(key, file, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	i.faults = append(i.faults, Fault{Key: key, File: file, Reason: err.Error(), Err: errors.Unwrap(err)})
}

// minorFault notes a fault of a file with which connections can be made all the same.
func (i *inspection) minorFault(key, file, format string, args ...any) {
	i.fault(key, file, format, args...)
	i.faults[len(i.faults)-1].Works = true
}

// certificateFault notes a fault of the certificate.
func (i *inspection) certificateFault(format string, args ...any) {
	i.fault("certificate", i.files.Certificate, format, args...)
}

// run looks at everything. What was not read is a fault by itself, and not looked at further.
func (i *inspection) run() {
	all, text := i.read("certificate", i.files.Certificate)
	i.trust, _ = i.read("authorities", i.files.Authorities)
	if len(all) > 0 {
		i.leaf, i.chain = all[0], all[1:]
		i.checkDates()
		if i.checkUsages() {
			i.checkIdentity()
		}
		i.checkNames()
	}
	i.checkKey(text)
	i.checkAuthorities()
	if !slices.ContainsFunc(i.faults, func(f Fault) bool { return !f.Works }) {
		i.openAsNode()
	}
}

// read returns the certificates of a file.
func (i *inspection) read(key, path string) (all []*x509.Certificate, text []byte) {
	text, err := readFile(path)
	if err != nil {
		i.fault(key, path, "%w", withoutPath(err))
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
			i.fault(key, path, "%w", err)
			return nil, text
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		i.fault(key, path, "there is no certificate in it: a file has PEM blocks that begin with -----BEGIN CERTIFICATE-----")
	}
	return all, text
}

// withoutPath returns the cause of an error of package os: the path stands before it anyway.
func withoutPath(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

// moment formats a time as in the answers of nodes.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// checkDates looks at the dates.
func (i *inspection) checkDates() {
	switch {
	case i.now.After(i.leaf.NotAfter):
		i.certificateFault("it has expired on %s: issue a new one; nodes take it over without a restart", moment(i.leaf.NotAfter))
	case i.now.Before(i.leaf.NotBefore):
		i.certificateFault("it is not valid before %s: look at the clock of this machine", moment(i.leaf.NotBefore))
	}
}

// checkUsages looks what the certificate is good for: a node shows it to those who dial it, and to those whom it
// dials. It reports whether it is for both.
func (i *inspection) checkUsages() (both bool) {
	both = true
	unnamed := len(i.leaf.ExtKeyUsage)+len(i.leaf.UnknownExtKeyUsage) == 0
	switch {
	case unnamed && !i.required.Serves:
		both = false
		i.certificateFault("it names no extended key usage: issue one with both, server and client")
	case !unnamed && !slices.Contains(i.leaf.ExtKeyUsage, x509.ExtKeyUsageAny):
		for n, usage := range i.usagesNeeded() {
			if !slices.Contains(i.leaf.ExtKeyUsage, usage) {
				both = false
				i.certificateFault("it is not for %s authentication: issue one with both extended key usages, server and client", [...]string{"server", "client"}[n])
			}
		}
	}
	if i.leaf.KeyUsage != 0 && i.leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0 {
		i.minorFault("certificate", i.files.Certificate, "its key is not for digital signatures: issue one with that key usage")
	}
	if i.leaf.IsCA {
		i.minorFault("certificate", i.files.Certificate, "it is an authority, which signs for nodes and is none: issue a certificate with quorate cert node")
	}
	return both
}

// usagesNeeded returns the usages that the certificate must have: that of a server and, unless it only serves, that of
// a client.
func (i *inspection) usagesNeeded() []x509.ExtKeyUsage {
	all := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if i.required.Serves {
		return all[:1]
	}
	return all
}

// checkNames looks at the subject alternative names.
func (i *inspection) checkNames() {
	if len(Names(i.leaf)) == 0 {
		i.certificateFault("it has no subject alternative name: issue one with the host of node.address; the common name is not looked at")
		return
	}
	for _, name := range i.leaf.DNSNames {
		if strings.Contains(name, "*") && !i.required.Serves {
			i.minorFault("certificate", i.files.Certificate, "nodes do not accept wildcards: issue one with the hosts that %s stands for", name)
		}
	}
	for _, host := range i.required.Hosts {
		if !hasHost(i.leaf, host) {
			i.certificateFault("%s is not among its names: issue one with the host of node.address", host)
		}
	}
}

// hasHost reports whether a host is among the names of a certificate, as it stands there.
func hasHost(c *x509.Certificate, host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return slices.ContainsFunc(Names(c), func(n string) bool { return n == ip.Unmap().String() })
	}
	return slices.ContainsFunc(c.DNSNames, func(n string) bool { return strings.EqualFold(n, host) })
}

// checkIdentity looks at the URI names.
func (i *inspection) checkIdentity() {
	if i.required.Identity.Cluster == "" && len(i.required.Roles) == 0 {
		return
	}
	if err := i.required.Identity.Covers(i.leaf, i.required.Roles); err != nil {
		i.certificateFault("%w", err)
	}
}

// checkKey looks whether the key is that of the certificate, and who may read it.
func (i *inspection) checkKey(text []byte) {
	file := i.files.Key
	key, err := readFile(file)
	if err != nil {
		i.fault("key", file, "%w", withoutPath(err))
		return
	}
	if loose := LooseKey(file); loose != "" {
		i.minorFault("key", file, "%s", loose)
	}
	if !bytes.Contains(key, []byte("PRIVATE KEY-----")) {
		i.fault("key", file, "there is no key in it: a file has a PEM block that begins with -----BEGIN PRIVATE KEY-----")
		return
	}
	if i.leaf == nil {
		return
	}
	if _, err := tls.X509KeyPair(text, key); err != nil {
		i.fault("key", file, "it does not belong to %s: %w", i.files.Certificate, err)
	}
}

// checkAuthorities looks at who may sign. One that cannot keeps nobody out as long as there is another one: during a
// change of authorities the former one may stand there after its end.
func (i *inspection) checkAuthorities() {
	before, over := len(i.faults), 0
	for _, a := range i.trust {
		why := UnfitAuthority(a, i.now)
		if why == "" {
			continue
		}
		if i.now.After(a.NotAfter) || i.now.Before(a.NotBefore) {
			over++
		}
		i.minorFault("authorities", i.files.Authorities, "%s: %s", Name(a), why)
	}
	switch {
	case len(i.trust) > 0 && over == len(i.trust):
		for n := range i.faults[before:] {
			i.faults[before+n].Works = false
		}
	case len(i.trust) > 0 && i.leaf != nil && !i.required.Serves:
		i.checkSigned()
	}
}

// UnfitAuthority returns why a certificate cannot sign others, "" if it can.
func UnfitAuthority(c *x509.Certificate, now time.Time) string {
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

// checkSigned looks whether an authority has signed the certificate, at a time at which it is valid: dates and usages
// are looked at elsewhere.
func (i *inspection) checkSigned() {
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: i.now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
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
	for _, usage := range i.usagesNeeded() {
		if slices.Contains(i.leaf.ExtKeyUsage, usage) { // An authority may be held to usages too.
			options.KeyUsages = []x509.ExtKeyUsage{usage}
		}
		if _, err := i.leaf.Verify(options); err != nil {
			i.certificateFault("none of %s has signed it: %w; it was signed by %s", i.files.Authorities, err, i.leaf.Issuer)
			return
		}
	}
}

// openAsNode opens the files as a node does.
func (i *inspection) openAsNode() {
	opened, err := Open(i.files, nil)
	switch {
	case err != nil && i.files.Revocations != "":
		i.fault("revocations", i.files.Revocations, "%w", err)
	case err != nil:
		i.certificateFault("%w", err)
	default:
		if revoked := opened.TLS().Revoked; revoked != nil {
			if err := revoked(i.leaf); err != nil {
				i.certificateFault("%w", err)
			}
		}
	}
}
