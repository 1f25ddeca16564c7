// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package plugins is the vocabulary that hosts and plugins share: policies, the
// versions of the contract, the configuration of a plugin, what happens to one, and the
// errors of talking to one.
//
// A plugin is a strategy in a process of its own, so that an operator changes how a
// cluster decides without building it anew, and so that a strategy that crashes, hangs or
// answers nonsense harms only itself.
//
//	  node                                     plugin
//	┌──────────────────────────┐  gRPC over  ┌──────────────────────────┐
//	│ machine ─▶ Call          │  a socket,  │  sdk.Serve               │
//	│             │            │  mutual TLS │     │                    │
//	│            host ─▶ client├────────────▶│  server ─▶ your strategy │
//	│  (supervises, swaps)     │             │  (settings, panics)      │
//	└──────────────────────────┘             └──────────────────────────┘
//
// The author of a plugin imports the package sdk and nothing else from here. A program
// that runs plugins imports the package host. The contract between them is protobuf, in
// proto/quorate/plugin/v1, with its meaning written at each field, so that any language
// can serve it.
//
// # Lifecycle and concurrency
//
// Everything in this package is a plain value: no goroutine, no I/O.
//
// # Guarantees
//
//   - [Config.Validate] names every fault of a configuration with its key.
//   - Errors of calls to plugins never expose the transport: they match the
//     sentinels of this package, and [context.DeadlineExceeded] and
//     [context.Canceled] where they apply.
package plugins
