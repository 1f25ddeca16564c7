// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutual

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/transport"
)

// Certificate files, their content, and how it is replaced. Each of three parts (the
// pair of certificate and key, the authorities, the revocation lists) keeps its last
// good content; [Files.look] reads a part again when its files may have changed,
// parses it, and notifies. TLS asks for the content at each handshake through the
// functions of [Files.TLS].

const (
	// lookInterval is how often [Files.Watch] looks at the files.
	lookInterval = 5 * time.Second
	// freshFor is how old a file must be before its modification time tells writes
	// apart: file systems have coarse clocks, and a second write within the same tick
	// looks like the first.
	freshFor = 2 * time.Second
	// maxFileBytes bounds a file. A revocation list of 100,000 entries has 4 MB.
	maxFileBytes = 16 << 20
)

// ErrRevoked is wrapped by the error of a handshake whose peer shows a certificate
// that was revoked.
var ErrRevoked = errors.New("mutual: the certificate was revoked")

// Change says that files have changed.
type Change struct {
	// Files names the changed files as a configuration does: "tls.authorities ca.pem".
	Files string
	// Err says why the new content cannot be used, so that the previous content stays
	// in use. Nil: the new content is in use.
	Err error
}

// Files keeps the last good content of certificate files.
type Files struct {
	notify     func(Change)
	generation atomic.Uint64

	mu    sync.Mutex // Guards the three parts.
	pair  part[*tls.Certificate]
	roots part[*authorities]
	lists part[revocations]
	names transport.TLSFiles
}

// authorities are the certificates that may sign those of peers.
type authorities struct {
	pool *x509.CertPool
	all  []*x509.Certificate
}

// revocations are the times at which certificates were revoked, by the raw name of the
// issuer and the serial number.
type revocations map[string]map[string]time.Time

// Open reads the files, all of which must be good. Notify, which may be nil, is called
// for each later change of the files, by the goroutine that notices it, and must
// return soon.
func Open(names transport.TLSFiles, notify func(Change)) (*Files, error) {
	if notify == nil {
		notify = func(Change) {}
	}
	f := &Files{names: names, notify: func(Change) {}}
	f.pair = part[*tls.Certificate]{
		title: fmt.Sprintf("tls.certificate %s with tls.key %s", names.Certificate, names.Key),
		files: []string{names.Certificate, names.Key}, parse: parsePair,
	}
	f.roots = part[*authorities]{title: "tls.authorities " + names.Authorities, files: []string{names.Authorities}, parse: parseAuthorities}
	f.lists = part[revocations]{title: "tls.revocations " + names.Revocations, parse: f.parseRevocations}
	if names.Revocations != "" {
		f.lists.files = []string{names.Revocations}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	if err := errors.Join(f.pair.failure, f.roots.failure, f.lists.failure); err != nil {
		return nil, err
	}
	f.notify = notify
	return f, nil
}

// TLS returns functions that supply the present content of the files.
func (f *Files) TLS() *TLS {
	t := &TLS{Certificate: f.certificate, Authorities: f.authorities, Generation: f.generation.Load}
	if f.names.Revocations != "" {
		t.Revoked = f.revoked
	}
	return t
}

// Watch checks the files every five seconds until ctx ends, so that a fault is noticed
// before the next handshake, and connected peers are checked by new authorities and
// revocations.
func (f *Files) Watch(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.Look()
		}
	}
}

// Look checks the files now.
func (f *Files) Look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
}

// look reads again the parts whose files may have changed. The caller holds mu.
func (f *Files) look() {
	f.pair.look(f.notify)
	if f.roots.look(f.notify) {
		f.generation.Add(1)
		f.lists.forget() // Revocation lists are verified by the authorities.
	}
	if f.roots.content != nil && f.lists.look(f.notify) {
		f.generation.Add(1)
	}
}

func (f *Files) certificate() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	return f.pair.content, nil
}

func (f *Files) authorities() (*x509.CertPool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	return f.roots.content.pool, nil
}

// revoked looks up a certificate among the revocations. It does not check the files:
// TLS calls it after authorities, which does.
func (f *Files) revoked(c *x509.Certificate) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	since, found := f.lists.content[string(c.RawIssuer)][string(c.SerialNumber.Bytes())]
	if !found {
		return nil
	}
	return fmt.Errorf("%w on %s: serial number %x of %s", ErrRevoked, since.UTC().Format(time.DateTime), c.SerialNumber, c.Issuer)
}

// part is one or two files that are read together, and their last good content.
type part[T any] struct {
	title string
	files []string
	parse func(contents [][]byte) (T, error)

	content T
	digest  [sha256.Size]byte // Of the files of content.
	looked  []fs.FileInfo     // State of the files at the last reading; nil for a file that was missing.
	fresh   bool              // At the last reading a file was so new that a later write may look the same.
	failure error             // Of the last reading.
}

