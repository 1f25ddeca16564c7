// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/transport/mutual"
)

// Certificates for trials. CertAuthority makes an authority, a certificate that signs itself;
// CertNode has an authority sign the certificate of a node. Both end in [target.make], which
// writes a certificate and its key into two new files, or neither, or keeps what is there. What is given is checked by
// CertCheck, in a file of its own.

const (
	day = 24 * time.Hour
	// clockError is by how much the clock of another machine may be behind without its
	// refusing a certificate that was just made.
	clockError = 5 * time.Minute
)

// Cert is the command for the certificates of nodes and operators.
type Cert struct {
	Authority CertAuthority `cmd:"" help:"Make an authority, which signs certificates."`
	Node      CertNode      `cmd:"" help:"Make a certificate for a node, a client or an operator."`
	Check     CertCheck     `cmd:"" help:"Check a certificate, its key, and who has signed it."`
	Ends      CertEnds      `cmd:"" help:"Ask a running node when its certificates end."`
}

// target are the files that a command makes.
type target struct {
	Existing string `enum:"refuse,keep,replace" default:"refuse" help:"Files that exist: ${enum}."`
}

// CertAuthority is the command that makes an authority.
type CertAuthority struct {
	target

	Name        string `default:"quorate trial" help:"Common name of the authority."`
	Days        int    `default:"3650" help:"For how many days it is valid."`
	Certificate string `default:"authority.pem" placeholder:"FILE" help:"New file of the certificate."`
	Key         string `default:"authority-key.pem" placeholder:"FILE" help:"New file of the key, mode 0600."`
}

// Help is the text after the one-line help.
func (*CertAuthority) Help() string {
	return `Makes the key and the certificate of an authority that signs for the nodes of one
cluster: whoever has a certificate of it may join. It is for trials, and for where
nothing else issues certificates; keep its key off the machines of the nodes.
Files that exist are not overwritten, and the exit status is 1, unless -existing says
to keep them where they will do, or to replace them.

Examples:
  quorate cert authority
  quorate cert authority -name bank -days 730
  quorate cert authority -certificate ca.pem -key ca-key.pem -existing keep
  quorate --json cert authority | jq -r .sha256`
}

// Run makes the authority.
func (c *CertAuthority) Run(s *Session) error {
	if err := checkDays(c.Days); err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: c.Name}, NotAfter: time.Now().Add(time.Duration(c.Days) * day),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, // Signs no further authorities.
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return c.make(s, c.Certificate, c.Key, template, nil)
}

// CertNode is the command that makes a certificate.
type CertNode struct {
	target

	Hosts        []string `arg:"" optional:"" name:"host" help:"Hosts of the node, as in node.address: DNS names and IP addresses."`
	URI          []string `name:"uri" help:"URI names, such as quorate://bank/operator."`
	Name         string   `help:"Common name, which nobody looks at; by default the first host or URI."`
	Days         int      `default:"90" help:"For how many days it is valid."`
	Certificate  string   `default:"node.pem" placeholder:"FILE" help:"New file of the certificate."`
	Key          string   `default:"node-key.pem" placeholder:"FILE" help:"New file of the key, mode 0600."`
	Authority    string   `default:"authority.pem" placeholder:"FILE" help:"Certificate of the authority."`
	AuthorityKey string   `default:"authority-key.pem" placeholder:"FILE" help:"Key of the authority."`
}

// Help is the text after the one-line help.
func (*CertNode) Help() string {
	return `Makes a key, and a certificate that the authority signs. The certificate is good for
both sides of a connection, and for the hosts that are named, without wildcards: the
host of node.address must be among them. A port behind a host is passed over.
A URI quorate://CLUSTER/ROLE says which roles the node may have; that of
management.operators.certificate-uri makes the certificate one of an operator.
It never outlives the authority. Files that exist are not overwritten, and the exit
status is 1, unless -existing says to keep them where they have these names and
are valid, or to replace them, as at each start of a container.

Examples:
  quorate cert node 10.0.0.7
  quorate cert node bank-0.bank bank-1.bank bank-2.bank
  quorate cert node 10.0.0.7 -uri quorate://bank/backend -existing replace
  quorate cert node -uri quorate://bank/operator \
      -certificate me.pem -key me-key.pem
  quorate --json cert node 127.0.0.1 -days 1`
}

// Run makes the certificate.
func (c *CertNode) Run(s *Session) error {
	template, err := c.template()
	if err != nil {
		return err
	}
	authority, err := c.signer()
	if err != nil {
		return err
	}
	if end := authority.Leaf.NotAfter; template.NotAfter.After(end) {
		template.NotAfter = end
	}
	return c.make(s, c.Certificate, c.Key, template, authority)
}

