// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway lets clients that are no members ask and tell the entities of a cluster, over gRPC:
// programs with module client, and programs in other languages with the published
// quorate/client/v1/client.proto. Any node can have one. A client gets no vote, hosts nothing and learns nothing
// of the cluster but where the shards live that it asks.
//
//	server, err := gateway.Serve(ctx, cfg, system)
//	...
//	defer server.Close()
//
// # Access
//
// By default nothing listens, without an address, and no kind is shown: [Config.Kinds] names those that clients may
// reach. On the loopback interface every process of the machine may ask, without encryption, unless [Config.TokenFile]
// is set. Beyond it, only clients with mutual TLS may, and only when the configuration says so twice; see
// [Config.AllowRemote]. Of those, [Config.CertificateURI] and [Config.TokenFile] choose. Whoever may ask may send any
// message to any entity of the kinds that are shown: what a client may do there is for the entities to decide.
//
// # Outcomes
//
// Each request ends with one outcome, whose code says whether the entity may have handled it. Without
// standing a node sends requests back at once, so that clients ask another one. A gateway that is closed, or whose node
// is asked to leave, tells its clients first, and answers what it has within two seconds: no request that takes
// less fails. The node does not leave before that.
//
// # Bounds
//
// Connections, requests under way and their bytes are bounded ([Config]); a connection on which
// nothing comes gives way to a new one. A client that does not read its outcomes is closed. What was refused is counted
// ([Server.Stats]), and logged once in a while.
//
// # Life cycle and concurrency
//
// [Serve] listens and returns; [Server.Close] ends everything and waits for every goroutine. A gateway whose node
// leaves ends by itself, and is closed all the same. The methods may be called from any goroutine.
package gateway
