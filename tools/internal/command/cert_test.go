// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/tools/internal/command"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/mutual"
)

// First what the command makes: files, their modes, what is in them, and that nodes accept them.
// Then what it refuses to make, and at last each fault that the check must find, planted in a
// certificate that is right otherwise.

// cert runs the command in a directory. Names of files in the arguments are relative to that.
func cert(t *testing.T, dir string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Chdir(dir)
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "cert", Help: "Certificates", Args: &command.Cert{}},
	}}, append([]string{"cert"}, args...)...)
}

// made runs the command, which must succeed.
func made(t *testing.T, dir string, args ...string) string {
	t.Helper()
	status, stdout, stderr := cert(t, dir, args...)
	require.Equal(t, command.StatusOK, status, "%s%s", stdout, stderr)
	require.Empty(t, stderr)
	return stdout
}

// files are the names of what the command makes by default.
func files() transport.TLSFiles {
	return transport.TLSFiles{Certificate: "node.pem", Key: "node-key.pem", Authorities: "authority.pem"}
}

// shake has one end dial the other under a host, as nodes do, and returns why one of them refuses.
func shake(t *testing.T, dialler, listener *mutual.Files, host string) error {
	t.Helper()
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	ctx := patience.Context(t)
	cfg, err := dialler.TLS().Client(host, "h2")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		conn := tls.Server(far, listener.TLS().Server("h2"))
		err := conn.HandshakeContext(ctx)
		if err == nil {
			_, err = conn.Write([]byte("x")) // The client's certificate is refused after its handshake.
		}
		_ = far.Close()
		served <- err
	}()
	conn := tls.Client(near, cfg)
	err = conn.HandshakeContext(ctx)
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	_ = near.Close()
	return errors.Join(err, <-served)
}

// What the command makes is what two nodes accept of each other, under each host that was named,
// in both directions, and under no other.
func TestNodesAcceptWhatWasMade(t *testing.T) {
	dir := t.TempDir()
	made(t, dir, "authority", "-name", "bank")
	made(t, dir, "node", "bank-0.bank", "10.0.0.7:7946", "[::1]:7946", "-uri", "quorate://bank/backend")
	made(t, dir, "node", "127.0.0.2", "-certificate", "two.pem", "-key", "two-key.pem")
	one, err := mutual.Open(files(), nil)
	require.NoError(t, err)
	two, err := mutual.Open(transport.TLSFiles{Certificate: "two.pem", Key: "two-key.pem", Authorities: "authority.pem"}, nil)
	require.NoError(t, err)
	for _, host := range []string{"bank-0.bank", "10.0.0.7", "::1"} {
		require.NoError(t, shake(t, two, one, host), host)
	}
	require.NoError(t, shake(t, one, two, "127.0.0.2"))
	require.ErrorContains(t, shake(t, one, two, "127.0.0.3"), "127.0.0.3")
	require.ErrorContains(t, shake(t, two, one, "bank-1.bank"), "bank-1.bank")
	pair, err := one.TLS().Certificate()
	require.NoError(t, err)
	require.NoError(t, mutual.Identity{Cluster: "bank", Required: true}.Covers(pair.Leaf, []string{"backend"}))
	require.Error(t, mutual.Identity{Cluster: "bank", Required: true}.Covers(pair.Leaf, []string{"teller"}))

	other := t.TempDir()
	made(t, other, "authority", "-name", "bank")
	made(t, other, "node", "bank-0.bank")
	stranger, err := mutual.Open(files(), nil)
	require.NoError(t, err)
	require.ErrorContains(t, shake(t, two, stranger, "bank-0.bank"), "authority", "an authority of the same name is another one")
}