// template returns the certificate before it is signed.
func (c *CertNode) template() (*x509.Certificate, error) {
	if err := checkDays(c.Days); err != nil {
		return nil, err
	}
	if len(c.Hosts)+len(c.URI) == 0 {
		return nil, RejectedError{Text: "name a host, as in node.address, or a -uri: a certificate without a name is good for nobody"}
	}
	template := &x509.Certificate{
		NotAfter: time.Now().Add(time.Duration(c.Days) * day), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range c.Hosts {
		name := hostOf(host)
		if ip, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, net.IP(ip.Unmap().AsSlice()))
			continue
		}
		if !dnsName(name) {
			return nil, RejectedError{Text: fmt.Sprintf("%q is neither a DNS name nor an IP address; wildcards are not accepted by nodes", host)}
		}
		template.DNSNames = append(template.DNSNames, name)
	}
	for _, text := range c.URI {
		uri, err := url.Parse(text)
		if err != nil || uri.Scheme == "" || uri.Host == "" {
			return nil, RejectedError{Text: fmt.Sprintf("%q is no URI with a scheme and a host, such as quorate://bank/operator", text)}
		}
		template.URIs = append(template.URIs, uri)
	}
	template.Subject.CommonName = c.Name
	if c.Name == "" {
		template.Subject.CommonName = mutual.Names(template)[0]
	}
	return template, nil
}

// signer reads the authority.
func (c *CertNode) signer() (*tls.Certificate, error) {
	authority, err := tls.LoadX509KeyPair(c.Authority, c.AuthorityKey)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: make an authority first, with quorate cert authority, or name it with -authority and -authority-key", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", c.Authority, c.AuthorityKey, err)
	}
	if why := mutual.UnfitAuthority(authority.Leaf, time.Now()); why != "" {
		return nil, fmt.Errorf("%s: %s", c.Authority, why)
	}
	return &authority, nil
}

// hostOf returns the host of a "host:port", or the text itself.
func hostOf(text string) string {
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return strings.Trim(text, "[]")
}

// dnsName reports whether a text can be a name in the domain name system.
func dnsName(text string) bool {
	if len(text) == 0 || len(text) > 253 {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > 63 || strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// maxDays is a hundred years, beyond which a number of days is a slip.
const maxDays = 36500

func checkDays(days int) error {
	if days < 1 || days > maxDays {
		return RejectedError{Text: fmt.Sprintf("-days %d is not in the range from 1 to %d", days, maxDays)}
	}
	return nil
}

// pair is a certificate that was made, with its key.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// sign completes a certificate by a new key and a serial number, and has the authority sign it.
// Without an authority the certificate signs itself.
func sign(template *x509.Certificate, authority *tls.Certificate) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	template.NotBefore = time.Now().Add(-clockError)
	parent, signer := template, any(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &pair{certificate: certificate, key: key}, nil
}

// make signs a certificate and writes it, or keeps what is there, and prints which it is.
func (t target) make(s *Session, certificate, key string, template *x509.Certificate, authority *tls.Certificate) error {
	var leaf *x509.Certificate
	if t.Existing == "keep" && exist(certificate, key) {
		kept, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return fmt.Errorf("%s with %s: %w", certificate, key, err)
		}
		if why := unlike(kept.Leaf, template, authority); why != "" {
			return fmt.Errorf("%s exists, and cannot be kept: %s", certificate, why)
		}
		leaf = kept.Leaf
	} else {
		made, err := sign(template, authority)
		if err != nil {
			return err
		}
		if err := made.write(certificate, key, t.Existing == "replace"); err != nil {
			return err
		}
		leaf = made.certificate
	}
	shown := described(leaf)
	shown.Certificate, shown.Key = certificate, key
	if s.JSON {
		return s.PrintJSON(shown)
	}
	shown.print(s)
	return nil
}

// exist reports whether one of the files is there.
func exist(paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { _, err := os.Stat(path); return err == nil })
}

// unlike returns why a certificate does not do in the place of the one that was asked for, "" if it
// does.
func unlike(c, template *x509.Certificate, authority *tls.Certificate) string {
	if authority == nil {
		return mutual.UnfitAuthority(c, time.Now())
	}
	if err := c.CheckSignatureFrom(authority.Leaf); err != nil {
		return "another authority has signed it"
	}
	has := mutual.Names(c)
	for _, name := range mutual.Names(template) {
		if !slices.Contains(has, name) {
			return name + " is not among its names"
		}
	}
	if time.Now().After(c.NotAfter) {
		return "it has expired on " + moment(c.NotAfter)
	}
	return ""
}

// write writes the key and the certificate: into new files, of which after an error none is left, or
// in the place of those that are there. A node that reads in between finds a key that does not fit,
// and reads again.
func (p *pair) write(certificate, key string, replace bool) error {
	private, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return err
	}
	if !replace {
		return writePair(certificate, key, p.certificate.Raw, private)
	}
	for _, path := range []string{certificate, key} {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return fmt.Errorf("%s is a directory: name a file in it", path)
		}
	}
	for _, stale := range []string{certificate + fresh, key + fresh} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := writePair(certificate+fresh, key+fresh, p.certificate.Raw, private); err != nil {
		return err
	}
	if err := os.Rename(key+fresh, key); err != nil { // A certificate without its key would keep the node from starting.
		return err
	}
	return os.Rename(certificate+fresh, certificate)
}

// fresh is the end of the names of files that take the place of others.
const fresh = ".new"

// writePair writes two new files, or neither.
func writePair(certificate, key string, raw, private []byte) error {
	block := func(label string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}) }
	if err := writeNew(key, 0o600, block("PRIVATE KEY", private)); err != nil {
		return err
	}
	if err := writeNew(certificate, 0o644, block("CERTIFICATE", raw)); err != nil {
		return errors.Join(err, os.Remove(key))
	}
	return nil
}

// writeNew writes a file that does not exist yet.
func writeNew(path string, mode os.FileMode, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists, and is not overwritten: name another file, or move it away", path)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
