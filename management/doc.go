// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package management lets an operator ask a running node, over HTTP, how it is
// and why something is so: who is a member and who sees whom as unreachable,
// which decisions the node took lately, where an entity lives and why there.
//
//	routes := slices.Concat(management.Health(node), management.Members(node), management.Decisions(node))
//	server, err := management.Serve(ctx, cfg, routes)
//	...
//	defer server.Close()
//
//	GET /health/live                       200 while the node runs, 503 after
//	GET /health/ready                      200 while it is up, has standing, and no kind of it is refused
//	GET /v1/members                        [ClusterMembers]
//	POST /v1/form                          [Formed]
//	GET /v1/decisions                      [DecisionList]; component, topic, subject, limit
//	GET /v1/kinds                          [KindList]
//	GET /v1/kinds/{kind}/shards/{shard}    [Explanation]
//	GET /v1/kinds/{kind}/entities/{entity} [Explanation]
//
// An entity's id is one segment of the path: what is not a letter, a digit, or
// one of "-_~" is best written in percent encoding, slashes and a lone "." or
// ".." must be.
//
// # Answers
//
// Every answer is JSON. One that is no success is {"error": "..."}, with
// "reasons" when there are several; see [Error]. The status is 400 for a
// request that makes no sense, 403 for a host name in the request that is not
// this machine's, 404 for what does not exist, 405 for anything but GET and
// HEAD, or for a route that changes something but POST, 409 for a change that the
// node refuses, 500 after a panic, 503 when the node is not ready or too much is asked
// at once, and 504 when no answer was found in time.
//
// # Who may ask
//
// Nobody by default: without an address nothing listens. On the loopback
// interface, everybody on the machine may, without encryption. Beyond it, only
// with mutual TLS, and only when the configuration says so twice; see
// [Config.AllowRemote]. One thing can be changed through this interface: a node that
// waits for a cluster founds one, see [Form] and [Config.AllowForm].
//
// # Modules and routes
//
// A [Route] is a path and a function from a [Request] to a value that is
// encoded as JSON. Modules make routes and know nothing of HTTP. What is not JSON, such
// as metrics for Prometheus, has an [http.Handler] instead.
//
// # Life cycle and concurrency
//
// [Serve] listens and returns. [Server.Close] lets running answers end, within
// a second, and waits for every goroutine; an answer that ignores the end of
// its context is reported by its error. Connections and concurrent requests
// are bounded, with room of their own for health checks. Answers run
// concurrently, each on the goroutine of its connection. A panic of an answer
// is logged and costs its request only.
package management
