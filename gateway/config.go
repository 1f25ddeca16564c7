// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/transport"
)

// What a file may set for the gateway: Config, its defaults, and Validate, which says all faults together.

// Config is what an operator may set. Start from [Default].
type Config struct {
	// Address is the "host:port" to listen on. Empty, the default, means not to listen.
	// Port 0 means any free port, see [Server.Address].
	Address string `koanf:"address"`

	// Kinds are the kinds of entities that clients may reach, by their names; * alone stands for
	// all of them, also those by which the program keeps singletons, daemons and the like. Needed with an address.
	Kinds []string `koanf:"kinds"`

	// AllowRemote permits an address beyond the loopback interface. TLS must be configured then,
	// unless allow-insecure is true too.
	AllowRemote bool `koanf:"allow-remote"`

	// AllowInsecure permits an address beyond the loopback interface without TLS: whoever reaches
	// the port, and has a token if token-file is set, may ask, and whoever is on the way reads along. For
	// networks that nobody else is on, or that encrypt by themselves.
	AllowInsecure bool `koanf:"allow-insecure"`

	// TLS names the files of the certificate, as in the section of the transport:
	// certificate, key and authorities, or none. With TLS, clients must show a
	// certificate that the authorities have signed. These need not be those of the transport:
	// whoever may ask should not thereby be able to join.
	TLS transport.TLSFiles `koanf:"tls"`

	// CertificateURI is a URI name that makes its certificate that of a client, such as
	// quorate://bank/client; it needs tls. Empty, the default: with tls, and without token-file, any certificate
	// of the authorities will do.
	CertificateURI string `koanf:"certificate-uri"`

	// TokenFile names a file of bearer tokens that make clients, in the form of
	// management.operators.token-file. It is read when a client begins, and every few seconds while it is connected.
	// Empty, the default, means no tokens.
	TokenFile string `koanf:"token-file"`

	// MaxConnections bounds the open connections of clients, 1 to 65,536. Who has a place keeps it: when all are taken,
	// new connections are closed. Connections on which no client was let in yet are counted apart.
	MaxConnections int `koanf:"max-connections" unit:"connections" range:"1..65536"`

	// Window bounds the requests of one client that have no outcome yet, 1 to 65,536.
	Window int `koanf:"window" unit:"requests" range:"1..65536"`

	// MaxRequests bounds the requests of all clients that have no outcome yet, 1 to 1,048,576.
	// Further ones are sent back as overloaded.
	MaxRequests int `koanf:"max-requests" unit:"requests" range:"1..1048576"`

	// MaxBytes bounds the messages of those requests, 1 MiB to 64 GiB; further ones are sent back as overloaded. It bounds
	// as well what has come of messages that are on their way: half of it for one IP address and a quarter for one
	// connection, but always two messages of the largest size. Beyond that the call ends of which most has come.
	MaxBytes int `koanf:"max-bytes" unit:"bytes" range:"1048576..68719476736"`

	// UnreadBytes bounds the replies that wait for one client to read them, 64 KiB to 1 GiB. A
	// client with more is closed.
	UnreadBytes int `koanf:"unread-bytes" unit:"bytes" range:"65536..1073741824"`

	// ReadTimeout is how long a message of a client may take to arrive, 10 ms to 5 minutes. Its call is ended then.
	ReadTimeout time.Duration `koanf:"read-timeout" range:"10ms..5m"`

	// WriteTimeout is how long a client may leave outcomes unread before it is closed, 10 ms to
	// 5 minutes.
	WriteTimeout time.Duration `koanf:"write-timeout" range:"10ms..5m"`
}

// All stands for all kinds in [Config.Kinds].
const All = "*"

// Default returns the default configuration, by which nothing listens.
func Default() Config {
	return Config{
		MaxConnections: 256, Window: 1024, MaxRequests: 16 << 10, MaxBytes: 64 << 20, UnreadBytes: 16 << 20,
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
	}
}

// Validate reports every fault in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(field.Ranges(c))
	faults.Add(field.Within("tls", c.TLS.Validate()))
	faults.Add(c.validateAddress())
	faults.Add(c.validateKinds())
	faults.Relate(c.Address != "" && len(c.Kinds) == 0, "kinds", "address", "names no kind, so that clients could reach nothing: name those that they may reach")
	if c.CertificateURI != "" {
		uri, err := url.Parse(c.CertificateURI)
		faults.Refuse(err != nil || uri.Scheme == "" || uri.Host == "" && uri.Opaque == "", "certificate-uri", "%q is no URI as quorate://bank/client", c.CertificateURI)
		faults.Relate(!c.TLS.Complete(), "certificate-uri", "tls", "is set without tls (certificate, key and authorities), so that no client shows a certificate")
	}
	faults.Relate(c.TokenFile != "" && c.Address == "", "token-file", "address", "is set, and nothing listens: set gateway.address")
	return faults.Err()
}

// validateAddress reports an address that cannot be served, or must not be.
func (c Config) validateAddress() error {
	if c.Address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		return field.Errorf("address", `%q is not a "host:port": %v`, c.Address, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return field.Errorf("address", "%q is not a port from 0 to 65535", port)
	}
	switch {
	case loopback(host):
	case !c.AllowRemote:
		return field.Errorf("address", "%s is not on the loopback interface: use 127.0.0.1:%s, or set allow-remote: true and tls", c.Address, port)
	case !c.TLS.Complete() && !c.AllowInsecure:
		return field.Errorf("tls", "must be set (certificate, key and authorities), because allow-remote is true and %s is not on the loopback interface", c.Address)
	}
	return nil
}

// validateKinds reports kinds that make no sense.
func (c Config) validateKinds() error {
	var faults field.Faults
	for i, k := range c.Kinds {
		faults.Refuse(k == "", "kinds", "has an empty name")
		faults.Refuse(k == All && len(c.Kinds) > 1, "kinds", "has * beside names: * alone stands for all kinds")
		faults.Refuse(slices.Contains(c.Kinds[:i], k), "kinds", "has %q twice", k)
	}
	return faults.Err()
}

// loopback reports whether a host is certainly this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
