// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/quorate/quorate/config/field"
)

// Config is what an operator may set. Start from [Default].
type Config struct {
	// Addresses are the addresses "host:port" of gateways of the cluster, 1 to 64 of them, each once.
	// More of them spare requests a way, and outlive the end of a node.
	Addresses []string `koanf:"addresses"`

	// TLS names the files of the certificate of this client, its key, and the authorities of the nodes'
	// certificates; all of them or none. They are read at each connection, so that they can be
	// replaced while the program runs.
	TLS TLSFiles `koanf:"tls"`

	// AllowInsecure permits addresses beyond the loopback interface without TLS.
	AllowInsecure bool `koanf:"allow-insecure"`

	// TokenFile names a file with the token of this client, of up to 4 KiB, if the nodes
	// want one. It is read at each connection. Empty: no token.
	TokenFile string `koanf:"token-file"`

	// Queued bounds the requests that wait for a node, 1 to 1,000,000. What nodes send back waits besides.
	Queued int `koanf:"queued" unit:"requests" range:"1..1000000"`

	// QueuedBytes bounds the messages of those, 1 KiB to 1 GiB. A single one may be larger.
	QueuedBytes int `koanf:"queued-bytes" unit:"bytes" range:"1024..1073741824"`

	// RetryInterval is the longest time between two attempts to connect to a node, 10 ms to 5
	// minutes.
	RetryInterval time.Duration `koanf:"retry-interval" range:"10ms..5m"`

	// DialTimeout bounds an attempt, the handshake included, 10 ms to 5 minutes.
	DialTimeout time.Duration `koanf:"dial-timeout" range:"10ms..5m"`
}

// TLSFiles are files in PEM.
type TLSFiles struct {
	Certificate string `koanf:"certificate"`
	Key         string `koanf:"key"`
	Authorities string `koanf:"authorities"`
}

// complete reports whether all files are named.
func (f TLSFiles) complete() bool { return f.Certificate != "" && f.Key != "" && f.Authorities != "" }

// maxAddresses bounds the nodes of a client, each of which is connected.
const maxAddresses = 64

// Default returns the default configuration, which has no addresses.
func Default() Config {
	return Config{Queued: 4096, QueuedBytes: 16 << 20, RetryInterval: 2 * time.Second, DialTimeout: 5 * time.Second}
}

// Validate reports every fault in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(len(c.Addresses) < 1 || len(c.Addresses) > maxAddresses, "addresses", "has %d addresses, 1 to %d are possible", len(c.Addresses), maxAddresses)
	seen := map[string]bool{}
	for _, a := range c.Addresses {
		host, port, err := net.SplitHostPort(a)
		number, bad := strconv.ParseUint(port, 10, 16)
		switch {
		case err != nil || bad != nil || number == 0 || host == "":
			faults.Refuse(true, "addresses", `%q is not a "host:port"`, a)
		case seen[a]:
			faults.Refuse(true, "addresses", "%s is listed twice", a)
		case !c.TLS.complete() && !c.AllowInsecure && !loopback(host):
			faults.Refuse(true, "addresses", "%s is not on the loopback interface: set tls, or allow-insecure: true where nobody else is on the network", a)
		}
		seen[a] = true
	}
	faults.Refuse(c.TLS != TLSFiles{} && !c.TLS.complete(), "tls", "certificate, key and authorities must be set together, or none of them")
	faults.Add(field.Ranges(c))
	return faults.Err()
}

// loopback reports whether a host is certainly this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
