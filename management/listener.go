// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"

	"github.com/quorate/quorate/transport/gate"
)

// Behind the gate of the transport a connection waits for a request, or has one answered: while it waits, whatever has
// come on it, it gives way to others ([bounded]); while a request is answered it does not ([occupy]).

// descriptorShare is the part of all descriptors of the process that may wait so at one listener: a quarter.
const descriptorShare = 4

// bounded bounds the connections of a listener that wait for requests.
func bounded(l net.Listener, connections int, log *slog.Logger) net.Listener {
	most := max(1, min(connections+maxProbes+maxStreams, descriptors()/descriptorShare))
	return gate.New(l, gate.Config{
		Pending: most, HostPending: most, Bytes: gate.PendingBytes, AllBytes: gate.AllPendingBytes,
		Closed: func(remote net.Addr, why gate.Reason) {
			log.Warn("management closes a connection that waits for a request, because there are too many, or which says too much",
				"places", most, "host", gate.HostOf(remote), "bytes", why == gate.TooManyBytes)
		},
		Failed: func(err error) { log.Warn("management cannot accept connections", "error", err) },
	})
}

// placeKey is the key of a request's connection in its context.
type placeKey struct{}

// withPlace is the context of the requests of a connection.
func withPlace(ctx context.Context, c net.Conn) context.Context {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	return context.WithValue(ctx, placeKey{}, c)
}

// placeOf returns the connection of a request; nil where it has no listener of this package, as in tests.
func placeOf(ctx context.Context) *gate.Conn {
	c, _ := ctx.Value(placeKey{}).(*gate.Conn)
	return c
}

// occupy keeps the connection of a request while it is answered.
func occupy(ctx context.Context) (ended func()) {
	c := placeOf(ctx)
	if c == nil || !c.Admit() {
		return func() {}
	}
	return c.Rest
}
