// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package discovery finds contact points: the addresses at which a node that has
// no cluster yet may find one.
//
// # Use
//
// [Static] is the list from a configuration file, and the package file reads a list that a
// script or a person keeps. [Aggregate] asks several methods in order. A program adds methods
// of its own by implementing [Discovery], with [Distinct] and the packages follow and httpapi
// for a registry, and checks them with the package discoverytest.
//
//	found, err := discovery.New(config, discovery.Method{Name: "registry", Discovery: mine})
//	...
//	targets, err := found.Lookup(ctx, discovery.Query{Service: "bank"})
//
// The walk of an Aggregate:
//
//	Lookup --> method 1 --found--> answer
//	              |
//	              | error, nothing, or too late
//	              v
//	           method 2 --found--> answer
//	              |
//	              v
//	             ...  ----------> nothing found, or every error
//
// # Lifecycle and concurrency
//
// Nothing here starts a goroutine, caches, or has to be closed. All types are
// safe for concurrent use once constructed.
//
// # Guarantees
//
//   - What [ParseTarget] accepts has one spelling: equal targets are equal values,
//     and parsing the text of a target gives that target.
//   - An Aggregate returns valid targets without duplicates, whatever its methods
//     return, and reports the error of each method that failed.
//   - An empty answer says that there are no contact points. That they could not be found
//     out is always an error.
//
// # Non-guarantees
//
// A contact point is a hint. That it is found does not say that a node listens
// there, nor that the node belongs to the right cluster; two lookups may differ. This
// package itself resolves no name and makes no connection.
package discovery
