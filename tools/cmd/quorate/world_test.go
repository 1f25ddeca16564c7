// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// world is what files name: other files, in a directory, and addresses that are free.
type world struct {
	dir       string
	authority *mutualtest.Authority
	addresses []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), authority: mutualtest.NewAuthority(t, "bank")}
	for range 4 {
		w.addresses = append(w.addresses, free(t))
	}
	write := func(name, text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), mode))
	}
	write("tokens", fmt.Sprintf("alice never %x\n", sha256.Sum256([]byte("secret"))), 0o600)
	write("empty", "# nobody yet\n", 0o600)
	write("plain", "text", 0o600)
	write("program", "text", 0o700)
	require.NoError(t, os.Mkdir(w.path("locked"), 0o500))
	w.tls(t, "good", mutualtest.Leaf{})
	w.tls(t, "server", mutualtest.Leaf{Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	w.tls(t, "client", mutualtest.Leaf{Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	w.tls(t, "elsewhere", mutualtest.Leaf{Host: "10.0.0.9"})
	w.tls(t, "over", mutualtest.Leaf{Until: -time.Minute})
	w.write(t, "stranger", mutualtest.NewAuthority(t, "other").Issue(t, mutualtest.Leaf{}))
	w.tls(t, "keyless", mutualtest.Leaf{})
	require.NoError(t, os.Remove(w.path("keyless", "key.pem")))
	return w
}

// path returns the path of a file of the world.
func (w *world) path(names ...string) string {
	return filepath.Join(append([]string{w.dir}, names...)...)
}

func (w *world) tls(t *testing.T, name string, leaf mutualtest.Leaf) {
	t.Helper()
	w.write(t, name, w.authority.Issue(t, leaf))
}

// write writes certificate files into a directory of a name.
func (w *world) write(t *testing.T, name string, c tls.Certificate) {
	t.Helper()
	dir := w.path(name)
	require.NoError(t, os.Mkdir(dir, 0o700))
	files := w.authority.Write(t, dir, c)
	for _, path := range []struct{ from, to string }{{files.Certificate, "certificate.pem"}, {files.Key, "key.pem"}, {files.Authorities, "authorities.pem"}} {
		require.NoError(t, os.Rename(path.from, filepath.Join(dir, path.to)))
	}
}