// Keys are for their owner alone, certificates for all, and none is overwritten.
func TestCertificatesAreNeverOverwritten(t *testing.T) {
	dir := t.TempDir()
	text := made(t, dir, "authority")
	fits(t, text)
	require.Contains(t, text, ", 3650 days from now\n")
	fits(t, made(t, dir, "node", "10.0.0.7"))
	before := map[string][]byte{}
	for name, mode := range map[string]os.FileMode{"authority.pem": 0o644, "authority-key.pem": 0o600, "node.pem": 0o644, "node-key.pem": 0o600} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			require.Equal(t, mode, info.Mode().Perm()|mode&0o044, name) // The umask of the user may take more.
		}
		before[name], err = os.ReadFile(name)
		require.NoError(t, err)
	}
	for _, args := range [][]string{{"authority"}, {"node", "10.0.0.8"}, {"node", "10.0.0.8", "-key", "new-key.pem"}, {"node", "10.0.0.8", "-certificate", "new.pem"}} {
		status, stdout, stderr := cert(t, dir, args...)
		require.Equal(t, command.StatusFailed, status, args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "exists, and is not overwritten")
	}
	require.NoFileExists(t, "new-key.pem", "of a pair that could not be written nothing is left")
	require.NoFileExists(t, "new.pem")
	for name, text := range before {
		now, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, text, now, name)
	}
}

// With -existing keep a second run changes nothing where the files will do, and is refused where
// they do not; with -existing replace it makes new ones.
func TestWhatExistsIsKeptOrReplacedOnRequest(t *testing.T) {
	dir := t.TempDir()
	text := made(t, dir, "authority", "-existing", "keep")
	require.Equal(t, text, made(t, dir, "authority", "-existing", "keep"))
	first := made(t, dir, "-json", "node", "a", "b", "-existing", "keep")
	require.Equal(t, first, made(t, dir, "-json", "node", "b", "-existing", "keep"))
	status, _, stderr := cert(t, dir, "node", "c", "-existing", "keep")
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "node.pem exists, and cannot be kept: c is not among its names")
	replaced := made(t, dir, "-json", "node", "c", "-existing", "replace")
	require.NotEqual(t, first, replaced)
	made(t, dir, "check", "-host", "c")
	require.NotEqual(t, replaced, made(t, dir, "-json", "node", "c", "-existing", "replace"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 4, "nothing else is left")

	made(t, dir, "authority", "-existing", "replace")
	for _, args := range [][]string{{"node", "c", "-existing", "keep"}, {"authority", "-existing", "keep", "-certificate", "node.pem", "-key", "node-key.pem"}} {
		status, _, stderr = cert(t, dir, args...)
		require.Equal(t, command.StatusFailed, status)
		require.Contains(t, stderr, "cannot be kept")
	}
	require.NoError(t, os.Remove("node-key.pem"))
	status, _, stderr = cert(t, dir, "node", "c", "-existing", "keep")
	require.Equal(t, command.StatusFailed, status, stderr)
}

// A certificate is not replaced where its key cannot be: a node would not start with the two.
func TestACertificateIsNotReplacedWithoutItsKey(t *testing.T) {
	dir := t.TempDir()
	made(t, dir, "authority")
	made(t, dir, "node", "a")
	before, err := os.ReadFile(filepath.Join(dir, "node.pem"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "node-key.pem")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "node-key.pem"), 0o700))
	status, _, stderr := cert(t, dir, "node", "a", "-existing", "replace")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "node-key.pem is a directory")
	after, err := os.ReadFile(filepath.Join(dir, "node.pem"))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// A certificate never outlives its authority, and the JSON says the same as the text.
func TestACertificateEndsWithItsAuthority(t *testing.T) {
	dir := t.TempDir()
	made(t, dir, "authority", "-days", "3")
	var node, checked struct {
		Names      []string
		Subject    string
		Authority  bool
		OK         bool
		SHA256     string
		ValidUntil time.Time `json:"valid_until"`
	}
	require.NoError(t, json.Unmarshal([]byte(made(t, dir, "-json", "node", "10.0.0.7", "-days", "90", "-uri", "quorate://bank/operator")), &node))
	require.WithinDuration(t, time.Now().Add(72*time.Hour), node.ValidUntil, time.Minute)
	require.Equal(t, []string{"10.0.0.7", "quorate://bank/operator"}, node.Names)
	require.Equal(t, "CN=10.0.0.7", node.Subject)
	require.False(t, node.Authority)
	require.NoError(t, json.Unmarshal([]byte(made(t, dir, "-json", "check")), &checked))
	require.True(t, checked.OK)
	require.Equal(t, node.SHA256, checked.SHA256)
	text := made(t, dir, "check", "-host", "10.0.0.7:7946", "-cluster", "bank", "-role", "operator", "-left", "48h")
	fits(t, text)
	require.Contains(t, text, "\nok\n")
	require.Contains(t, text, "10.0.0.7 quorate://bank/operator")
}

