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

// What certificates are held to before they are used. [Inspect] reads the files and hands them to an inspection, which
// looks at one thing after the other and notes every fault; at last the files are opened as by a node, so that nothing
// passes which a node would refuse.

// Need is what certificate files must be good for.
type Need struct {
	// Hosts must be among the names of the certificate, each as it stands there.
	Hosts []string
	// Identity and Roles are what the URI names must say; without a cluster they are not looked at.
	Identity Identity
	Roles    []string
	// Serves says that the certificate is shown to those who dial alone, as by the doors for operators and clients:
	// whoever may have signed it, and it need not be for client authentication.
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
func Inspect(files transport.TLSFiles, need Need) (*x509.Certificate, []Fault) {
	i := &inspection{files: files, need: need, now: time.Now()}
	i.run()
	return i.leaf, i.faults
}

// inspection is one look at certificate files: what is in them, and the faults so far.
type inspection struct {
	files  transport.TLSFiles
	need   Need
	now    time.Time
	leaf   *x509.Certificate // Nil if there is none.
	chain  []*x509.Certificate
	trust  []*x509.Certificate
	faults []Fault
}

func (i *inspection) fault(key, file, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	i.faults = append(i.faults, Fault{Key: key, File: file, Reason: err.Error(), Err: errors.Unwrap(err)})
}

// flaw notes a fault with which connections can be made.
func (i *inspection) flaw(key, file, format string, args ...any) {
	i.fault(key, file, format, args...)
	i.faults[len(i.faults)-1].Works = true
}

func (i *inspection) own(format string, args ...any) {
	i.fault("certificate", i.files.Certificate, format, args...)
}

// run looks at everything. What was not read is a fault by itself, and not looked at further.
func (i *inspection) run() {
	all, text := i.read("certificate", i.files.Certificate)
	i.trust, _ = i.read("authorities", i.files.Authorities)
	if len(all) > 0 {
		i.leaf, i.chain = all[0], all[1:]
		i.validity()
		if i.usages() {
			i.identity()
		}
		i.names()
	}
	i.key(text)
	i.authorities()
	if !slices.ContainsFunc(i.faults, func(f Fault) bool { return !f.Works }) {
		i.asANode()
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

// moment writes a time as in the answers of nodes.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// validity looks at the dates.
func (i *inspection) validity() {
	switch {
	case i.now.After(i.leaf.NotAfter):
		i.own("it has expired on %s: issue a new one; nodes take it over without a restart", moment(i.leaf.NotAfter))
	case i.now.Before(i.leaf.NotBefore):
		i.own("it is not valid before %s: look at the clock of this machine", moment(i.leaf.NotBefore))
	}
}

// usages looks what the certificate is good for: a node shows it to those who dial it, and to those whom it dials. It
// reports whether it is for both.
func (i *inspection) usages() (both bool) {
	both = true
	unnamed := len(i.leaf.ExtKeyUsage)+len(i.leaf.UnknownExtKeyUsage) == 0
	switch {
	case unnamed && !i.need.Serves:
		both = false
		i.own("it names no extended key usage: issue one with both, server and client")
	case !unnamed && !slices.Contains(i.leaf.ExtKeyUsage, x509.ExtKeyUsageAny):
		for n, usage := range i.usagesNeeded() {
			if !slices.Contains(i.leaf.ExtKeyUsage, usage) {
				both = false
				i.own("it is not for %s authentication: issue one with both extended key usages, server and client", [...]string{"server", "client"}[n])
			}
		}
	}
	if i.leaf.KeyUsage != 0 && i.leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0 {
		i.flaw("certificate", i.files.Certificate, "its key is not for digital signatures: issue one with that key usage")
	}
	if i.leaf.IsCA {
		i.flaw("certificate", i.files.Certificate, "it is an authority, which signs for nodes and is none: issue a certificate with quorate cert node")
	}
	return both
}

// usagesNeeded are the usages of a certificate that is shown by who is dialled and, but for doors, by who dials.
func (i *inspection) usagesNeeded() []x509.ExtKeyUsage {
	all := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if i.need.Serves {
		return all[:1]
	}
	return all
}

// names looks at the subject alternative names.
func (i *inspection) names() {
	if len(Names(i.leaf)) == 0 {
		i.own("it has no subject alternative name: issue one with the host of node.address; the common name is not looked at")
		return
	}
	for _, name := range i.leaf.DNSNames {
		if strings.Contains(name, "*") && !i.need.Serves {
			i.flaw("certificate", i.files.Certificate, "nodes do not accept wildcards: issue one with the hosts that %s stands for", name)
		}
	}
	for _, host := range i.need.Hosts {
		if !hasHost(i.leaf, host) {
			i.own("%s is not among its names: issue one with the host of node.address", host)
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

// identity looks at the URI names.
func (i *inspection) identity() {
	if i.need.Identity.Cluster == "" && len(i.need.Roles) == 0 {
		return
	}
	if err := i.need.Identity.Covers(i.leaf, i.need.Roles); err != nil {
		i.own("%w", err)
	}
}

// key looks whether the key is that of the certificate, and who may read it.
func (i *inspection) key(text []byte) {
	file := i.files.Key
	key, err := readFile(file)
	if err != nil {
		i.fault("key", file, "%w", withoutPath(err))
		return
	}
	if loose := LooseKey(file); loose != "" {
		i.flaw("key", file, "%s", loose)
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

// authorities looks at who may sign. One that cannot keeps nobody out as long as there is another one: during a change
// of authorities the former one may stand there after its end.
func (i *inspection) authorities() {
	before, over := len(i.faults), 0
	for _, a := range i.trust {
		why := UnfitAuthority(a, i.now)
		if why == "" {
			continue
		}
		if i.now.After(a.NotAfter) || i.now.Before(a.NotBefore) {
			over++
		}
		i.flaw("authorities", i.files.Authorities, "%s: %s", Name(a), why)
	}
	switch {
	case len(i.trust) > 0 && over == len(i.trust):
		for n := range i.faults[before:] {
			i.faults[before+n].Works = false
		}
	case len(i.trust) > 0 && i.leaf != nil && !i.need.Serves:
		i.signed()
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

// signed looks whether an authority has signed the certificate, at a time at which it is valid: dates and usages are
// looked at elsewhere.
func (i *inspection) signed() {
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
			i.own("none of %s has signed it: %w; it was signed by %s", i.files.Authorities, err, i.leaf.Issuer)
			return
		}
	}
}

// asANode opens the files as a node does.
func (i *inspection) asANode() {
	opened, err := Open(i.files, nil)
	switch {
	case err != nil && i.files.Revocations != "":
		i.fault("revocations", i.files.Revocations, "%w", err)
	case err != nil:
		i.own("%w", err)
	default:
		if revoked := opened.TLS().Revoked; revoked != nil {
			if err := revoked(i.leaf); err != nil {
				i.own("%w", err)
			}
		}
	}
}
