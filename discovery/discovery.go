// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import "context"

// Discovery resolves the name of a service to contact points.
//
// Whoever forms or joins a cluster calls it, from any goroutine and from several
// at a time. A lookup may block until its context ends, and then returns soon
// with an error that wraps that of the context. The result belongs to the caller.
type Discovery interface {
	// Lookup returns the contact points of a service. That there are none is an
	// answer, not an error; an error means that it is not known.
	Lookup(ctx context.Context, q Query) (Targets, error)
}

// Query asks for the contact points of one service. A method ignores the fields
// that it has no use for.
type Query struct {
	// Service is the name of the service.
	Service string
	// Port is the name of one of the ports of the service, or empty.
	Port string
	// Protocol is the protocol of the port, such as "tcp", or empty.
	Protocol string
}

// Targets is the answer to a [Query].
type Targets struct {
	// List holds the contact points, without duplicates, in an order that means
	// something only to the method. Empty: the service has none at present.
	List []Target
	// Reason says in words where they come from, or why there are none.
	Reason string
}
