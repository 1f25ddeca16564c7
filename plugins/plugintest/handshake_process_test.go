// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && !windows

package plugintest

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// The page about plugins says how a node and a plugin shake hands, for authors in other languages.
// Here its tables are read, and the handshake is played by hand from nothing else: the part of the
// node against a plugin of the SDK. The part of the plugin is played by the examples in other
// languages.

// pageRows returns the cells of the rows of a table on the page, the one whose header begins so.
func pageRows(t *testing.T, header string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(page))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "\n"+header)
	require.True(t, found, "there is no table %s", header)
	table, _, _ = strings.Cut(table, "\n\n")
	var rows [][]string
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		rows = append(rows, cells)
	}
	return rows
}

// variables is the table of the environment: what the page says that each variable holds.
func variables(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, row := range pageRows(t, "| variable | value |") {
		all[row[0]] = row[1]
	}
	require.Len(t, all, 7)
	return all
}

// A plugin gets the variables that the page lists, those of its configuration, and no others. The
// values that the page gives are the real ones.
func TestTheEnvironmentIsThatOfTheDocumentation(t *testing.T) {
	dir := t.TempDir()
	script, seen := filepath.Join(dir, "script"), filepath.Join(dir, "seen")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\ntr '\\0' '\\n' </proc/self/environ >\"$SEEN\"\n"), 0o700))
	_, err := host.Open(t.Context(), "script", pinned(t, plugins.Config{
		Policy: plugins.Downing, Path: script, Environment: map[string]string{"SEEN": seen},
	}))
	require.ErrorIs(t, err, plugins.ErrNotPlugin)

	text, err := os.ReadFile(seen)
	require.NoError(t, err)
	got := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^([A-Z_]+)=(.*)$`).FindAllStringSubmatch(string(text), -1) {
		got[found[1]] = found[2]
	}
	for _, shell := range []string{"SEEN", "PWD", "OLDPWD", "SHLVL", "_"} {
		delete(got, shell)
	}
	want := variables(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for _, name := range []string{"QUORATE_PLUGIN", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT"} {
		require.Equal(t, want[name], got[name])
	}
	require.Equal(t, strconv.Itoa(os.Getpid()), got["QUORATE_PLUGIN_HOST_PID"])
	require.True(t, filepath.IsAbs(got["PLUGIN_UNIX_SOCKET_DIR"]))
	require.Equal(t, "-----BEGIN CERTIFICATE-----", got["PLUGIN_CLIENT_CERT"])
}

// A plugin that starts only where every variable of the page is there passes the kit: whatever the kit starts, it
// starts as a node does.
func TestAPluginThatDemandsTheWholeEnvironmentPasses(t *testing.T) {
	c := config(t, plugins.Downing, "strict")
	c.Environment[demanded] = strings.Join(slices.Sorted(maps.Keys(variables(t))), " ")
	Test(t, c)
}

// selfSigned returns a key with a certificate, and the certificate as PEM. Its curve is P-256 as with hosts.
func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(text)
}

// rawBytes passes messages on as the bytes that they are.
type rawBytes struct{}

func (rawBytes) Name() string { return "proto" }

func (rawBytes) Marshal(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("no bytes but %T", v)
	}
	return b, nil
}

func (rawBytes) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("no bytes but %T", v)
	}
	*b = slices.Clone(data)
	return nil
}

// byHand is a plugin that was started by hand as the page says.
type byHand struct {
	cmd  *exec.Cmd
	line []string // The fields of its line.
	own  tls.Certificate
}

func startByHand(t *testing.T, path string) *byHand {
	t.Helper()
	b := &byHand{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), path)}
	own, certificate := selfSigned(t)
	b.own = own
	sockets, err := os.MkdirTemp("", "q") //nolint:usetesting // The paths of sockets are short.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(sockets)) })
	values := variables(t)
	values["PLUGIN_CLIENT_CERT"], values["PLUGIN_UNIX_SOCKET_DIR"] = certificate, sockets
	values["QUORATE_PLUGIN_HOST_PID"] = strconv.Itoa(os.Getpid())
	b.cmd.Env = []string{}
	for name, value := range values {
		b.cmd.Env = append(b.cmd.Env, name+"="+value)
	}
	out, err := b.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, b.cmd.Start())
	t.Cleanup(func() {
		_ = b.cmd.Process.Kill() // It may have ended.
		_ = b.cmd.Wait()         // Killed or ended before: either is fine.
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	b.line = strings.Split(strings.TrimSpace(line), "|")
	require.Len(t, b.line, 6)
	require.Equal(t, []string{"1", "1", "unix"}, b.line[:3])
	require.Equal(t, sockets, filepath.Dir(b.line[3]))
	require.Equal(t, "grpc", b.line[4])
	return b
}

// dial connects as the page says, with a certificate.
func (b *byHand) dial(t *testing.T, own tls.Certificate) *grpc.ClientConn {
	t.Helper()
	der, err := base64.RawStdEncoding.DecodeString(b.line[5])
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	config := &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	conn, err := grpc.NewClient("unix:"+b.line[3], grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawBytes{})))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// The calls of the page are answered by the plugin of the page with the bytes of the page. Whoever
// has another certificate than the plugin was told is not let in.
func TestTheHandshakeOfTheDocumentationIsTrue(t *testing.T) {
	b := startByHand(t, buildPageProgram(t))
	bytesOf := func(cell string) []byte {
		raw, err := hex.DecodeString(strings.ReplaceAll(cell, " ", ""))
		require.NoError(t, err)
		return raw
	}
	rows := pageRows(t, "| call | request | answer |")
	require.Len(t, rows, 4)
	calls, shutdown := rows[:3], rows[3]
	stranger, _ := selfSigned(t)
	var answer []byte
	require.Error(t, b.dial(t, stranger).Invoke(t.Context(), calls[0][0], bytesOf(calls[0][1]), &answer))
	conn := b.dial(t, b.own)
	for _, row := range calls {
		require.NoError(t, conn.Invoke(t.Context(), row[0], bytesOf(row[1]), &answer), row[0])
		want := bytesOf(row[2])
		if row[0] == pluginv1.Plugin_Describe_FullMethodName {
			want = withSchemaOf(t, want, answer)
		}
		require.Equal(t, want, answer, row[0])
	}
	// A plugin may end before its answer has arrived: the page says that nobody waits for it.
	require.Empty(t, bytesOf(shutdown[1]))
	_ = conn.Invoke(t.Context(), shutdown[0], []byte{}, &answer)
	ended := make(chan error, 1)
	go func() { ended <- b.cmd.Wait() }() // Ends with the process, which the last call has told to end.
	require.NoError(t, patience.Receive(t, ended, "the end of the plugin, which is told to shut down"))
}

// withSchemaOf returns the description of the page, whose schema is as short as one by hand can be, with the schema
// that the SDK has made of the settings.
func withSchemaOf(t *testing.T, page, answer []byte) []byte {
	t.Helper()
	var want, got pluginv1.DescribeResponse
	require.NoError(t, proto.Unmarshal(page, &want))
	require.NoError(t, proto.Unmarshal(answer, &got))
	require.Equal(t, "{}", string(want.GetSettingsSchema()))
	_, err := host.ReadSchema(got.GetSettingsSchema())
	require.NoError(t, err)
	require.Contains(t, string(got.GetSettingsSchema()), `"grace"`)
	want.SettingsSchema = got.GetSettingsSchema()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(&want)
	require.NoError(t, err)
	return b
}

func TestTheWalkInGoOfTheDocumentationArrives(t *testing.T) { walk(t, commandLine(t), "### In Go") }
