// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpapi asks a registry that has an HTTP API with answers in JSON, such as
// Consul or Kubernetes.
//
// It is for the author of a [discovery.Discovery] over such a registry. The operator's
// settings of the registry contain a [Config]: the files of a token and of the
// certificates, and how long one request may take. A [Client] sends requests to the
// registry by these settings:
//
//	type Config struct {
//		Address        string `koanf:"address"`
//		httpapi.Config `koanf:",squash"`
//	}
//
//	client := httpapi.New(httpapi.Server{URL: config.Address, Key: "address", Malformed: ErrMalformed, Config: config.Config})
//	defer client.Close()
//	answer, err := client.Get(ctx, "/v1/services?name=bank")
//
// Package follow, beside this one, says when to ask: it holds one conversation with the
// registry and answers lookups from it. [ParseURL], [ReadFile] and [ReadRoots] also serve a
// method whose registry speaks another protocol behind a URL.
//
// # Lifecycle and concurrency
//
// A client starts no goroutine of its own and connects to nothing before the first request.
// It keeps connections open between requests; Close closes those that are idle. All
// methods are safe for concurrent use.
//
// # Guarantees
//
//   - The token is sent to the configured server alone: no redirect is followed, and no
//     proxy of the environment is used.
//   - The token and the certificates are read from their files for each request, so that
//     both may rotate. New certificates mean new connections.
//   - An answer that Get returns has status 200 and is in JSON, one that Send returns has 200
//     or 201; every other answer is an error, of which at most 64 KiB are read.
//   - The header of an answer is bounded, and a connection that died in silence is noticed
//     after about 20 seconds.
//
// # Non-guarantees
//
// Whether the address is encrypted is for the Validate of the method to demand, since only
// the method knows which servers are on the same machine. The caller bounds the length of
// the body that it reads, and the time of a request by its context.
package httpapi
