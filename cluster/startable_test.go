// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/plugins/host"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// What is known before a node binds an address is said by a check and by a start alike. Configurations are drawn from a few
// values of each key, right ones and wrong ones (drawn); then come the faults of certificates, one by one.

// faultsOf returns the faults of a configuration, one a line.
func faultsOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	faults, ok := errors.AsType[config.Errors](err)
	require.True(t, ok, "%T: %v", err, err)
	for _, f := range faults {
		require.NotEmpty(t, f.File, f.Error())
		require.NotZero(t, f.Line, f.Error())
		require.NotEmpty(t, f.Key, f.Error())
	}
	return faults.Error()
}

// world is what configurations name: files of a directory, and addresses that are free.
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
	w.tls(t, "good", mutualtest.Leaf{})
	w.tls(t, "server", mutualtest.Leaf{Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	w.tls(t, "client", mutualtest.Leaf{Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	w.tls(t, "elsewhere", mutualtest.Leaf{Host: "10.0.0.9"})
	w.tls(t, "over", mutualtest.Leaf{Until: -time.Minute})
	w.write(t, "stranger", mutualtest.NewAuthority(t, "other").Issue(t, mutualtest.Leaf{}))
	w.tls(t, "keyless", mutualtest.Leaf{})
	require.NoError(t, os.Remove(filepath.Join(w.dir, "keyless", "key.pem")))
	return w
}

func (w *world) tls(t *testing.T, name string, leaf mutualtest.Leaf) {
	t.Helper()
	w.write(t, name, w.authority.Issue(t, leaf))
}

// write writes certificate files into a directory of a name.
func (w *world) write(t *testing.T, name string, c tls.Certificate) {
	t.Helper()
	dir := filepath.Join(w.dir, name)
	require.NoError(t, os.Mkdir(dir, 0o700))
	files := w.authority.Write(t, dir, c)
	for _, path := range []struct{ from, to string }{{files.Certificate, "certificate.pem"}, {files.Key, "key.pem"}, {files.Authorities, "authorities.pem"}} {
		require.NoError(t, os.Rename(path.from, filepath.Join(dir, path.to)))
	}
}

// section returns a section that names certificate files.
func (w *world) section(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(`{certificate: %[1]q, key: %[2]q, authorities: %[3]q}`,
		filepath.Join(w.dir, name, "certificate.pem"), filepath.Join(w.dir, name, "key.pem"), filepath.Join(w.dir, name, "authorities.pem"))
}

// draw returns the lines of a configuration, whose keys have right values mostly.
func (w *world) draw(r *rand.Rand) []string {
	pick := func(right string, wrong ...string) string {
		if r.IntN(4) > 0 {
			return right
		}
		return wrong[r.IntN(len(wrong))]
	}
	_, port, _ := strings.Cut(w.addresses[0], ":")
	values := [][2]string{
		{"cluster.name", "test"},
		{"node.address", w.addresses[0]},
		{"node.data-dir", pick("", filepath.Join(w.dir, "plain"), filepath.Join(w.dir, "plain", "below"))},
		{"transport.bind", pick("", w.addresses[0], w.addresses[1])},
		{"transport.tls", w.section(pick("good", "stranger", "elsewhere", "server", "client", "over", "keyless", ""))},
		{"management.address", pick(w.addresses[1], w.addresses[0], "127.0.0.1:"+port)},
		{"management.health.address", pick(w.addresses[2], w.addresses[1], "0.0.0.0:"+port, ":"+port, "localhost:"+port)},
		{"management.operators.token-file", pick(filepath.Join(w.dir, "tokens"), filepath.Join(w.dir, "none"), filepath.Join(w.dir, "empty"), w.dir)},
		{"management.tls", w.section(pick("", "client", "over", "keyless", "server"))},
		{"gateway.address", pick(w.addresses[3], w.addresses[0], w.addresses[1], w.addresses[2])},
		{"gateway.kinds", "[account]"},
		{"gateway.token-file", pick("", filepath.Join(w.dir, "none"), filepath.Join(w.dir, "empty"), filepath.Join(w.dir, "tokens"))},
		{"downing.strategy", pick("", "witness")},
		{"plugins.witness", "{policy: downing, path: " + pick(filepath.Join(w.dir, "none"), w.dir, filepath.Join(w.dir, "plain")) + ", unpinned: true}"},
		{"plugins.pinned", pick("", "{policy: allocation, path: "+filepath.Join(w.dir, "program")+", sha256: "+strings.Repeat("ab", 32)+"}")},
	}
	var lines []string
	open := []string{} // The sections in which the last line stands.
	for _, v := range values {
		if v[1] == "" {
			continue
		}
		path := strings.Split(v[0], ".")
		for depth, name := range path[:len(path)-1] {
			if depth < len(open) && open[depth] == name {
				continue
			}
			open = append(open[:min(depth, len(open))], name)
			lines = append(lines, strings.Repeat("  ", depth)+name+":")
		}
		open = open[:len(path)-1]
		value := v[1]
		if !strings.ContainsAny(value[:1], "{[") {
			value = fmt.Sprintf("%q", value)
		}
		lines = append(lines, strings.Repeat("  ", len(path)-1)+path[len(path)-1]+": "+value)
	}
	return lines
}

// A check says of a configuration what a start says of it: the same faults, each with file, line and key, or none.
func TestACheckAndAStartSayTheSame(t *testing.T) {
	w := newWorld(t)
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for n := range 150 {
		path := file(t, w.draw(r)...)
		plugins := cluster.WithPlugins(host.New())
		checked := faultsOf(t, cluster.Check(cluster.Own{Options: []cluster.Option{plugins}}, path))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, checked, faultsOf(t, started(t, quiet(cluster.WithFile(path), plugins)...)), "%d:\n%s", n, text)
		for line := range strings.Lines(checked) {
			seen[strings.Split(line, ": ")[1]]++
		}
		if checked == "" {
			seen["none"]++
		}
	}
	for _, key := range []string{
		"none", "node.data-dir", "transport.tls.certificate", "transport.tls.key", "management.address", "management.health.address", "gateway.address",
		"management.operators.token-file", "gateway.token-file", "management.tls.certificate", "plugins.witness.path",
	} {
		require.NotZero(t, seen[key], "no draw has a fault of %s: %v", key, seen)
	}
}

// Certificates that can never work are refused in the words of quorate cert check, at their key.
func TestCertificatesThatNeverWorkAreRefused(t *testing.T) {
	w := newWorld(t)
	for name, want := range map[string]string{
		"good": "", "stranger": "transport.tls.certificate: %s: none of %s has signed it: x509: certificate signed by unknown authority",
		"elsewhere": "transport.tls.certificate: %s: 127.0.0.1 is not among its names: issue one with the host of node.address",
		"server":    "transport.tls.certificate: %s: it is not for client authentication: issue one with both extended key usages, server and client",
		"client":    "transport.tls.certificate: %s: it is not for server authentication",
		"over":      "transport.tls.certificate: %s: it has expired on ",
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, "cluster: {name: test}", "node: {address: "+free(t)+"}", "transport: {tls: "+w.section(name)+"}")
			for what, err := range map[string]error{"start": started(t, quiet(cluster.WithFile(path))...), "check": cluster.Check(cluster.Own{}, path)} {
				if want == "" {
					require.NoError(t, err, what)
					continue
				}
				certificate, authorities := filepath.Join(w.dir, name, "certificate.pem"), filepath.Join(w.dir, name, "authorities.pem")
				require.ErrorContains(t, err, path+":3: "+strings.Replace(strings.Replace(want, "%s", certificate, 1), "%s", authorities, 1), what)
			}
		})
	}
}
