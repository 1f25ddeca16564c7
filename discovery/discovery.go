// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// TargetsMax is the largest number of contact points that one method may return.
// A larger answer is an error of the method, since nobody could probe so many.
const TargetsMax = 10_000

// ErrClosed is wrapped by the error of a lookup by a method that was closed.
var ErrClosed = errors.New("the discovery method is closed")

// Discovery resolves the name of a service to contact points.
//
// Whoever forms or joins a cluster calls it, from any goroutine and from several
// at a time. A lookup may block until its context ends, and then returns soon
// with an error that wraps that of the context. The result belongs to the caller.
//
// A method that holds connections, sockets or goroutines is an [io.Closer] too.
// Whoever made the method closes it: Close ends what it holds and the lookups
// under way, returns when they have ended, and works twice. A lookup afterwards
// fails with [ErrClosed].
//
// A method that is told of changes by its source keeps its answer current by
// itself and gives it at once, so that asking often costs little.
type Discovery interface {
	// Lookup returns the contact points of a service. That there are none is an
	// answer, not an error; an error means that it is not known.
	Lookup(ctx context.Context, q Query) (Targets, error)
}

// Announcer is a method by which a node is found only if it has said where it is, such as a
// registry without somebody else who registers nodes there.
type Announcer interface {
	Discovery

	// Announce makes self, the address of this node, one of the contact points of a service,
	// for this method's lookups on other nodes, until the method is closed. The node calls it
	// once, before its first lookup. It returns at once: a source that cannot be told at
	// present is told later. An error means that it never will be.
	Announce(service string, self Target) error
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
	// TTL is for how long, counted from the end of the lookup, the method gives this
	// answer again without asking its source: sooner, a lookup finds nothing newer.
	// It is never negative. 0: the method does not say.
	TTL time.Duration
}

// Distinct checks the contact points of an answer, for whoever implements or calls
// a [Discovery]: it returns them in their order without duplicates, in a new slice.
// One bad contact point makes the list useless, since who sends one thing that is
// wrong may have left out one that is right. The error wraps [ErrBadTarget] then; a
// list that is longer than [TargetsMax] is refused too.
func Distinct(list []Target) ([]Target, error) {
	if len(list) > TargetsMax {
		return nil, fmt.Errorf("discovery: %d contact points are more than %d", len(list), TargetsMax)
	}
	unique := make([]Target, 0, len(list))
	seen := make(map[Target]bool, len(list))
	for _, target := range list {
		if err := target.Validate(); err != nil {
			return nil, err
		}
		if !seen[target] {
			seen[target] = true
			unique = append(unique, target)
		}
	}
	return unique, nil
}
