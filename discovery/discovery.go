// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MaxTargets is the largest number of contact points that one method may return.
// A larger answer is an error of the method, since no node could ask so many.
const MaxTargets = 10_000

// ErrClosed is wrapped by the error of a lookup by a method that was closed.
var ErrClosed = errors.New("the discovery method is closed")

// Discovery resolves the name of a service to contact points.
//
// A node that looks for a cluster calls Lookup, from any goroutine and from several at a time. A lookup may block until
// its context ends, and then returns soon with an error that wraps the error of the context. The result belongs to the
// caller. Whatever the answers, a node looks up twice in a membership.discovery.interval at most, and as a member
// twice in five seconds.
//
// A method that holds connections, sockets or goroutines is an [io.Closer] too.
// The program that made the method closes it: Close ends these and the lookups under
// way, returns when all have ended, and works twice. A lookup afterwards fails with
// [ErrClosed].
//
// A method that is told of changes by its source keeps its answer current by
// itself and gives the answer at once, so that frequent lookups cost little.
type Discovery interface {
	// Lookup returns the contact points of a service. An empty answer says that the service
	// has none; an error says that the contact points could not be found out.
	Lookup(ctx context.Context, q Query) (Targets, error)
}

// Class is what a method promises beyond the interface. The zero value promises nothing.
type Class struct {
	// Pure: equal queries get equal contact points, at any time and on any node with the same
	// settings. A method that asks others, or reads what may change, is not pure. The
	// conformance suite in discoverytest demands it of methods that declare it.
	Pure bool
}

// Classed is implemented by methods that promise something about themselves.
type Classed interface {
	// Class is constant, does not block, and may be called at any time.
	Class() Class
}

// ClassOf returns the class of d if it implements [Classed], otherwise the zero class.
func ClassOf(d Discovery) Class {
	if c, ok := d.(Classed); ok {
		return c.Class()
	}
	return Class{}
}

// Announcer is a method by which only those nodes are found that have announced themselves,
// as in a registry where nothing else registers them.
type Announcer interface {
	Discovery

	// Announce makes self, the address of this node, one of the contact points of a service,
	// for this method's lookups on other nodes, until the method is closed. The node calls it
	// once, before its first lookup. Announce returns at once: a source that cannot be told
	// at present is told later. An error means that the source can never be told.
	Announce(service string, self Target) error
}

// Query asks for the contact points of one service. A method ignores the fields that mean
// nothing to its source.
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
	// Reason says in words where the contact points come from, or why there are none.
	Reason string
	// TTL is for how long, counted from the end of the lookup, the method gives this
	// answer again without asking its source: a lookup before that finds nothing newer.
	// TTL is never negative. 0: the method does not say.
	TTL time.Duration
}

// Check returns nil if the answer is one that a caller may use, otherwise the first fault:
//
//	C1  TTL is not negative;
//	C2  there are at most [MaxTargets] contact points;
//	C3  each is valid ([Target.Validate]), and is there once.
//
// An error about a contact point that is not valid wraps [ErrBadTarget].
func (t Targets) Check() error {
	if t.TTL < 0 {
		return fmt.Errorf("discovery: the answer holds for %v", t.TTL)
	}
	if len(t.List) > MaxTargets {
		return fmt.Errorf("discovery: %d contact points are more than %d", len(t.List), MaxTargets)
	}
	for _, target := range t.List {
		if err := target.Validate(); err != nil {
			return err
		}
	}
	if twice := repeated(t.List); twice > 0 {
		return fmt.Errorf("discovery: %d of %d contact points are there twice", twice, len(t.List))
	}
	return nil
}

// Distinct checks the contact points of an answer, for the implementation or the caller
// of a [Discovery]: it returns them in their order without duplicates, in a new slice.
// One bad contact point makes the whole list an error, which wraps [ErrBadTarget]: a source
// that sends a wrong contact point may have left out a right one. A list that is longer than
// [MaxTargets] is refused too.
func Distinct(list []Target) ([]Target, error) {
	if len(list) > MaxTargets {
		return nil, fmt.Errorf("discovery: %d contact points are more than %d", len(list), MaxTargets)
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