// forget has the files read again at the next look, and their content count as
// changed.
func (p *part[T]) forget() { p.looked, p.digest = nil, [sha256.Size]byte{} }

// look reads the files if they may have changed. Faulty files are read again each
// time, since the fault may be a certificate that is not valid yet. It reports whether
// the content has changed.
func (p *part[T]) look(notify func(Change)) (changed bool) {
	if len(p.files) == 0 {
		return false
	}
	infos, newest := p.stat()
	if p.looked != nil && !p.fresh && p.failure == nil && sameFiles(p.looked, infos) {
		return false
	}
	p.looked, p.fresh = infos, time.Since(newest) < freshFor
	contents, digest, err := p.read()
	if err == nil && p.failure == nil && digest == p.digest {
		return false
	}
	var content T
	if err == nil {
		content, err = p.parse(contents)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", p.title, err)
		if p.failure == nil || err.Error() != p.failure.Error() {
			notify(Change{Files: p.title, Err: err})
		}
		p.failure = err
		return false
	}
	changed = digest != p.digest
	p.content, p.digest, p.failure = content, digest, nil
	notify(Change{Files: p.title})
	return changed
}

// stat returns the state of the files in the file system, and when the newest was
// written.
func (p *part[T]) stat() (infos []fs.FileInfo, newest time.Time) {
	infos = make([]fs.FileInfo, len(p.files))
	for i, name := range p.files {
		if info, err := os.Stat(name); err == nil {
			infos[i] = info
			if info.ModTime().After(newest) {
				newest = info.ModTime()
			}
		}
	}
	return infos, newest
}

// read returns the contents of the files.
func (p *part[T]) read() ([][]byte, [sha256.Size]byte, error) {
	contents := make([][]byte, len(p.files))
	sum := sha256.New()
	for i, name := range p.files {
		var err error
		if contents[i], err = readFile(name); err != nil {
			return nil, [sha256.Size]byte{}, err
		}
		fmt.Fprintf(sum, "%d\n", len(contents[i]))
		sum.Write(contents[i])
	}
	return contents, [sha256.Size]byte(sum.Sum(nil)), nil
}

// readFile reads a file of certificates, keys or lists.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", name, maxFileBytes)
	}
	return os.ReadFile(name)
}

// sameFiles reports whether files show no sign of a write between two calls of stat.
func sameFiles(a, b []fs.FileInfo) bool {
	for i := range a {
		if a[i] == nil || b[i] == nil {
			if a[i] != b[i] {
				return false
			}
			continue
		}
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) {
			return false
		}
	}
	return true
}

// parsePair reads a certificate with its chain, and its key.
func parsePair(contents [][]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, err
	}
	now := time.Now()
	switch leaf := pair.Leaf; {
	case now.After(leaf.NotAfter):
		return nil, fmt.Errorf("the certificate has expired on %s", leaf.NotAfter.UTC().Format(time.DateTime))
	case now.Before(leaf.NotBefore):
		return nil, fmt.Errorf("the certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.DateTime))
	}
	return &pair, nil
}

// parseAuthorities reads certificates in PEM blocks.
func parseAuthorities(contents [][]byte) (*authorities, error) {
	a := &authorities{pool: x509.NewCertPool()}
	for rest := contents[0]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		a.pool.AddCert(c)
		a.all = append(a.all, c)
	}
	if len(a.all) == 0 {
		return nil, errors.New("no certificate in the file")
	}
	return a, nil
}

// parseRevocations reads lists in PEM blocks, or one that is not in a block, and
// checks who signed them.
func (f *Files) parseRevocations(contents [][]byte) (revocations, error) {
	found := revocations{}
	lists := 0
	for rest := contents[0]; len(bytes.TrimSpace(rest)) > 0; lists++ {
		der := rest
		if block, after := pem.Decode(rest); block != nil {
			der, rest = block.Bytes, after
		} else {
			rest = nil
		}
		list, err := x509.ParseRevocationList(der)
		if err != nil {
			return nil, err
		}
		if !f.signed(list) {
			return nil, fmt.Errorf("none of tls.authorities has signed the list of %s", list.Issuer)
		}
		serials := found[string(list.RawIssuer)]
		if serials == nil {
			serials = map[string]time.Time{}
			found[string(list.RawIssuer)] = serials
		}
		for _, entry := range list.RevokedCertificateEntries {
			serials[string(entry.SerialNumber.Bytes())] = entry.RevocationTime
		}
	}
	if lists == 0 {
		return nil, errors.New("no revocation list in the file")
	}
	return found, nil
}

// signed reports whether one of the authorities has signed a list.
func (f *Files) signed(list *x509.RevocationList) bool {
	for _, authority := range f.roots.content.all {
		if list.CheckSignatureFrom(authority) == nil {
			return true
		}
	}
	return false
}
