// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeapi is the way to the API server of Kubernetes, for whatever looks for something or
// keeps something there: contact points, leases. It has the settings of an operator, and completes
// them in a pod.
//
// # Lifecycle and concurrency
//
// A [Config] is a plain value: [Config.Validate] checks it, [Config.Located] completes it from the
// environment and the files of a pod, and [httpapi.New] makes a client of what it then holds.
//
// # Guarantees
//
//   - A token does not go over a connection that others can read: [Config.Validate] refuses a
//     token with http, and http beyond this machine.
//   - What is set is kept: [Config.Located] fills in empty names alone, and none where Server is
//     set.
//   - An error of [Config.Located] names the keys to set, and [Message] gives the server's own
//     words, cut to 200 bytes.
//
// # Non-guarantees
//
// [Config.Located] reads the namespace once; that of a pod does not change. The files of the token
// and of the certificates are named and not read: [httpapi.Client] reads them for each request.
// Neither kubeconfig files, client certificates nor exec plugins are supported: where these are the
// only way to the server, use kubectl proxy.
package kubeapi
