// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/plugins"
)

const (
	// maxHandshakeBytes is the longest handshake line: with its certificate it has
	// about 1 KiB.
	maxHandshakeBytes = 16 << 10
	// handshakeVersion is the version of the handshake line itself.
	handshakeVersion = "1"
	handshakeFields  = 6
	// maxEvidenceBytes is how many bytes of the output of a program that is no plugin an
	// error quotes.
	maxEvidenceBytes = 256
)

// handshake is the content of the first line that a plugin writes to its standard output:
//
//	1|version of the contract|network|address|grpc|certificate
type handshake struct {
	version          int
	network, address string
}

// parseHandshake checks the line, before go-plugin trusts it: the address must be
// in the directory of sockets, and there must be a certificate.
func parseHandshake(line, socketDir string, versions []int) (handshake, error) {
	const cure = "build it with the plugin SDK"
	parts := strings.Split(strings.TrimSpace(line), "|")
	switch {
	case len(parts) < handshakeFields:
		return handshake{}, notPlugin(cure, "it said %.*q, which is no handshake", maxEvidenceBytes, line)
	case parts[0] != handshakeVersion:
		return handshake{}, &StartError{
			Err: plugins.ErrVersion, Cause: fmt.Errorf("its handshake has version %.20q, the host's %q", parts[0], handshakeVersion),
			Cure: "use a plugin that was built with an SDK of the time of this host",
		}
	case parts[4] != "grpc":
		return handshake{}, notPlugin(cure, "it speaks %.20q, not grpc", parts[4])
	}
	h := handshake{network: parts[2], address: parts[3]}
	var err error
	if h.version, err = strconv.Atoi(parts[1]); err != nil || h.version < 0 {
		return handshake{}, notPlugin(cure, "it said that its version is %.20q", parts[1])
	}
	if !slices.Contains(versions, h.version) {
		return handshake{}, &StartError{
			Err:   plugins.ErrVersion,
			Cause: fmt.Errorf("the plugin offers version %d, the host speaks %d to %d", h.version, slices.Min(versions), slices.Max(versions)),
			Cure:  "use a plugin that was built with an SDK of the time of this host",
		}
	}
	if err := checkAddress(h.network, h.address, socketDir); err != nil {
		return handshake{}, err
	}
	return h, checkCertificate(parts[5])
}

// checkAddress lets the host connect only to an address where it told the plugin to
// listen: in its own directory, or on the loopback interface where there are no such
// sockets.
func checkAddress(network, address, socketDir string) error {
	switch {
	case network == "unix" && filepath.Dir(address) == socketDir && filepath.Clean(address) == address:
		return nil
	case network == "tcp" && runtime.GOOS == "windows":
		if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().IsLoopback() {
			return nil
		}
	}
	return notPlugin("build it with the plugin SDK", "it listens at %.20q %.100q, not where the host told it to", network, address)
}

// checkCertificate checks that there is a certificate for the connection.
func checkCertificate(text string) error {
	der, err := base64.RawStdEncoding.DecodeString(text)
	if err == nil {
		_, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return notPlugin("build it with the plugin SDK", "it has no certificate for the connection: %w", err)
	}
	return nil
}
