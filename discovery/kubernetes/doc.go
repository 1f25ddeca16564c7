// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes finds contact points among the pods of a Kubernetes cluster: those
// with certain labels, or the endpoints of a Service.
//
// # Use
//
// A program makes the method, gives it to the discovery module under a name, and closes
// it in the end:
//
//	pods, err := kubernetes.New(kubernetes.Default())
//	...
//	defer pods.Close()
//	found, err := discovery.New(config, discovery.Method{Name: kubernetes.Method, Discovery: pods})
//
// In a pod nothing has to be configured but a role for its service account, which must
// be allowed to list and watch pods, or endpointslices, in its namespace. Elsewhere the
// server, the namespace, and the files of a token and of the certificates are given.
//
// A running pod that has an address and is not terminating is a contact point, whether it is
// ready or not: a node is ready only after it has joined. A pod with several addresses is one
// contact point.
//
// # Lifecycle and concurrency
//
// Nothing happens before the first lookup, which starts a goroutine. The goroutine lists the
// objects page by page, watches them from then on, and ends a minute after the last lookup, or
// with Close:
//
//	list --> answers --> watch --event--> answers ...
//	 ^                    |  |
//	 |     410 Gone       |  +-- ends, breaks off --> watch from the last version
//	 +--------------------+  |
//	 ^                       +-- refused --> lookups fail; a pause of 1 to 15 seconds
//	 +---------------------------------------------+
//
// A [Discovery] is safe for concurrent use.
//
// # Guarantees
//
//   - An answer is what a list and the watch after it said, and the watch has not
//     failed since. While the server cannot be asked there is an error, and no answer
//     from before.
//   - The token is sent to the configured server alone: no redirect is followed, no
//     proxy used, and nothing sent without TLS.
//   - Each answer of the server is bounded: in bytes, in time, in pages, and to
//     [discovery.MaxTargets] endpoints altogether.
//   - A watch may be silent between two events for as long as it lasts. In the middle of an event
//     it may not: once the limit of a request is over, lookups fail until there is a new list.
//   - Pods that all lack the port that was asked for are an error, since an answer
//     without contact points would say that there are no pods.
//
// # Non-guarantees
//
// The server learns of a change by the kubelet on the machine of the pod, so that a pod that
// has died with its machine may be found for some minutes. A connection that died in
// silence is noticed after about 20 seconds, and answers are that old until then. No
// client certificates and no exec plugins are supported: where these are the only way
// to the server, use kubectl proxy.
package kubernetes
