// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package management lets an operator ask a running node, over HTTP, how the node is and
// why something is so: which members there are and which see others as unreachable, which
// decisions the node took lately, where an entity lives and why there.
//
//	routes := slices.Concat(management.Health(node, nil), management.Members(node), management.Decisions(node))
//	server, err := management.Serve(ctx, cfg, routes)
//	...
//	defer server.Close()
//
//	GET /health/live                       200 while the node runs, 503 after
//	GET /health/ready                      200 while it is up, has standing, and no kind of it is refused
//	GET /health/startup                    200 once it has been up
//	GET /v1/members                        [ClusterMembers]
//	GET /bootstrap                         [BootstrapStatus]
//	POST /v1/form                          [Formed]
//	POST /v1/members/{member}/leave        [LeaveAnswer]
//	POST /v1/members/{members}/down        [Downed]; force
//	POST /v1/join/{seeds}                  [Joining]
//	GET /v1/events                         [EventList]; after, type, limit
//	GET /v1/events/stream                  each [Event] as it happens; type
//	GET /v1/decisions                      [DecisionList]; component, topic, subject, limit
//	GET /v1/kinds                          [KindList]
//	GET /v1/kinds/{kind}/shards/{shard}    [Explanation]
//	GET /v1/kinds/{kind}/entities/{entity} [Explanation]
//	GET /v1/why                            [ClusterReasons]
//	GET /openapi.json                      the description of all routes, see [OpenAPI]
//
// Besides there are the paths of Akka and Pekko Management, see [Akka].
//
// An entity's id is one segment of the path: characters other than letters, digits, and
// "-_~" are best written in percent encoding; slashes and a lone "." or ".." must be.
//
// # Answers
//
// Every answer is JSON. An error is {"error": "..."}, with "reasons" when there are
// several; see [Error]. The status is 400 for a request that makes no sense, 401 for an
// operation that only operators may ask for, 403 for a host name in the request that is not
// this machine's and for what nobody may ask, 404 for what does not exist, 405
// for a method other than GET and HEAD, or other than that of a route that changes
// something, 409 for a change that the node refuses, 500 after a panic, 503 when the node
// is not ready or too much is asked at once, and 504 when no answer was found in time.
//
// # Access
//
// By default nothing listens, without an address. On the loopback interface every process
// of the machine may ask, without encryption. Beyond it, only clients with mutual TLS
// may, and only when the configuration says so twice; see [Config.AllowRemote].
//
// A route with [Route.Operation] changes something. It is kept to operators if it says so
// ([Route.Authorized]), whom [OperatorsConfig] names, nobody by default: they ask over a Unix
// socket, with a token or with a certificate that has a name of its own. Of the routes of this
// package one has an operation, for which there is a switch instead: a node that waits for a
// cluster founds one, see [Form] and [Config.AllowForm]. [WithChanges] hears of all operations.
//
// Orchestrators and load balancers have no certificates. For them there is a second listener,
// [HealthConfig], which answers whoever reaches it, and says nothing but whether the node is
// live and ready, and why not.
//
// # Modules and routes
//
// A [Route] is a path and a function from a [Request] to a value that is encoded as JSON.
// Modules make routes and know nothing of HTTP. An answer that is not JSON, such as
// metrics for Prometheus, has an [http.Handler] instead, and one that goes on a [Stream].
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
