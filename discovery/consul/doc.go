// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package consul finds contact points among the services that are registered in Consul
// and pass their health checks.
//
// # Use
//
// A program makes the method, gives it to the discovery module under a name, and closes
// it in the end:
//
//	registered, err := consul.New(consul.Default())
//	...
//	defer registered.Close()
//	found, err := discovery.New(config, discovery.Method{Name: consul.Method, Discovery: registered})
//
// Nodes are registered by whoever deploys them, in a file of the agent:
//
//	service {
//	  name  = "bank"
//	  port  = 7946
//	  meta  = { port-management = "8558" }
//	  check { tcp = "127.0.0.1:7946", interval = "5s" }
//	}
//
// The check must be one of life. With one of readiness no node would pass before it has
// joined, and none could join before another one passes.
//
// # Lifecycle and concurrency
//
// Nothing happens before the first lookup. It asks the agent, and a goroutine goes on asking
// for changes with blocking queries, until a minute after the last lookup, or until Close:
//
//	ask --> answers --> ask for what is newer than the index --> answers ...
//	 ^                     |            |
//	 |                     |            +-- index goes back --> ask without an index
//	 |                     +-- refused, unreachable --> lookups fail; a pause of 1 to 15 s
//	 +-------------------------------------------------+
//
// A [Discovery] is safe for concurrent use.
//
// # Guarantees
//
//   - An answer is what the agent told last, and no question to it has failed since. While
//     the agent cannot be asked there is an error, and no answer from before.
//   - A token that may not read everything is an error: Consul leaves out what the token may
//     not read, and the rest would look like all there is.
//   - The token is sent to the configured agent alone: no redirect is followed, no proxy
//     used, and the token is not sent without TLS to another machine.
//   - Each answer is bounded, in bytes, in time and to [discovery.MaxTargets]
//     registrations; questions have a least distance.
//
// # Non-guarantees
//
// That a check passes is what the agent of that machine said last: an agent that has died
// with its machine is noticed by the failure detection of Consul, after some 10 seconds.
// A connection to the agent that died in silence is noticed after about 20 seconds.
// Nothing is registered by this package.
package consul