// What cannot be made is refused before a file is touched.
func TestWhatIsNoCertificateIsRefused(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"name a host":                      {"node"},
		"wildcards are not accepted":       {"node", "*.bank"},
		"neither a DNS name":               {"node", "a b"},
		"is no URI with a scheme":          {"node", "-uri", "operator"},
		"-days 0 is not in the range":      {"node", "a", "-days", "0"},
		"-days 99999 is not in the range":  {"authority", "-days", "99999"},
		"-days -1 is not in the range":     {"authority", "-days", "-1"},
		"expected one of":                  {},
		"unknown flag --nonesuch, did you": {"node", "a", "-nonesuch"},
	} {
		status, _, stderr := cert(t, dir, args...)
		require.Equal(t, command.StatusUsage, status, "%v: %s", args, stderr)
		if !strings.HasPrefix(want, "unknown") && want != "expected one of" {
			require.Contains(t, stderr, want)
		}
	}
	status, _, stderr := cert(t, dir, "node", "a")
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "make an authority first")
	made(t, dir, "authority")
	made(t, dir, "node", "a")
	status, _, stderr = cert(t, dir, "node", "b", "-authority", "node.pem", "-authority-key", "node-key.pem", "-certificate", "b.pem", "-key", "b-key.pem")
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "node.pem: it is no authority")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 4)
}

func TestHelpOfCertHasExamples(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"authority", "-h"}, {"node", "-h"}, {"check", "-h"}} {
		text := made(t, t.TempDir(), args...)
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 80, line)
		}
		if len(args) > 1 {
			require.Contains(t, text, "Examples:")
		}
	}
}

// planted signs a certificate with a fault by the authority of a directory, and puts it and its
// key in the place of the node's.
func planted(t *testing.T, change func(*x509.Certificate)) {
	t.Helper()
	authority, err := tls.LoadX509KeyPair("authority.pem", "authority-key.pem")
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "node"}, DNSNames: []string{"bank-0.bank"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, &key.PublicKey, authority.PrivateKey)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	replace(t, "node.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	replace(t, "node-key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func replace(t *testing.T, name string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, text, 0o600))
	require.NoError(t, os.Chmod(name, 0o600))
}

