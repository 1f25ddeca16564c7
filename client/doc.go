// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package client asks and tells the entities of a cluster from a program that is no member of it: a
// gateway, a batch job, a command. It has no vote, hosts nothing, and can be in any number. It needs
// the section gateway in the files of the nodes.
//
//	c, err := client.Open(client.Config{Addresses: []string{"10.0.0.1:7947", "10.0.0.2:7947"}, ...})
//	defer c.Close()
//	reply, err := c.Ask(ctx, "accounts", "acct-42", payload)
//
// A typed client of protoc-gen-quorate stands on [Client.Caller]:
//
//	accounts := bankquorate.NewAccounts(c.Caller("accounts"))
//	balance, err := accounts.Deposit(ctx, "acct-42", &bank.DepositRequest{Amount: 5})
//
// # What becomes of a request
//
// The client is connected to all nodes that it was given, and gives each request to the one that hosts the entity,
// as soon as it has learned which that is. What no node has had yet goes to another one when a node
// is gone; so does what a node has sent back as not handled, once to each node. What a node may have
// handled is never sent again: it ends with [ErrUnknownOutcome]. The errors say whether it is safe to
// send a request again, see [ErrNotDelivered].
//
// An ask ends with its context, without a deadline a quarter of a second after a minute at the latest; what is left of
// its deadline travels with it, and the entity does not begin it later. Requests that are under way at the same time
// may overtake each other. One that is sent when an ask to the same entity has been answered comes after that. A tell
// is accepted by a node, and may be on its way to the entity yet: what is sent later by the same node comes after it,
// what goes by another one, as when the client has learned where the entity lives, may overtake it. Ask where that
// matters.
//
// # Bounds
//
// Each node says how many requests it takes at a time; as many as [Config.Queued] wait here beside
// them. When these are too many, Ask and Tell wait for room, and end with [ErrOverloaded] if none comes.
//
// # Life cycle and concurrency
//
// [Open] starts the connections and returns at once. [Client.Close] ends all requests and waits for
// every goroutine; it may be called twice. All methods may be called from any goroutine.
package client
