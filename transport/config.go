// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/quorate/quorate/config/field"
)

// The settings of a transport, field by field, then their defaults, the bounds that
// follow from them, and the check that reports every setting out of range.

// Config is what an operator may set. Build it from [Default].
type Config struct {
	// Bind is the "host:port" to listen on when it is not the node's own
	// address, as behind address translation or in a container. Empty: the
	// node's address.
	Bind string `koanf:"bind"`

	// AllowInsecure permits listening and dialling beyond the loopback
	// interface without TLS. Any process that can reach the port can then
	// speak as any node.
	AllowInsecure bool `koanf:"allow-insecure"`

	// TLS names the files of the node's certificate: certificate, key and
	// authorities, or none.
	TLS TLSFiles `koanf:"tls"`

	// RequireIdentity refuses certificates that do not say of which cluster their
	// node is and which roles it may have, by URI names of the form
	// quorate://<cluster>/<role>, one for each role. Certificates that have such
	// names are held to them in any case. Without them any certificate of the
	// authorities may join from its host, in any role.
	RequireIdentity bool `koanf:"require-identity"`

	// Lane is what carries the lanes of messages: "tcp" straight on TCP or TLS, by the
	// same port, with nodes that do so too and over gRPC with others; "grpc" over gRPC
	// alone, for networks that let nothing else through. Lanes of the other classes are
	// on gRPC in any case.
	Lane string `koanf:"lane" oneof:"tcp|grpc"`

	// MaxFrameBytes is the largest frame, 128 KiB to 64 MiB. All nodes of a
	// cluster should have the same. A receiver allocates no more than this for
	// a frame.
	MaxFrameBytes int `koanf:"max-frame-bytes" unit:"bytes" range:"131072..67108864"`

	// WindowBytes is how many bytes of a lane may be queued or unacknowledged, at
	// least 64 KiB. The last message may go beyond the window, whatever its size: a
	// message is taken as long as any byte of the window is free.
	WindowBytes int `koanf:"window-bytes" unit:"bytes" range:"65536.."`

	// MaxSilence is how long a connection that owes an acknowledgement may say
	// nothing before it is closed and dialled anew, at least 100 ms.
	MaxSilence time.Duration `koanf:"max-silence" range:"100ms.."`

	// RedialAfter is the longest time from the beginning of one attempt to connect to
	// that of the next, at least 10 ms. The second attempt follows the first after a
	// sixteenth of RedialAfter, and the interval doubles with each attempt. A refused
	// lane refuses appends for RedialAfter.
	RedialAfter time.Duration `koanf:"redial-after" range:"10ms.."`

	// HandshakeTimeout bounds TLS and the handshake of the transport together.
	HandshakeTimeout time.Duration `koanf:"handshake-timeout" range:">0s.."`

	// GiveUpAfter is how long a peer may stay away before the session is over
	// and its messages are reported as lost. At least MaxSilence.
	GiveUpAfter time.Duration `koanf:"give-up-after" range:"100ms.."`

	// IdleAfter is how long a lane stays open without use. Heartbeats keep the
	// control lane open between nodes that monitor each other.
	IdleAfter time.Duration `koanf:"idle-after" range:">0s.."`

	// Linger is how long Close waits for acknowledgements of what is queued to
	// peers that are connected. Zero: not at all.
	Linger time.Duration `koanf:"linger" range:"0s.."`

	// HostConnections is how many connections of one remote IP address may be open
	// once their handshakes are complete; a node opens up to three to each other node.
	// Further connections are closed. At least 1.
	HostConnections int `koanf:"host-connections" unit:"connections" range:"1.."`

	// PendingConnections is how many connections of one remote IP address may be
	// waiting for TLS and handshake to complete; twice as many may be of all addresses. Beyond that the oldest
	// is closed, of the address that has most. At least 1.
	PendingConnections int `koanf:"pending-connections" unit:"connections" range:"1.."`
}

// The values of [Config.Lane].
const (
	LaneTCP  = "tcp"
	LaneGRPC = "grpc"
)

// TLSFiles names PEM files. The transport checks the files at each handshake and every
// few seconds, so that certificates can be replaced under a running node; while new
// content is faulty, the last good content stays in use. See package transport/mutual.
type TLSFiles struct {
	Certificate string `koanf:"certificate"` // The node's certificate and its chain.
	Key         string `koanf:"key"`         // The certificate's key.
	Authorities string `koanf:"authorities"` // Who may sign the certificates of peers.

	// Revocations names lists of certificates that are refused although an authority
	// has signed them: files as authorities publish them (RFC 5280, PEM or DER),
	// signed by one of the authorities. Empty: no certificate is revoked.
	Revocations string `koanf:"revocations"`
}

// IsZero reports whether no file is named.
func (f TLSFiles) IsZero() bool { return f == TLSFiles{} }

// Complete reports whether the three files that TLS needs are named: certificate, key
// and authorities.
func (f TLSFiles) Complete() bool { return f.Certificate != "" && f.Key != "" && f.Authorities != "" }

// Validate reports files of which one is missing.
func (f TLSFiles) Validate() error {
	if f.IsZero() || f.Complete() {
		return nil
	}
	fault := errors.New("certificate, key and authorities must be set together, or none of them")
	return field.Relate(fault, "certificate", "key", "authorities")
}

// Paths returns pointers to all four paths, to be changed in place; the path of a file
// that is not named is empty.
func (f *TLSFiles) Paths() []*string {
	return []*string{&f.Certificate, &f.Key, &f.Authorities, &f.Revocations}
}

// batchBytes is the size above which a batch is closed and the next begun.
const batchBytes = 64 << 10

// Default returns the configuration that fits most clusters.
func Default() Config {
	return Config{
		Lane:               LaneTCP,
		MaxFrameBytes:      4 << 20,
		WindowBytes:        1 << 20,
		MaxSilence:         5 * time.Second,
		RedialAfter:        time.Second,
		HandshakeTimeout:   5 * time.Second,
		GiveUpAfter:        30 * time.Second,
		IdleAfter:          5 * time.Minute,
		Linger:             250 * time.Millisecond,
		HostConnections:    1024,
		PendingConnections: 256,
	}
}

// BatchBytes is the size above which a batch is closed and the next begun. A frame is
// at most one batch of that size and one message.
func (c Config) BatchBytes() int { return batchBytes }

// MaxMessageBytes is the largest message that Append takes: what is left of
// MaxFrameBytes beside a batch that was almost full, and the envelope.
func (c Config) MaxMessageBytes() int { return c.MaxFrameBytes - batchBytes - 64 }

// Validate reports every value that is out of range, each as a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Lane != LaneTCP && c.Lane != LaneGRPC, "lane", "%q is neither %s nor %s", c.Lane, LaneTCP, LaneGRPC)
	if c.Bind != "" {
		_, port, err := net.SplitHostPort(c.Bind)
		faults.Refuse(err != nil, "bind", `%q is not a "host:port": %v`, c.Bind, err)
		_, noPort := strconv.ParseUint(port, 10, 16)
		faults.Refuse(err == nil && noPort != nil, "bind", "%q is not a port from 0 to 65535", port)
	}
	faults.Add(field.Ranges(c))
	faults.Relate(c.GiveUpAfter < c.MaxSilence, "give-up-after", "max-silence", "%v: must be at least max-silence, which is %v", c.GiveUpAfter, c.MaxSilence)
	faults.Add(field.Within("tls", c.TLS.Validate()))
	return faults.Err()
}
