// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/plugins"
)

// certificate returns a certificate in the form that it has in a handshake.
func certificate(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return base64.RawStdEncoding.EncodeToString(der)
}

// covers B59.
func TestHandshakesAreChecked(t *testing.T) {
	cert := certificate(t)
	for line, want := range map[string]error{
		"1|1|unix|/dir/plugin1|grpc|" + cert:           nil,
		"1|1|unix|/dir/plugin1|grpc|" + cert + "|true": nil,
		" 1|1|unix|/dir/plugin1|grpc|" + cert + "\r\n": nil,
		"":                                      plugins.ErrNotPlugin,
		"1|1|unix|/dir/plugin1|grpc":            plugins.ErrNotPlugin,
		"2|1|unix|/dir/plugin1|grpc|" + cert:    plugins.ErrVersion,
		"1|2|unix|/dir/plugin1|grpc|" + cert:    plugins.ErrVersion,
		"1|-1|unix|/dir/plugin1|grpc|" + cert:   plugins.ErrNotPlugin,
		"1|x|unix|/dir/plugin1|grpc|" + cert:    plugins.ErrNotPlugin,
		"1|1|unix|/dir/../etc/x|grpc|" + cert:   plugins.ErrNotPlugin,
		"1|1|unix|/dir/sub/x|grpc|" + cert:      plugins.ErrNotPlugin,
		"1|1|unix|/dir/./x|grpc|" + cert:        plugins.ErrNotPlugin,
		"1|1|unix|/dir|grpc|" + cert:            plugins.ErrNotPlugin,
		"1|1|unix|relative|grpc|" + cert:        plugins.ErrNotPlugin,
		"1|1|tcp|203.0.113.7:80|grpc|" + cert:   plugins.ErrNotPlugin,
		"1|1|unix|/dir/plugin1|netrpc|" + cert:  plugins.ErrNotPlugin,
		"1|1|unix|/dir/plugin1|grpc|":           plugins.ErrNotPlugin,
		"1|1|unix|/dir/plugin1|grpc|bm90aGluZw": plugins.ErrNotPlugin,
		"1|1|unix|/dir/plugin1|grpc|=" + cert:   plugins.ErrNotPlugin,
		strings.Repeat("x", maxHandshakeBytes):  plugins.ErrNotPlugin,
	} {
		_, err := parseHandshake(line, "/dir", []int{1})
		if want == nil {
			require.NoError(t, err, line)
			continue
		}
		require.ErrorIs(t, err, want, "%.80s", line)
		require.Less(t, len(err.Error()), 1000)
	}
}

// The address of a handshake that is accepted is in the host's own directory. covers B59.
func FuzzHandshake(f *testing.F) {
	cert := certificate(f)
	f.Add("1|1|unix|/dir/plugin1|grpc|" + cert)
	f.Add("1|7|unix|/dir/plugin1|grpc|" + cert)
	f.Add("1|1|tcp|127.0.0.1:1|grpc|" + cert + "|false")
	f.Fuzz(func(t *testing.T, line string) {
		h, err := parseHandshake(line, "/dir", []int{1, 2})
		if err != nil {
			var fault *StartError
			require.ErrorAs(t, err, &fault)
			require.NotEmpty(t, fault.Cure)
			require.Less(t, len(err.Error()), 8*maxEvidenceBytes)
			return
		}
		require.Equal(t, "/dir", filepath.Dir(h.address))
		require.Contains(t, []int{1, 2}, h.version)
	})
}

// No message in go-plugin's stream of output makes the host panic.
func FuzzPrinted(f *testing.F) {
	f.Add([]byte{8, 1, 18, 2, 'h', 'i'})
	f.Fuzz(func(t *testing.T, message []byte) {
		channel, data := printed(message)
		require.LessOrEqual(t, len(data), len(message))
		if len(message) == 6 && string(message) == "\x08\x01\x12\x02hi" {
			require.Equal(t, uint64(1), channel)
			require.Equal(t, "hi", string(data))
		}
	})
}