// Each fault, planted alone, is found, and no other one is named. A row without a fault is the
// proof that the certificate is right without it.
func TestEachFaultOfACertificateIsFound(t *testing.T) {
	plant := func(change func(*x509.Certificate)) func(*testing.T) {
		return func(t *testing.T) { t.Helper(); planted(t, change) }
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T)
		args  []string
		want  string // "" for no fault.
	}{
		"no fault":        {spoil: plant(func(*x509.Certificate) {})},
		"no usage":        {spoil: plant(func(c *x509.Certificate) { c.ExtKeyUsage = nil }), want: "it names no extended key usage"},
		"expired":         {spoil: plant(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), want: "node.pem: it has expired on "},
		"not valid yet":   {spoil: plant(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }), want: "node.pem: it is not valid before "},
		"ends soon":       {spoil: plant(func(*x509.Certificate) {}), args: []string{"-left", "336h"}, want: ", less than 336h0m0s: issue a new one"},
		"server alone":    {spoil: plant(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), want: "it is not for client authentication"},
		"client alone":    {spoil: plant(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] }), want: "it is not for server authentication"},
		"no signatures":   {spoil: plant(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyAgreement }), want: "its key is not for digital signatures"},
		"an authority":    {spoil: plant(func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }), want: "which signs for nodes and is none"},
		"no name":         {spoil: plant(func(c *x509.Certificate) { c.DNSNames = nil }), want: "it has no subject alternative name"},
		"wildcard":        {spoil: plant(func(c *x509.Certificate) { c.DNSNames = []string{"*.bank"} }), want: "nodes do not accept wildcards"},
		"another host":    {spoil: plant(func(*x509.Certificate) {}), args: []string{"-host", "bank-1.bank"}, want: "bank-1.bank is not among its names"},
		"another address": {spoil: plant(func(*x509.Certificate) {}), args: []string{"-host", "10.0.0.7:7946"}, want: "10.0.0.7 is not among its names"},
		"no cluster":      {spoil: plant(func(*x509.Certificate) {}), args: []string{"-cluster", "bank"}, want: "the certificate names no cluster"},
		"another authority": {spoil: func(t *testing.T) {
			t.Helper()
			made(t, ".", "authority", "-certificate", "other.pem", "-key", "other-key.pem")
			require.NoError(t, os.Rename("other.pem", "authority.pem"))
		}, want: "none of authority.pem has signed it"},
		"no authority":       {spoil: func(t *testing.T) { t.Helper(); text, _ := os.ReadFile("node.pem"); replace(t, "authority.pem", text) }, want: "it is no authority: its basic constraints do not say so"},
		"empty authority":    {spoil: func(t *testing.T) { t.Helper(); replace(t, "authority.pem", nil) }, want: "authority.pem: there is no certificate in it"},
		"no file":            {spoil: func(t *testing.T) { t.Helper(); require.NoError(t, os.Remove("node.pem")) }, want: "node.pem: no such file or directory"},
		"no key":             {spoil: func(t *testing.T) { t.Helper(); require.NoError(t, os.Remove("node-key.pem")) }, want: "node-key.pem: no such file or directory"},
		"no key in the file": {spoil: func(t *testing.T) { t.Helper(); replace(t, "node-key.pem", []byte("x")) }, want: "node-key.pem: there is no key in it"},
		"another key": {spoil: func(t *testing.T) {
			t.Helper()
			text, err := os.ReadFile("authority-key.pem")
			require.NoError(t, err)
			replace(t, "node-key.pem", text)
		}, want: "node-key.pem: it does not belong to node.pem"},
		"a broken certificate": {spoil: func(t *testing.T) {
			t.Helper()
			replace(t, "node.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
		}, want: "node.pem: x509: "},
		"no list of revocations": {spoil: func(*testing.T) {}, args: []string{"-revocations", "authority.pem"}, want: "tls.revocations authority.pem: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			made(t, dir, "authority")
			made(t, dir, "node", "bank-0.bank")
			c.spoil(t)
			status, stdout, stderr := cert(t, dir, append([]string{"check"}, c.args...)...)
			require.Empty(t, stderr)
			if c.want == "" {
				require.Equal(t, command.StatusOK, status, stdout)
				return
			}
			require.Equal(t, command.StatusUsage, status, stdout)
			require.Contains(t, stdout, c.want)
			status, stdout, _ = cert(t, dir, append([]string{"-json", "check"}, c.args...)...)
			require.Equal(t, command.StatusUsage, status)
			var got struct {
				OK     bool
				Faults []struct{ File, Reason string }
			}
			require.NoError(t, json.Unmarshal([]byte(stdout), &got))
			require.False(t, got.OK)
			require.NotEmpty(t, got.Faults)
			if name != "no authority" { // That is besides one that has not signed.
				require.Len(t, got.Faults, 1, "%v", got.Faults)
			}
		})
	}
}

// A key that any user may read is a fault.
func TestAKeyThatOthersReadIsAFault(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // It has no such modes.
	}
	dir := t.TempDir()
	made(t, dir, "authority")
	made(t, dir, "node", "bank-0.bank")
	require.NoError(t, os.Chmod(filepath.Join(dir, "node-key.pem"), 0o604))
	status, stdout, _ := cert(t, dir, "check")
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stdout, "has mode 0604")
}
