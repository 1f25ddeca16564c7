// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/quorate/quorate/transport"

	"github.com/quorate/quorate/config/field"
)

// What a file may set for management: Config, the listener for health checks with its own bounds, and Validate, which
// says all faults together. Who is an operator is in operators.go.

// Config is what an operator may set. Start from [Default].
type Config struct {
	// Address is the "host:port" to listen on. Empty, the default, means not to listen.
	// Port 0 means any free port, see [Server.Address].
	Address string `koanf:"address"`

	// AllowRemote permits an address beyond the loopback interface. TLS must be
	// configured then: clients learn where everything runs.
	AllowRemote bool `koanf:"allow-remote"`

	// TLS names the files of the certificate, as in the section of the transport:
	// certificate, key and authorities, or none. With TLS, clients must show a
	// certificate that the authorities have signed.
	TLS transport.TLSFiles `koanf:"tls"`

	// AllowForm permits "quorate form", by which an operator lets a waiting node found a new cluster: where operators are
	// configured to them alone; else over the loopback interface to every process of the machine, and with TLS to every
	// client. True by default, since who needs it has an outage, and a node that waits loses nothing by it; false where
	// there are no operators, and clients that must not decide this.
	AllowForm bool `koanf:"allow-form"`

	// Page serves a page for browsers at /ui, where people see the cluster as this node does: members, shards,
	// moves, decisions, replicated keys, plugins, rates. It changes nothing, and shows to whoever may ask this
	// server what the other routes answer. False by default.
	Page bool `koanf:"page"`

	// MaxRequests bounds the requests that are answered at the same time, 1 to 1,024.
	// Further requests are refused with status 503. Health checks have room of their own.
	MaxRequests int `koanf:"max-requests" unit:"requests" range:"1..1024"`

	// MaxConnections bounds the connections that wait for a request, 1 to 65,536, besides 8 for health checks and 8 for
	// streams of events; a quarter of the descriptors of the process bounds them too. When all places are taken, the
	// oldest gives way to a new one, of the IP address that has most. One whose request is being answered does not.
	MaxConnections int `koanf:"max-connections" unit:"connections" range:"1..65536"`

	// RequestTimeout bounds one answer, 10 ms to 10 minutes.
	RequestTimeout time.Duration `koanf:"request-timeout" range:"10ms..10m"`

	// Operators says who may have the node do something.
	Operators OperatorsConfig `koanf:"operators"`

	// Health is a second listener, for health checks alone.
	Health HealthConfig `koanf:"health"`
}

// HealthConfig is a listener that answers whoever reaches it, without encryption and without
// certificates, as orchestrators and load balancers ask. It says whether the node is live and
// ready, and why not, and nothing else.
type HealthConfig struct {
	// Address is the "host:port" to listen on, also beyond the loopback interface: ":8081"
	// is port 8081 of all interfaces. Empty, the default, means not to listen. Port 0 means
	// any free port, see [Server.Address].
	Address string `koanf:"address"`

	// Metrics also shows the metrics of the node there, at /metrics, if telemetry.metrics
	// asks for them. They tell how many members and entities there are.
	Metrics bool `koanf:"metrics"`
}

// validate reports an address that makes no sense.
func (c HealthConfig) validate(other string) error {
	if c.Address == "" {
		if c.Metrics {
			return field.Errorf("health.metrics", "is true, and nothing listens: set health.address")
		}
		return nil
	}
	if err := validAddress("health.address", c.Address); err != nil {
		return err
	}
	if _, port, _ := net.SplitHostPort(c.Address); c.Address == other && port != "0" {
		return field.Errorf("health.address", "%s is that of management.address too: the two have different doors, choose another port", c.Address)
	}
	return nil
}

// validAddress reports what is no "host:port".
func validAddress(key, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return field.Errorf(key, `%q is not a "host:port": %v`, address, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return field.Errorf(key, "%q is not a port from 0 to 65535", port)
	}
	return nil
}

// Default returns the default configuration, by which nothing listens.
func Default() Config {
	return Config{AllowForm: true, MaxRequests: 16, MaxConnections: 700, RequestTimeout: 5 * time.Second}
}

// Serves reports whether the configuration has routes answered, at an address or over a socket.
func (c Config) Serves() bool { return c.Address != "" || c.Operators.Socket != "" }

// Validate reports every fault in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(field.Ranges(c))
	faults.Add(field.Within("tls", c.TLS.Validate()))
	faults.Add(c.validateAddress())
	faults.Add(c.Health.validate(c.Address), c.Operators.validate(c))
	return faults.Err()
}

// validateAddress reports an address that cannot be served, or must not be.
func (c Config) validateAddress() error {
	if c.Address == "" {
		return nil
	}
	if err := validAddress("address", c.Address); err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(c.Address)
	switch {
	case loopback(host):
	case !c.AllowRemote:
		return field.Errorf("address", "%s is not on the loopback interface: use 127.0.0.1:%s, or set allow-remote: true and tls", c.Address, port)
	case !c.TLS.Complete():
		return field.Errorf("tls", "must be set (certificate, key and authorities), because allow-remote is true and %s is not on the loopback interface", c.Address)
	}
	return nil
}

// loopback reports whether a host is certainly this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
